// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

/// Adds translators that have been trained.
void bind_translator(nanobind::module_& m);

}  // namespace fovea::python
