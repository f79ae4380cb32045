// SPDX-License-Identifier: Apache-2.0
// The type of the rows of a call on tensors of PyTorch.
#pragma once

#include "fovea/base/check.h"
#include "fovea/base/precision.h"

namespace fovea::python {

/// The type of q, k, v, o and their gradients, as _shapes.ROW_TYPES numbers them. Others are Wide.
enum class RowType : int { kFloat32, kFloat64, kBFloat16 };

/// f(T{}).
template <class F>
auto with_row_type(int type, F&& f) {
  switch (static_cast<RowType>(type)) {
    case RowType::kFloat32:
      return f(float{});
    case RowType::kFloat64:
      return f(double{});
    case RowType::kBFloat16:
      return f(BFloat16{});
  }
  fail(ErrorCode::kInternal, "rows are of type {}", type);
}

}  // namespace fovea::python
