// SPDX-License-Identifier: Apache-2.0
// Tensors with names, as files hold them.
#pragma once

#include <string>

#include "fovea/tensor/tensor.h"

namespace fovea {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace fovea
