// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/text_encoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fovea/base/profile.h"
#include "tests/isa.h"
#include "tests/model/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr index kLength = 9, kChanged = 4;

struct Seen {
  const char* encoder;
  index before, after;  ///< the rows around it that a token changes
};

// The rows that change with one token in the middle.
std::vector<index> rows_changed(const Seen& seen, Sight sight) {
  EncoderConfig c;
  c.encoder = seen.encoder;
  c.sight = sight;
  c.position = PositionKind::kNone;
  c.width = 8;
  c.heads = 2;
  c.block = kLength;
  c.vocabulary = 7;
  c.init = InitScheme::kSource;
  resolve_encoder(c);
  const auto stages = size_stages(c, parse_encoder(c.encoder));
  ParameterSet set({.seed = 1});
  const TextEncoder encoder(c, stages, ParameterScope(set));
  OwnedBatch batch({kLength}, 7);
  const auto rows_of = [&] {
    Tape tape(Context(1), TapeMode::kInference);
    const TokenBatch view = batch.view();
    const PackedRows rows = lay_out_texts(tape, view.sequences(), kLength);
    return to_vector(encoder.forward(tape, view.ids, rows, {}, {}).value<float>());
  };
  const auto before = rows_of();
  batch.ids[kChanged] = (batch.ids[kChanged] + 1) % 7;
  const auto after = rows_of();
  const index width = encoder.width();
  std::vector<index> changed;
  for (index n = 0; n < kLength; ++n) {
    const auto row = [&](const auto& x) {
      return std::vector<float>(x.begin() + n * width, x.begin() + (n + 1) * width);
    };
    if (row(before) != row(after)) changed.push_back(n);
  }
  return changed;
}

std::vector<index> from_to(index first, index last) {
  std::vector<index> all;
  for (index n = first; n <= last; ++n) all.push_back(n);
  return all;
}

TEST(TextEncoder, SeesTheWholeTextOrThePast) {
  const index all = kLength - 1;
  const Seen rows[] = {{"ff", 0, 0},
                       {"attention:plain", kChanged, all - kChanged},
                       {"transformer", kChanged, all - kChanged},
                       {"attention:window=2:no-output", 2, 2},
                       {"attention:window=1:layers=2", 2, 2},
                       {"transformer:window=3:position=alibi", 3, 3},
                       {"attention:position=t5", kChanged, all - kChanged},
                       {"conv3", 1, 1},
                       {"conv5:gated", 2, 2},
                       {"conv3+conv1", 1, 1},
                       {"gru", 0, all - kChanged},
                       {"bisru:4", kChanged, all - kChanged},
                       {"attention-rnn", 0, all - kChanged}};
  for (const Seen& row : rows) {
    EXPECT_EQ(rows_changed(row, Sight::kWhole),
              from_to(kChanged - row.before, kChanged + row.after))
        << row.encoder;
    if (std::string(row.encoder).starts_with("bi")) continue;
    const auto past = rows_changed(row, Sight::kPast);
    EXPECT_EQ(past.front(), kChanged) << row.encoder;
  }
}

EncoderConfig plain_config(const char* encoder) {
  EncoderConfig c;
  c.encoder = encoder;
  c.position = PositionKind::kNone;
  c.width = 8;
  c.heads = 2;
  c.block = kLength;
  c.vocabulary = 4099;  // more than are put into the table at a time
  c.init = InitScheme::kSource;
  resolve_encoder(c);
  return c;
}

