// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/tagger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/reference/gradcheck.h"
#include "tests/model/tagger_support.h"
#include "tests/support/part_range.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

// Every reader of characters and both heads, over encoders that see the whole sentence.
std::vector<TaggerConfig> forms() {
  std::vector<TaggerConfig> all;
  for (const TagHead head : {TagHead::kSoftmax, TagHead::kCrf}) {
    for (const char* encoder : {"", "bilstm:3", "conv3:activation=gelu,attention:position=t5"}) {
      for (const auto& [reader, name] : enum_names(CharacterReader{})) {
        TaggerConfig c = tagger_config(encoder, head);
        c.character_reader = reader;
        c.t5_buckets = 4;
        c.dropout = c.input_dropout = c.output_dropout = 0.2;
        if (all.size() % 2 == 0) c.position = PositionKind::kSinusoidal;
        if (all.size() % 3 == 0) {
          c.ngram_width = 2;
          c.buckets = 11;
        }
        if (all.size() % 3 == 1) {
          c.linear = true;
          c.linear_buckets = 40;
        }
        all.push_back(c);
      }
    }
    all.push_back(linear_config(head));
  }
  all.push_back(two_columns("bilstm:3"));
  all.push_back(two_columns("bilstm:3"));
  all.back().linear = true;
  all.back().linear_buckets = 40;
  return all;
}

class EveryTagger : public testing::TestWithParam<TaggerConfig> {};

TEST_P(EveryTagger, GradientIsThatOfTheLoss) {
  const Tagger model(GetParam(), {}, 1, DType::kFloat64);
  for (Parameter* p : model.parameters()) {  // a fresh model is too flat to tell errors apart
    Random random(3, RandomUse::kTest, p->value.size());
    const double least = has_range(p->name) ? 0.1 : -1;
    for (double& x : p->value.vec<double>()) x = random.uniform(least, 1);
  }
  const OwnedWords batch({3, 5, 1}, model.config());
  const auto report = check_gradients(Context(2), model.parameters(), [&](Tape& tape) {
    return model.loss(tape, batch.view(), {.scale = 0.2, .dropout = {1, 2, 0}});
  });
  EXPECT_LE(report.error, 1e-7) << report.where;
}

TEST_P(EveryTagger, SaysTheSameOfASentenceAloneAndAmongOthers) {
  const Tagger model(GetParam(), {}, 1);
  const OwnedWords all({4, 2, 8}, model.config());
  const auto say = [&](const WordRows& rows, int threads) {
    const Context context(threads);
    Tape tape(context, TapeMode::kInference);
    const TagScores scores = model.scores(tape, rows);
    const std::size_t last = scores.logits.size() - 1;
    return std::pair(model.best_tags(context, scores, last),
                     model.probabilities(context, scores, last));
  };
  const WordRows rows = all.view().rows;
  const auto [tags, probabilities] = say(rows, 2);
  EXPECT_EQ(say(rows, 1).second, probabilities);
  std::vector<std::int32_t> characters(all.character_offsets.begin() + 6,
                                       all.character_offsets.end());
  for (std::int32_t& offset : characters) offset -= all.character_offsets[6];
  const std::int32_t offsets[] = {0, 8};
  const auto [last, of_last] =
      say({.words = {rows.words.data + 6, 8},
           .shapes = {rows.shapes.data + 6, 8},
           .characters = {rows.characters.data + all.character_offsets[6], characters.back()},
           .character_offsets = {characters.data(), 9},
           .offsets = {offsets, 2}},
          2);
  EXPECT_EQ(last, std::vector(tags.begin() + 6, tags.end()));
  EXPECT_EQ(of_last, std::vector(probabilities.begin() + 6 * model.config().tags.back(),
                                 probabilities.end()));
}

INSTANTIATE_TEST_SUITE_P(Forms, EveryTagger, testing::ValuesIn(forms()));

TEST(Tagger, ProbabilitiesAddUpToOneAndTheBestIsTheLargestOfASoftmax) {
  const Tagger model(tagger_config("bilstm:3", TagHead::kSoftmax), {}, 1);
  const OwnedWords batch({4, 2}, model.config());
  const Context context(1);
  Tape tape(context, TapeMode::kInference);
  const TagScores scores = model.scores(tape, batch.view().rows);
  const std::vector<double> all = model.probabilities(context, scores);
  const std::vector<std::int32_t> best = model.best_tags(context, scores);
  for (std::size_t w = 0; w < best.size(); ++w) {
    const double* const row = all.data() + 3 * w;
    EXPECT_NEAR(row[0] + row[1] + row[2], 1, 1e-12);
    EXPECT_EQ(std::max_element(row, row + 3) - row, best[w]);
  }
}

TEST(Tagger, ACrfNeverGivesWhatItsRulesForbid) {
  CrfRules rules;
  rules.transitions = {1, 1, 0, 0, 1, 1, 1, 0, 1};  // 0 then 2, 1 then 0, 2 then 1: never
  const Tagger model(tagger_config("bilstm:3"), {&rules, 1}, 1);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const OwnedWords batch({8}, model.config(), seed);
    const Context context(1);
    Tape tape(context, TapeMode::kInference);
    const auto tags = model.best_tags(context, model.scores(tape, batch.view().rows));
    for (std::size_t w = 1; w < tags.size(); ++w) {
      EXPECT_EQ(rules.transitions[static_cast<std::size_t>(3 * tags[w - 1] + tags[w])], 1);
    }
  }
}

