// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

/// Adds attention with traced functions of scores and places, on the memory of the caller's
/// tensors.
void bind_flex(nanobind::module_& m);

}  // namespace fovea::python
