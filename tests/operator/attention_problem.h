// SPDX-License-Identifier: Apache-2.0
// Tensors of calls of attention, by name.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "fovea/operator/attention_call.h"
#include "fovea/operator/attention_tensors.h"

namespace fovea {

inline const Tensor& at(const std::vector<NamedTensor>& tensors, std::string_view name) {
  return std::find_if(tensors.begin(), tensors.end(),
                      [&](const NamedTensor& named) { return named.name == name; })
      ->tensor;
}

/// q, k and v of B 2, T 3, S 5, H 2, G 1, D 8, Dv 4, all 0, and more.
inline AttentionTensors tensors_with(const std::vector<NamedTensor>& more) {
  std::vector<NamedTensor> all = {
      {"q", Tensor({2, 3, 2, 8})}, {"k", Tensor({2, 5, 1, 8})}, {"v", Tensor({2, 5, 1, 4})}};
  for (const NamedTensor& named : more) all.push_back(named);
  return {all, attention_tensor_specs(), "in.npz"};
}

}  // namespace fovea
