// SPDX-License-Identifier: Apache-2.0
// Finds large values in a row, such as the likeliest tokens among logits.
#pragma once

#include "fovea/base/view.h"

namespace fovea {

/// The first i >= begin with x[i] > least, or x.size. NaN is above nothing, and nothing above NaN.
template <class T>
index first_above(Vec<const T> x, index begin, T least);

}  // namespace fovea
