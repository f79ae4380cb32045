// SPDX-License-Identifier: Apache-2.0
// Times updates of an embedding table, dense (RowUse::kDense) and sparse (kSparse) in turns:
//
//   fovea_bench_tables ROWS WIDTH SEQUENCES LENGTH THREADS UPDATES [embedding|bag]
//
// An update embeds SEQUENCES x LENGTH ids with Zipf's frequencies (a row for each, or the mean of
// each sequence), and does forward, backward, gradient norm and AdamW; nothing else is computed.
// Prints one JSON object: medians of the last half of the updates, in milliseconds, and what a
// checkpoint then takes in addition. Both tables have the same bits at the end, or it fails.
#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "fovea/base/clock.h"
#include "fovea/base/random.h"
#include "fovea/nn/embedding.h"
#include "fovea/nn/embedding_bag.h"
#include "fovea/train/optimizer.h"

namespace fovea {
namespace {

struct Case {
  index rows, width, sequences, length;
  int threads;
  index updates;
  bool bags;
};

// Row number r of the frequencies 1 / r; frequent rows are scattered, as hashes are.
class Zipf {
 public:
  explicit Zipf(index rows) : rows_(rows) {}
  std::int32_t draw(Random& random) const {
    const double rank = std::pow(static_cast<double>(rows_ + 1), random.uniform(0, 1));
    return static_cast<std::int32_t>((static_cast<index>(rank) - 1) * 7919 % rows_);
  }

 private:
  index rows_;
};

class Model {
 public:
  Model(const Case& c, RowUse use)
      : case_(c),
        context_(c.threads),
        tape_(context_),
        tokens_({.vocabulary = c.rows,
                 .width = c.width,
                 .position = PositionKind::kNone,
                 .row_use = use},
                ParameterScope(c.bags ? unused_ : set_)),
        bag_({.rows = c.rows, .width = c.width, .row_use = use},
             ParameterScope(c.bags ? set_ : unused_)),
        optimizer_(set_.parameters()) {
    for (index s = 0; s <= c.sequences; ++s)
      offsets_.push_back(static_cast<std::int32_t>(s * c.length));
  }

  struct Times {
    std::vector<double> forward, backward, norm, step, all;
  };

  void update(index number, const std::vector<std::int32_t>& ids, Times& times) {
    tape_.reset();
    const double begin = monotonic_seconds();
    const Variable y = embed(ids);
    const double forward = monotonic_seconds();
    tape_.backward(sum(tape_, multiply(tape_, y, y)));
    const double backward = monotonic_seconds();
    const double norm = optimizer_.gradient_norm(context_);
    const double normed = monotonic_seconds();
    optimizer_.step(context_, {.options = {.weight_decay = 0.01},
                               .step = number + 1,
                               .gradient_scale = clip_scale(norm, 1)});
    const double end = monotonic_seconds();
    times.forward.push_back(1e3 * (forward - begin));
    times.backward.push_back(1e3 * (backward - forward));
    times.norm.push_back(1e3 * (normed - backward));
    times.step.push_back(1e3 * (end - normed));
    times.all.push_back(1e3 * (end - begin));
  }
  Parameter& table() { return *set_.parameters()[0]; }
  Optimizer& optimizer() { return optimizer_; }

 private:
  Variable embed(const std::vector<std::int32_t>& ids) {
    if (case_.bags) return bag_.forward(tape_, ids, offsets_);
    const PackedRows rows = lay_out_rows(tape_, std::ssize(ids), offsets_, {});
    return tokens_.forward(tape_, ids, rows);
  }

  Case case_;
  Context context_;
  Tape tape_;
  ParameterSet set_{{.seed = 1}};
  ParameterSet unused_{{.memory = ParameterMemory::kShapesOnly}};
  Embedding tokens_;
  EmbeddingBag bag_;
  Optimizer optimizer_;
  std::vector<std::int32_t> offsets_;
};

double last_half(const std::vector<double>& x) {
  return median(std::vector<double>(x.begin() + std::ssize(x) / 2, x.end()));
}

void print(std::string_view name, const Model::Times& t, double catch_up) {
  fmt::print(
      "\"{}\": {{\"update\": {:.3f}, \"forward\": {:.3f}, \"backward\": {:.3f}, \"norm\": {:.3f}, "
      "\"adamw\": {:.3f}, \"checkpoint\": {:.1f}}}",
      name, last_half(t.all), last_half(t.forward), last_half(t.backward), last_half(t.norm),
      last_half(t.step), 1e3 * catch_up);
}

double seconds_to_catch_up(Model& model) {
  const double begin = monotonic_seconds();
  model.table().catch_up();
  return monotonic_seconds() - begin;
}

int run(const Case& c) {
  Model dense(c, RowUse::kDense), sparse(c, RowUse::kSparse);
  Model::Times dense_times, sparse_times;
  const Zipf zipf(c.rows);
  Random random(1, RandomUse::kTest);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(c.sequences * c.length));
  index used = 0;
  for (index u = 0; u < c.updates; ++u) {
    for (std::int32_t& id : ids) id = zipf.draw(random);
    dense.update(u, ids, dense_times);
    sparse.update(u, ids, sparse_times);
    std::sort(ids.begin(), ids.end());
    used = std::unique(ids.begin(), ids.end()) - ids.begin();
  }
  const double due = seconds_to_catch_up(sparse);
  const bool same =
      std::memcmp(dense.table().value.bytes().data(), sparse.table().value.bytes().data(),
                  dense.table().value.bytes().size()) == 0;
  fmt::print("{{\"rows_used\": {}, \"same_bits\": {}, ", used, same);
  print("dense", dense_times, 0);
  fmt::print(", ");
  print("sparse", sparse_times, due);
  fmt::print(", \"ratio\": {:.4f}}}\n", last_half(sparse_times.all) / last_half(dense_times.all));
  return same ? 0 : 1;
}

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) {
  if (argc < 7) {
    fmt::print(stderr, "usage: {} ROWS WIDTH SEQUENCES LENGTH THREADS UPDATES [embedding|bag]\n",
               argv[0]);
    return 1;
  }
  const auto number = [&](int i) { return std::atoll(argv[i]); };
  return fovea::run({number(1), number(2), number(3), number(4), static_cast<int>(number(5)),
                     number(6), argc > 7 && std::string_view(argv[7]) == "bag"});
}
