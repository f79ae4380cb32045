// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/parameter_kind.h"

#include <algorithm>
#include <string_view>

#include "fovea/base/words.h"

namespace fovea {

namespace {

bool has_number(std::string_view name) {
  const auto words = parts_between(name, '.');
  return std::any_of(words.begin(), words.end(), is_all_digits);
}

}  // namespace

ParameterKind kind_of(const Parameter& parameter) {
  const index axes = parameter.value.shape().axes();
  if (parameter.row_use == RowUse::kSparse) return ParameterKind::kTable;
  if (parameter.decay == Decay::kNo || axes < 2) return ParameterKind::kVector;
  const bool in_layer = axes == 2 && has_number(parameter.name);
  return in_layer ? ParameterKind::kLayerMatrix : ParameterKind::kMatrix;
}

ParameterSizes sizes_of(std::span<Parameter* const> parameters) {
  ParameterSizes sizes;
  for (const Parameter* p : parameters) {
    if (p->frozen) continue;
    const auto size = static_cast<double>(p->value.size());
    const ParameterKind kind = kind_of(*p);
    sizes.values[static_cast<std::size_t>(kind)] += size;
    if (kind != ParameterKind::kLayerMatrix || size <= sizes.rows * sizes.columns) continue;
    sizes.rows = static_cast<double>(p->value.shape()[0]);
    sizes.columns = static_cast<double>(p->value.shape()[1]);
  }
  return sizes;
}

}  // namespace fovea
