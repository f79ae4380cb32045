// SPDX-License-Identifier: Apache-2.0
// MXFP4 (OCP Microscaling Formats, version 1.0), as a folder of Hugging Face has it: 32 numbers of
// four bits (E2M1) share a power of two (E8M0).
#pragma once

#include <string>
#include <string_view>

#include "fovea/tensor/tensor.h"

namespace fovea {

/// The shape [experts, in, out] of the tensor in blocks [experts, out, in / 32, 16], two numbers a
/// byte, and scales [experts, out, in / 32]. Throws kModelDamaged, with the name, for others.
Shape mxfp4_shape(const Shape& blocks, const Shape& scales, const std::string& name);

/// Writes the values of blocks and scales into float32 of that shape. Throws kModelDamaged for
/// another number of bytes.
void widen_mxfp4(std::string_view blocks, std::string_view scales, Tensor& to);

}  // namespace fovea