TEST(TextEncoder, ATableOfTokensGivesTheBitsOfTheForward) {
  for (const char* const kind :
       {"attention:plain", "attention:plain:no-output,gru", "attention:plain:position=alibi"}) {
    SCOPED_TRACE(kind);
    const EncoderConfig c = plain_config(kind);
    ParameterSet set({.seed = 1});
    const TextEncoder encoder(c, size_stages(c, parse_encoder(c.encoder)), ParameterScope(set));
    ASSERT_EQ(encoder.token_table_columns(), 24);
    OwnedBatch batch({kLength, 0, 1, 5}, c.vocabulary);
    batch.ids[2] = 0;
    batch.ids[3] = 4098;
    for_each_isa([&] {
      const Tensor table = encoder.token_table(Context(2));
      const auto rows_of = [&](const std::function<Variable(Tape&, const PackedRows&)>& f) {
        Tape tape(Context(2), TapeMode::kInference);
        const PackedRows rows = lay_out_texts(tape, batch.view().sequences(), kLength);
        return to_vector(f(tape, rows).value<float>());
      };
      const Vec<const std::int32_t> ids = batch.view().ids;
      EXPECT_EQ(
          rows_of([&](Tape& t, const PackedRows& r) { return encoder.forward(t, ids, r, table); }),
          rows_of(
              [&](Tape& t, const PackedRows& r) { return encoder.forward(t, ids, r, {}, {}); }));
    });
  }
}

// Positions that are added to the rows of tokens, and first layers of which no step is a token's.
TEST(TextEncoder, HasNoTableOfTokensWhereTheFirstStepIsNotTheirs) {
  for (const char* const kind : {"", "gru", "transformer", "attention:plain+gru:8"}) {
    const EncoderConfig c = plain_config(kind);
    ParameterSet set({.seed = 1});
    const auto specs =
        c.encoder.empty() ? std::vector<SizedStage>{} : size_stages(c, parse_encoder(c.encoder));
    const TextEncoder encoder(c, specs, ParameterScope(set));
    EXPECT_EQ(encoder.token_table_columns(), 0) << kind;
    EXPECT_THROWS(encoder.token_table(Context(1)), kShape, "no table of tokens");
  }
  EncoderConfig c = plain_config("attention:plain");
  c.position = PositionKind::kLearned;
  c.position_max = kLength;
  ParameterSet set({.seed = 1});
  const TextEncoder encoder(c, size_stages(c, parse_encoder(c.encoder)), ParameterScope(set));
  EXPECT_EQ(encoder.token_table_columns(), 0);
}

// The results of a training step, and the products that it computes.
struct Trained {
  std::vector<double> rows;
  std::vector<std::vector<double>> gradients;
  std::vector<index> products;  // their rows
};

// With dropout before the projection, even if it drops nothing, each token has its own.
Trained trained(EncoderConfig c, double dropout, const OwnedBatch& batch) {
  c.dropout = dropout;
  ParameterSet set({.seed = 1, .dtype = DType::kFloat64});
  const auto stages = size_stages(c, parse_encoder(c.encoder));
  EXPECT_EQ(projected_once_columns(c, stages) > 0, dropout == 0);
  const TextEncoder encoder(c, stages, ParameterScope(set));
  for (Parameter* p : set.parameters()) {  // biases, too
    Random random(3, RandomUse::kTest);
    for (index n = 0; n < p->value.size(); ++n) {
      p->value.data<double>()[n] = random.normal();
    }
  }
  Profile profile;
  Tape tape(Context(1).profiled(profile));
  const PackedRows rows = lay_out_texts(tape, batch.view().sequences(), kLength);
  const Variable x = encoder.forward(tape, batch.view().ids, rows, {}, {});
  Trained result{to_vector(x.value<double>()), {}, {}};
  for (const Profile::Part& part : profile.parts()) {
    if (part.work.what == "product") result.products.push_back(part.work.shape[0]);
  }
  tape.backward(sum(tape, multiply(tape, x, x)));
  for (Parameter* p : set.parameters()) {
    p->gather_rows();
    const Tensor& gradient = p->finished_gradient();
    result.gradients.emplace_back(gradient.data<double>(),
                                  gradient.data<double>() + gradient.size());
  }
  return result;
}

