// SPDX-License-Identifier: Apache-2.0
// Checks on entry, in release builds too: the message is formatted only when the check fails.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "fovea/base/error.h"

namespace fovea {

template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> message, Args&&... args) {
  throw Error(code, fmt::format(message, std::forward<Args>(args)...));
}

/// For shapes and sizes: throws Error(kShape) unless `ok`.
template <class... Args>
void check(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  if (!ok) fail(ErrorCode::kShape, message, std::forward<Args>(args)...);
}

/// a * b, or Error(kShape) when that leaves the range of index. `what` names the product.
std::int64_t checked_product(std::int64_t a, std::int64_t b, std::string_view what);

}  // namespace fovea
