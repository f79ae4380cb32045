// SPDX-License-Identifier: Apache-2.0
// One layer of H heads beside a loop over H layers of one head, whose results are concatenated
// (Vaswani et al. 2017, section 3.2.2, written both ways). Forward and backward, in turns:
//
//   fovea_bench_heads THREADS BATCH TOKENS WIDTH HEADS HEAD_DIM
//
// Prints {"together": seconds, "loop": seconds}, medians over the rounds.
#include <fmt/core.h>

#include <cstdlib>
#include <vector>

#include "fovea/base/clock.h"
#include "fovea/nn/attention.h"

namespace fovea {
namespace {

constexpr int kRounds = 15;
constexpr double kSecondsOfARound = 0.1;

struct Case {
  index batch, tokens, width, heads, head_dim;
};

// `layers` layers of `heads` heads each, of the same input.
class Heads {
 public:
  Heads(const Case& c, index layers, index heads) : x_({c.batch * c.tokens, c.width}) {
    Random random(1, RandomUse::kTest);
    for (float& v : x_.vec<float>()) v = static_cast<float>(random.uniform(-1, 1));
    for (index s = 0; s <= c.batch; ++s) {
      offsets_.push_back(static_cast<std::int32_t>(s * c.tokens));
    }
    for (index n = 0; n < layers; ++n) {
      layers_.emplace_back(MultiHeadAttentionOptions{.width = c.width,
                                                     .heads = heads,
                                                     .head_dim = c.head_dim,
                                                     .output = OutputProjection::kNone},
                           ParameterScope(set_)[n]);
    }
  }

  /// Forward and backward, with the gradient of x.
  void call(Tape& tape) {
    tape.reset();
    for (Parameter* p : set_.parameters()) {
      ++p->version;
      p->clear_gradient();
    }
    const PackedRows rows = lay_out_rows(tape, x_.shape()[0], offsets_, {});
    const Variable x = tape.input<float>(x_.rows<float>());
    std::vector<Variable> results;
    for (const MultiHeadAttention& layer : layers_) results.push_back(layer.forward(tape, x, rows));
    tape.backward(sum(tape, results.size() == 1 ? results.front() : concat_columns(tape, results)));
  }

 private:
  ParameterSet set_{{.seed = 1}};
  std::vector<MultiHeadAttention> layers_;
  Tensor x_;
  std::vector<std::int32_t> offsets_;
};

struct Timed {
  Heads heads;
  Tape tape;
  int calls = 1;
  std::vector<double> seconds = {};

  double time() {
    const double begin = monotonic_seconds();
    for (int n = 0; n < calls; ++n) heads.call(tape);
    return (monotonic_seconds() - begin) / calls;
  }
};

void run(int threads, const Case& c) {
  const Context context(threads);
  Timed together{Heads(c, 1, c.heads), Tape(context)};
  Timed loop{Heads(c, c.heads, 1), Tape(context)};
  for (Timed* timed : {&together, &loop}) {
    for (int n = 0; n < 3; ++n) timed->time();  // the tape's memory settles
    timed->calls = std::max(1, static_cast<int>(kSecondsOfARound / timed->time()));
  }
  for (int round = 0; round < kRounds; ++round) {
    for (Timed* timed : {&together, &loop}) timed->seconds.push_back(timed->time());
  }
  fmt::print(R"({{"together": {:.4e}, "loop": {:.4e}}})"
             "\n",
             median(together.seconds), median(loop.seconds));
}

}  // namespace
}  // namespace fovea

int main(int count, char** arguments) {
  if (count != 7) {
    fmt::print(stderr, "usage: {} THREADS BATCH TOKENS WIDTH HEADS HEAD_DIM\n", arguments[0]);
    return EXIT_FAILURE;
  }
  const auto number = [&](int i) { return fovea::index{std::atoll(arguments[i])}; };
  fovea::run(static_cast<int>(number(1)), {number(2), number(3), number(4), number(5), number(6)});
  return EXIT_SUCCESS;
}
