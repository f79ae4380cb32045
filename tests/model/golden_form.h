// SPDX-License-Identifier: Apache-2.0
// The entries of golden.h.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/model/language_model.h"

namespace fovea::golden {

/// The gradient of one parameter: its norm, its product with golden_values(projection number), its
/// largest element.
struct Gradient {
  const char* name;
  double norm, projection, largest;
};

struct Form {
  const char* name;
  LanguageModelConfig config;  ///< its sizes are those of every form
  std::uint64_t step;          ///< of dropout
  double loss;
  double
      plain_largest;  ///< of PyTorch in float32: the largest relative error of loss and gradients
  double plain_norm;  ///< likewise: the norm of all errors of gradients over that of gradients
  std::vector<Gradient> gradients;
};

inline LanguageModelConfig form(void (*change)(LanguageModelConfig&)) {
  LanguageModelConfig c;
  change(c);
  return c;
}

}  // namespace fovea::golden
