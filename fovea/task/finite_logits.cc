// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/finite_logits.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "fovea/base/error.h"

namespace fovea {

void require_finite(Variable x, std::string_view what) {
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<const T> rows = x.value<T>();
    for (index n = 0; n < rows.rows; ++n) {
      const T* const row = rows[n];
      if (std::all_of(row, row + rows.columns, [](T y) { return std::isfinite(y); })) continue;
      throw Error(ErrorCode::kModelDamaged, fmt::format("{} is not finite", what),
                  "train the model again, or use an earlier checkpoint");
    }
  });
}

}  // namespace fovea
