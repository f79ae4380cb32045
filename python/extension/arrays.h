// SPDX-License-Identifier: Apache-2.0
// Arrays of Python as tensors and back; neither is copied, but for results of bfloat16.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "fovea/operator/attention_tensors.h"
#include "fovea/tensor/tensor.h"

namespace fovea::python {

/// Arrays by name, in a dict.
using NamedArrays = nanobind::typed<nanobind::dict, nanobind::str, nanobind::any>;

/// The memory of a numpy array, or of any object that has DLPack or a buffer. Throws kUsage, which
/// begins with `name`, for anything else, for another device, and for a type that no tensor has.
GivenTensor given_tensor(const std::string& name, nanobind::handle array);
/// The memory of a tensor of a call, which may be bfloat16. Throws kUsage also for four axes of
/// which the last is not contiguous.
GivenTensor given_tensor_of_call(const std::string& name, nanobind::handle array);

/// A numpy array of the memory of a tensor, which lives as long as it. numpy has no bfloat16: of
/// that a copy as float32.
nanobind::object array_of(const Tensor& tensor);

}  // namespace fovea::python
