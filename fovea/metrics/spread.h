// SPDX-License-Identifier: Apache-2.0
// Mean and spread of several runs of one experiment.
#pragma once

#include <vector>

namespace fovea {

/// Throws kShape for no values.
double mean(const std::vector<double>& values);
/// sqrt(sum (x - mean)^2 / (n - 1)). Throws kShape for fewer than two values.
double sample_deviation(const std::vector<double>& values);

}  // namespace fovea
