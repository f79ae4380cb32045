// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/parameter.h"

namespace fovea {

Tensor& Parameter::finished_gradient() {
  if (!gradient.defined()) gradient = Tensor::empty(value.shape(), value.dtype());
  if (!has_gradient) gradient.fill_zero();
  has_gradient = true;
  return gradient;
}

}  // namespace fovea
