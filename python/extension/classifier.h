// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

/// Adds classifiers that have been trained.
void bind_classifier(nanobind::module_& m);

}  // namespace fovea::python
