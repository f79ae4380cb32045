// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

/// Adds scaled_dot_product_attention on the memory of tensors of PyTorch. The extension knows
/// PyTorch as addresses, sizes and strides, and so links none of it.
void bind_sdpa(nanobind::module_& m);

}  // namespace fovea::python
