// SPDX-License-Identifier: Apache-2.0
// Times a recurrent layer, forward and backward, as bench/recurrent.py asks:
//
//   fovea_bench_recurrent KIND WIDTH DIRECTIONS BATCH STEPS THREADS CALLS
//
// KIND is rnn, gru, lstm or sru. Prints {"seconds": the median of a call, "fastest": the
// fastest, "parts": [...]}; a part is a kernel with its time and speed in a call. The weights
// change before each call, as in training, so that packed copies of them are made anew.
#include "fovea/nn/recurrent.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "fovea/base/clock.h"
#include "fovea/base/profile.h"

namespace fovea {
namespace {

struct Case {
  RecurrentKind kind;
  index width, directions, batch, steps;
};

RecurrentKind kind_from(std::string_view name) {
  if (name == "rnn") return RecurrentKind::kRnn;
  if (name == "gru") return RecurrentKind::kGru;
  if (name == "sru") return RecurrentKind::kSru;
  return RecurrentKind::kLstm;
}

class Layer {
 public:
  explicit Layer(const Case& c)
      : case_(c),
        layers_(
            {.kind = c.kind, .in = c.width, .hidden = c.width, .bidirectional = c.directions == 2},
            ParameterScope(set_)),
        x_({c.batch * c.steps, c.width}) {
    Random random(1, RandomUse::kTest);
    for (float& v : x_.vec<float>()) v = static_cast<float>(random.uniform(-1, 1));
    for (index s = 0; s <= c.batch; ++s) offsets_.push_back(static_cast<std::int32_t>(s * c.steps));
  }

  /// Forward and backward, with the gradient of x.
  void call(Tape& tape) {
    tape.reset();
    for (Parameter* p : set_.parameters()) {
      ++p->version;
      p->clear_gradient();
    }
    const PackedRows rows = lay_out_rows(tape, x_.shape()[0], offsets_, {});
    const Variable y = layers_.forward(tape, tape.input<float>(x_.rows<float>()), rows, {});
    tape.backward(sum(tape, y));
  }

 private:
  Case case_;
  ParameterSet set_{{.seed = 1}};
  RecurrentLayers layers_;
  Tensor x_;
  std::vector<std::int32_t> offsets_;
};

void print_parts(const Case& c, int threads) {
  constexpr int kCalls = 5;
  Layer layer(c);
  Profile profile;
  const Context context = Context(threads).profiled(profile);
  Tape tape(context);
  for (int i = 0; i < 3; ++i) layer.call(tape);  // the tape's memory settles
  profile.clear();
  for (int i = 0; i < kCalls; ++i) layer.call(tape);
  const char* separator = "";
  for (const Profile::Part& part : profile.parts()) {
    const auto& [rows, columns, depth] = part.work.shape;
    fmt::print(R"({}{{"what": "{}", "shape": [{}, {}, {}], "seconds": {:.3e}, "gflops": {:.1f}}})",
               separator, part.work.what, rows, columns, depth, part.seconds / kCalls,
               part.work.flops / part.seconds * 1e-9);
    separator = ", ";
  }
  fmt::print(R"({}{{"what": "waiting", "shape": [0, 0, 0], "seconds": {:.3e}, "gflops": 0}})",
             separator, profile.waiting_seconds() / kCalls);
}

int run(char** arguments) {
  const auto number = [&](int i) { return index{std::atoll(arguments[i])}; };
  const Case c{kind_from(arguments[1]), number(2), number(3), number(4), number(5)};
  const int threads = static_cast<int>(number(6));
  Layer layer(c);
  const Context context(threads);
  Tape tape(context);
  for (int i = 0; i < 3; ++i) layer.call(tape);
  std::vector<double> seconds;
  for (index i = 0; i < number(7); ++i) {
    const double begin = monotonic_seconds();
    layer.call(tape);
    seconds.push_back(monotonic_seconds() - begin);
  }
  fmt::print(R"({{"seconds": {:.4e}, "fastest": {:.4e}, "parts": [)", median(seconds),
             *std::min_element(seconds.begin(), seconds.end()));
  print_parts(c, threads);
  fmt::print("]}}\n");
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace fovea

int main(int count, char** arguments) {
  if (count != 8) {
    fmt::print(stderr, "usage: {} KIND WIDTH DIRECTIONS BATCH STEPS THREADS CALLS\n", arguments[0]);
    return EXIT_FAILURE;
  }
  return fovea::run(arguments);
}
