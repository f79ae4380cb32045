// SPDX-License-Identifier: Apache-2.0
// The values that golden models have, as the scripts that make golden files have them.
#pragma once

#include "fovea/grad/parameter.h"

namespace fovea::golden {

/// Numbers in [-.5, .5) that every type holds exactly.
inline double golden_value(index number, index i) {
  return static_cast<double>((i * i * 31 + i * 7919 + number * 104729 + 13) % 8191) / 8192 - 0.5;
}

/// Gains are around 1.
inline void fill(Parameter& parameter, index number) {
  const bool gain = parameter.name.ends_with("norm.weight");
  Tensor values(parameter.value.shape(), DType::kFloat64);
  for (index i = 0; i < values.size(); ++i) {
    const double x = golden_value(number, i);
    values.vec<double>()[i] = gain ? 1 + x / 2 : x;
  }
  parameter.value.copy_from(values.to(parameter.value.dtype()));
  ++parameter.version;
}

}  // namespace fovea::golden