TEST(Tagger, TakesNoLongerSentenceAndOnlyAsManyTagsAsWords) {
  const Tagger model(tagger_config(), {}, 1);
  const OwnedWords batch({9}, model.config());
  Tape tape(Context(1));
  EXPECT_THROWS(model.loss(tape, batch.view()), kShape, "at most 8");
  const OwnedWords three({3}, model.config());
  TaggedRows rows = three.view();
  rows.tags[0].size = 2;
  EXPECT_THROWS(model.loss(tape, rows), kShape, "2 tags for 3 words");
  rows.tags.clear();
  EXPECT_THROWS(model.loss(tape, rows), kShape, "0 columns of tags for 1");
  EXPECT_EQ(model.loss(tape, {}).value<float>()[0][0], 0);
  const CrfRules rules[3];
  EXPECT_THROWS(Tagger(two_columns(), rules, 1), kShape, "rules of 3 columns for 2");
}

// Two heads on one encoder are two models with the same encoder: what they say is the same, and
// their losses add up.
TEST(Tagger, AHeadOfEachColumnReadsTheSameEncoder) {
  const Tagger both(two_columns("bilstm:3"), {}, 1);
  const OwnedWords batch({4, 2}, both.config());
  const Context context(2);
  Tape tape(context, TapeMode::kInference);
  const TagScores scores = both.scores(tape, batch.view().rows);
  double sum = 0;
  for (std::size_t c = 0; c < 2; ++c) {
    TaggerConfig config = tagger_config("bilstm:3", both.config().head[c]);
    config.tags = {both.config().tags[c]};
    const Tagger one(config, {}, 1);
    for (Parameter* p : one.parameters()) {
      const std::string column = "columns." + std::to_string(c) + ".";
      const auto same = std::find_if(
          both.parameters().begin(), both.parameters().end(),
          [&](const Parameter* q) { return q->name == p->name || q->name == column + p->name; });
      ASSERT_NE(same, both.parameters().end()) << p->name;
      const Vec<const float> from = (*same)->value.vec<float>();
      std::copy(from.begin(), from.end(), p->value.vec<float>().begin());
    }
    Tape other(context, TapeMode::kInference);
    const TagScores alone = one.scores(other, batch.view().rows);
    EXPECT_EQ(one.best_tags(context, alone), both.best_tags(context, scores, c));
    EXPECT_EQ(one.probabilities(context, alone), both.probabilities(context, scores, c));
    TaggedRows rows = batch.view();
    rows.tags = {rows.tags[c]};
    sum += double{one.loss(other, rows, {.scale = 0.5}).value<float>()[0][0]};
  }
  EXPECT_NEAR(both.loss(tape, batch.view(), {.scale = 0.5}).value<float>()[0][0], sum, 1e-5);
}

// With one column the names are those of models that have only one.
TEST(Tagger, ParametersOfSeveralColumnsHaveTheirNumbers) {
  const auto has = [](const TaggerConfig& c, const char* name) {
    const Tagger model(c, {}, 1);
    const auto& all = model.parameters();
    return std::any_of(all.begin(), all.end(), [&](const Parameter* p) { return p->name == name; });
  };
  EXPECT_TRUE(has(tagger_config(), "output.weight"));
  EXPECT_TRUE(has(tagger_config(), "crf.transitions"));
  EXPECT_TRUE(has(two_columns(), "columns.0.crf.transitions"));
  EXPECT_TRUE(has(two_columns(), "columns.1.output.bias"));
  EXPECT_FALSE(has(two_columns(), "columns.1.crf.transitions"));
}

// Without an encoder the scores are two matrices times what is read.
TEST(Tagger, GivesTheGradientOfWhatItReads) {
  const Tagger model(tagger_config("", TagHead::kSoftmax), {}, 1, DType::kFloat64);
  const auto matrix = [&](const char* name) {
    for (const Parameter* p : model.parameters()) {
      if (p->name == name) return p->value.vec<double>();
    }
    throw std::out_of_range(name);
  };
  const OwnedWords batch({3}, model.config());
  Tape tape(Context(1), TapeMode::kInputs);
  Variable inputs;
  const TagScores scores = model.scores(tape, batch.view().rows, {.inputs = &inputs});
  tape.backward(sum(tape, scores.logits[0]));
  const Rows<const double> gradient = inputs.gradient<double>();
  const index features = model.config().features, width = model.config().width;
  ASSERT_EQ(gradient.columns, features);
  const auto in = matrix("input.weight"), out = matrix("output.weight");
  for (index word = 0; word < 3; ++word) {
    for (index f = 0; f < features; ++f) {
      double expected = 0;
      for (index tag = 0; tag < 3; ++tag) {
        for (index c = 0; c < width; ++c) expected += out[tag * width + c] * in[c * features + f];
      }
      EXPECT_NEAR(gradient[word][f], expected, 1e-12);
    }
  }
}

}  // namespace
}  // namespace fovea