void expect_close(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  double largest = 0;
  for (const double value : b) largest = std::max(largest, std::abs(value));
  ASSERT_GT(largest, 0);
  for (std::size_t n = 0; n < a.size(); ++n) ASSERT_NEAR(a[n], b[n], 1e-10 * largest) << n;
}

void expect_same_training(const EncoderConfig& c, const OwnedBatch& batch) {
  constexpr double kDropsNothing = 1e-30;
  const Trained once = trained(c, 0, batch), each = trained(c, kDropsNothing, batch);
  std::set<std::int32_t> different(batch.ids.begin(), batch.ids.end());
  ASSERT_LT(different.size(), batch.ids.size());
  EXPECT_EQ(once.products[0], static_cast<index>(different.size()));
  EXPECT_EQ(each.products[0], static_cast<index>(batch.ids.size()));
  if (c.position == PositionKind::kNone) {
    EXPECT_EQ(once.rows, each.rows);
  }
  expect_close(once.rows, each.rows);
  ASSERT_EQ(once.gradients.size(), each.gradients.size());
  for (std::size_t n = 0; n < once.gradients.size(); ++n) {
    expect_close(once.gradients[n], each.gradients[n]);
  }
}

TEST(TextEncoder, ProjectsDifferentTokensOnceInTraining) {
  for (const PositionKind position :
       {PositionKind::kNone, PositionKind::kLearned, PositionKind::kSinusoidal}) {
    for (const char* const kind : {"attention:plain", "attention:plain:no-output,gru",
                                   "attention:plain:layers=2", "attention:plain:kv-heads=1"}) {
      for (const bool qk_norm : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", kind, to_string(position), qk_norm));
        EncoderConfig c = plain_config(kind);
        c.position = position;
        c.position_max = kLength;
        c.qk_norm = qk_norm;
        OwnedBatch batch({kLength, 0, 1, 5}, c.vocabulary);
        batch.ids[3] = batch.ids[7] = batch.ids[11] = batch.ids[0];
        expect_same_training(c, batch);
      }
    }
  }
}

// Where something stands before the projection, or beside it.
TEST(TextEncoder, ProjectsEachTokenWhereItMust) {
  const auto columns = [](const char* kind, auto change) {
    EncoderConfig c = plain_config(kind);
    change(c);
    return projected_once_columns(c, size_stages(c, parse_encoder(c.encoder)));
  };
  const auto nothing = [](EncoderConfig&) {};
  EXPECT_EQ(columns("attention:plain,gru", nothing), 24);
  EXPECT_EQ(columns("attention:plain", [](EncoderConfig& c) { c.dropout = 0.1; }), 0);
  EXPECT_EQ(columns("attention:plain",
                    [](EncoderConfig& c) { c.position_join = PositionJoin::kConcatenate; }),
            0);
  for (const char* const kind : {"attention", "transformer", "gru", "attention:plain+gru:8"}) {
    EXPECT_EQ(columns(kind, nothing), 0) << kind;
  }
}

TEST(TextEncoder, WithoutLayersIsTheEmbeddings) {
  EncoderConfig c;
  c.vocabulary = 7;
  c.position = PositionKind::kNone;
  resolve_encoder(c);
  ParameterSet set({.seed = 1});
  const TextEncoder encoder(c, {}, ParameterScope(set));
  EXPECT_EQ(encoder.width(), 128);
  EXPECT_EQ(encoder.attentions(), 0);
  ASSERT_EQ(set.parameters().size(), 1u);
  const OwnedBatch batch({3}, 7);
  Tape tape(Context(1), TapeMode::kInference);
  const PackedRows rows = lay_out_texts(tape, batch.view().sequences(), 3);
  const Variable x = encoder.forward(tape, batch.view().ids, rows, {}, {});
  EXPECT_EQ(x.value<float>()[1][5], encoder.tokens().value.rows<float>()[batch.ids[1]][5]);
}

}  // namespace
}  // namespace fovea
