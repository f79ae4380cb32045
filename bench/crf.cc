// SPDX-License-Identifier: Apache-2.0
// Times a linear-chain CRF as bench/crf.py asks:
//
//   fovea_bench_crf WHAT TAGS BATCH THREADS CALLS
//
// WHAT is loss (forward and backward, with the gradients of emissions and of the layer) or decode
// (Viterbi). Sentence i has 20 + 7 i mod 21 rows. Prints {"seconds": the median of a call,
// "fastest": the fastest}.
#include "fovea/nn/crf.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "fovea/base/clock.h"

namespace fovea {
namespace {

class Layer {
 public:
  Layer(index tags, index batch) : crf_(tags, {}, ParameterScope(set_)) {
    for (index s = 0; s < batch; ++s) {
      offsets_.push_back(offsets_.back() + static_cast<std::int32_t>(20 + 7 * s % 21));
    }
    const index N = offsets_.back();
    x_ = Tensor({N, tags});
    Random random(1, RandomUse::kTest);
    for (float& v : x_.vec<float>()) v = static_cast<float>(random.normal());
    for (Parameter* p : set_.parameters()) {
      for (float& v : p->value.vec<float>()) v = static_cast<float>(random.uniform(-.1, .1));
    }
    for (index n = 0; n < N; ++n) tags_.push_back(static_cast<std::int32_t>(n % tags));
  }

  void loss(Tape& tape) {
    tape.reset();
    for (Parameter* p : set_.parameters()) p->clear_gradient();
    tape.backward(crf_.loss(tape, input(tape), tags_, rows(tape)));
  }
  void decode(Tape& tape) {
    tape.reset();
    crf_.decode(tape.context(), input(tape), rows(tape));
  }

 private:
  Variable input(Tape& tape) { return tape.input<float>(x_.rows<float>()); }
  PackedRows rows(Tape& tape) { return lay_out_rows(tape, x_.shape()[0], offsets_, {}); }

  ParameterSet set_{{.seed = 1}};
  Crf crf_;
  Tensor x_;
  std::vector<std::int32_t> offsets_{0}, tags_;
};

int run(char** arguments) {
  const auto number = [&](int i) { return index{std::atoll(arguments[i])}; };
  const bool decodes = std::string_view(arguments[1]) == "decode";
  Layer layer(number(2), number(3));
  Tape tape(Context(static_cast<int>(number(4))));
  std::vector<double> seconds;
  for (index i = 0; i < number(5) + 3; ++i) {
    const double begin = monotonic_seconds();
    if (decodes) {
      layer.decode(tape);
    } else {
      layer.loss(tape);
    }
    if (i >= 3) seconds.push_back(monotonic_seconds() - begin);  // the tape's memory settles
  }
  fmt::print("{{\"seconds\": {:.4e}, \"fastest\": {:.4e}}}\n", median(seconds),
             *std::min_element(seconds.begin(), seconds.end()));
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace fovea

int main(int count, char** arguments) {
  if (count != 6) {
    fmt::print(stderr, "usage: {} WHAT TAGS BATCH THREADS CALLS\n", arguments[0]);
    return EXIT_FAILURE;
  }
  return fovea::run(arguments);
}
