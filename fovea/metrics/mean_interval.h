// SPDX-License-Identifier: Apache-2.0
// The mean of a few measurements, such as those of the folds of cross-validation, and how sure it
// is.
#pragma once

#include <span>

#include "fovea/metrics/bootstrap.h"

namespace fovea {

/// The mean and its 95 % interval by Student's t: mean +- t s / sqrt(n), with n - 1 degrees of
/// freedom. Of one value the interval is not defined: NaN. Throws kShape without any.
Interval mean_interval(std::span<const double> values);

}  // namespace fovea
