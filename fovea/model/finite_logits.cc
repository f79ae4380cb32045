// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/finite_logits.h"

#include <algorithm>
#include <cmath>

#include "fovea/base/check.h"

namespace fovea {

namespace {

template <class T>
bool all_finite(const T* values, index count) {
  return std::all_of(values, values + count, [](T x) { return std::isfinite(x); });
}

[[noreturn]] void fail_not_finite(std::string_view what) {
  fail(ErrorCode::kModelDamaged, Hint{"train the model again, or use an earlier checkpoint"},
       "{} is not finite", what);
}

}  // namespace

bool is_finite(Variable x) {
  bool finite = true;
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<const T> rows = x.value<T>();
    for (index n = 0; n < rows.rows; ++n) finite = finite && all_finite(rows[n], rows.columns);
  });
  return finite;
}

void require_finite(Variable x, std::string_view what) {
  if (!is_finite(x)) fail_not_finite(what);
}

void require_finite(const Parameter& parameter) {
  const Vec<const float> values = parameter.value.vec<float>();
  if (!all_finite(values.data, values.size)) fail_not_finite(parameter.name);
}

}  // namespace fovea
