// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/check.h"

namespace fovea {

std::int64_t checked_product(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t product = 0;
  check(!__builtin_mul_overflow(a, b, &product), Hint{"make the sizes smaller"},
        "{}: {} x {} is too large to count", what, a, b);
  return product;
}

}  // namespace fovea
