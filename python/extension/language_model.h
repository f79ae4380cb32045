// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

/// Adds language models that have been trained.
void bind_language_model(nanobind::module_& m);

}  // namespace fovea::python
