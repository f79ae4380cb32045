// SPDX-License-Identifier: Apache-2.0
// Tensors as files hold them: each under a name.
#pragma once

#include <string>

#include "fovea/tensor/tensor.h"

namespace fovea {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace fovea
