// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

/// Adds taggers and segmenters that have been trained.
void bind_tagger(nanobind::module_& m);

}  // namespace fovea::python
