// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

/// Adds the operator with parts by name, and the table of what it takes.
void bind_attention(nanobind::module_& m);

}  // namespace fovea::python
