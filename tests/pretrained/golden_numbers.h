// SPDX-License-Identifier: Apache-2.0
// The weights of models in golden vectors: those of numbers() in the scripts that make them.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

class GoldenNumbers {
 public:
  explicit GoldenNumbers(std::uint64_t first = 1) : at_(first) {}

  std::vector<float> next(index count) {
    std::vector<float> values;
    for (; count > 0; --count, ++at_) {
      const auto whole = static_cast<std::uint32_t>(at_ * 2654435761 + at_ * at_ * 40503);
      values.push_back(static_cast<float>((static_cast<double>(whole) / 0x1p32 - 0.5) * 0.8));
    }
    return values;
  }

 private:
  std::uint64_t at_;
};

}  // namespace fovea
