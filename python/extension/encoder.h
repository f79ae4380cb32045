// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

/// Adds encoders, which make vectors of texts, and what kind of model a path is.
void bind_encoder(nanobind::module_& m);

}  // namespace fovea::python
