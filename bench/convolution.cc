// SPDX-License-Identifier: Apache-2.0
// Time of convolutions over time, forward and backward:  fovea_bench_convolution THREADS
//
// Each line of standard input is "IN OUT WIDTH BATCH LENGTH REPEATS"; it is answered by one line of
// JSON. The gradients of x, weight and bias are computed. convolution.py compares with PyTorch.
#include "fovea/nn/convolution.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "fovea/base/clock.h"
#include "fovea/base/profile.h"
#include "fovea/base/random.h"
#include "fovea/simd/isa.h"
#include "fovea/simd/peak.h"

namespace fovea {
namespace {

struct Shape3 {
  index in, out, width, batch, length;
};

// A layer with its input, timed again and again.
class TimedLayer {
 public:
  TimedLayer(const Context& ctx, const Shape3& s)
      : ctx_(ctx),
        shape_(s),
        tape_(ctx),
        layer_({.in = s.in, .out = s.out, .width = s.width}, ParameterScope(set_)) {
    Random random(1, RandomUse::kTest);
    const index N = s.batch * s.length;
    for (index i = 0; i < N * s.in; ++i) x_.push_back(static_cast<float>(random.normal()));
    for (index i = 0; i < N * s.out; ++i) dy_.push_back(static_cast<float>(random.normal()));
    for (index b = 0; b <= s.batch; ++b) {
      offsets_.push_back(static_cast<std::int32_t>(b * s.length));
    }
  }

  // Seconds of the forward, and of the backward.
  std::pair<double, double> step() {
    tape_.reset();
    for (Parameter* p : set_.parameters()) {
      p->clear_gradient();
      ++p->version;  // as after an update
    }
    const index N = shape_.batch * shape_.length;
    const Variable x = tape_.input(Rows<const float>(x_.data(), N, shape_.in));
    PackedRows rows;
    rows.offsets = offsets_;
    const double begin = monotonic_seconds();
    const Variable y = layer_.forward(tape_, x, rows);
    const double middle = monotonic_seconds();
    const Variable loss = given_gradient(y);
    const double between = monotonic_seconds();
    tape_.backward(loss);
    return {middle - begin, monotonic_seconds() - between};
  }

 private:
  // A loss whose gradient in y is dy, which is copied as any op would write it.
  Variable given_gradient(Variable y) {
    const Variable loss = tape_.result(1, 1, DType::kFloat32);
    loss.value<float>()[0][0] = 0;
    tape_.record(loss, {y}, [y, dy = dy_.data()](Tape& t) {
      copy_rows(t.context(), Rows<const float>(dy, y.rows(), y.columns()),
                t.gradient_for<float>(y).rows);
    });
    return loss;
  }

  Context ctx_;
  Shape3 shape_;
  Tape tape_;
  ParameterSet set_{{}};
  ConvolutionLayer layer_;
  std::vector<float> x_, dy_;
  std::vector<std::int32_t> offsets_;
};

void answer(const Context& ctx, const std::string& line) {
  std::istringstream in(line);
  Shape3 s{};
  int repeats = 0;
  if (!(in >> s.in >> s.out >> s.width >> s.batch >> s.length >> repeats)) {
    throw Error(ErrorCode::kUsage, "expected IN OUT WIDTH BATCH LENGTH REPEATS: " + line, "");
  }
  static std::map<std::string, std::unique_ptr<TimedLayer>> layers;
  auto& layer = layers[fmt::format("{} {} {} {} {}", s.in, s.out, s.width, s.batch, s.length)];
  if (layer == nullptr) layer = std::make_unique<TimedLayer>(ctx, s);
  for (int i = 0; i < 3; ++i) layer->step();
  std::vector<double> forwards, all;
  for (int i = 0; i < repeats; ++i) {
    const auto [forward, backward] = layer->step();
    forwards.push_back(forward);
    all.push_back(forward + backward);
  }
  const double seconds = median(all), flops = 6.0 * static_cast<double>(s.batch * s.length) *
                                              static_cast<double>(s.width * s.in * s.out);
  fmt::print("{{\"seconds\": {}, \"forward_seconds\": {}, \"gflops\": {}, \"fma_gflops\": {}}}\n",
             seconds, median(forwards), flops / seconds * 1e-9, fma_gflops(ctx));
  std::fflush(stdout);
}

// Where the time goes, on standard error: medians over steps, forward and dx together.
void print_profile(const Context& ctx, const Shape3& s) {
  constexpr int kSteps = 101;
  Profile profile;
  TimedLayer layer(ctx.profiled(profile), s);
  for (int i = 0; i < 3; ++i) layer.step();
  const std::vector<Profile::Part> parts = profile.parts();
  std::vector<std::vector<double>> seconds(parts.size());
  for (int i = 0; i < kSteps; ++i) {
    profile.clear();
    layer.step();
    for (std::size_t p = 0; p < parts.size(); ++p) {
      seconds[p].push_back(profile.parts()[p].seconds);
    }
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const double time = median(seconds[p]);
    const Work& work = parts[p].work;
    fmt::print(stderr, "{:24} {:5}x{:5}x{:5} {:8.1f} us {:7.1f} GFLOP/s {:6.1f} GB/s\n", work.what,
               work.shape[0], work.shape[1], work.shape[2], time * 1e6,
               work.flops / 3 / time * 1e-9, work.bytes / 3 / time * 1e-9);
  }
}

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) {
  try {
    const fovea::Context ctx(argc > 1 ? std::atoi(argv[1]) : 0);
    if (argc == 7) {
      const auto number = [&](int n) { return std::atoll(argv[n]); };
      fovea::print_profile(ctx, {number(2), number(3), number(4), number(5), number(6)});
      return 0;
    }
    for (std::string line; std::getline(std::cin, line);) fovea::answer(ctx, line);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fovea_bench_convolution: {}\n", error.what());
    return 2;
  }
}
