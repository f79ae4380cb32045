// SPDX-License-Identifier: Apache-2.0
// The threads of calls from Python: our own, or those of PyTorch.
#pragma once

#include <nanobind/nanobind.h>

#include "fovea/base/context.h"

namespace fovea::python {

/// A context of so many threads. Once `use_openmp` was called they are OpenMP's, if its team has
/// that size for the calling thread.
Context context_of(int threads);

void bind_team(nanobind::module_& m);

}  // namespace fovea::python
