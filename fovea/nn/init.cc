// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/init.h"

#include <cmath>

namespace fovea {

namespace {

template <class T>
void fill_from(Vec<T> values, const Init& init, Random random) {
  for (T& x : values) {
    switch (init.kind) {
      case Init::Kind::kConstant:
        x = static_cast<T>(init.a);
        break;
      case Init::Kind::kNormal:
        x = static_cast<T>(init.a + init.b * random.normal());
        break;
      case Init::Kind::kUniform:
        x = static_cast<T>(random.uniform(init.a, init.b));
        break;
    }
  }
}

}  // namespace

Init residual_init(index layers) {
  check(layers > 0, "residual_init: layers must be positive; got {}", layers);
  return Init::normal(kInitDeviation / std::sqrt(2.0 * static_cast<double>(layers)));
}

Init glorot_uniform_init(index inputs, index outputs) {
  check(inputs > 0 && outputs > 0, "glorot_uniform_init: sizes must be positive; got {} and {}",
        inputs, outputs);
  const double bound = std::sqrt(6 / (static_cast<double>(inputs) + static_cast<double>(outputs)));
  return Init::uniform(-bound, bound);
}

Init linear_uniform_init(index inputs) {
  check(inputs > 0, "linear_uniform_init: inputs must be positive; got {}", inputs);
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  return Init::uniform(-bound, bound);
}

void initialise(Tensor& tensor, const Init& init, Random random) {
  if (tensor.dtype() == DType::kFloat64)
    fill_from(tensor.vec<double>(), init, random);
  else
    fill_from(tensor.vec<float>(), init, random);
}

}  // namespace fovea
