// SPDX-License-Identifier: Apache-2.0
// Checks on entry, in release builds too: the message is formatted only when the check fails.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "fovea/base/error.h"

namespace fovea {

/// Tells the user what to do about one error, more precisely than the hint of its code (error.h).
/// It is passed before the message: check(ok, Hint{"make H a multiple of G"}, "attention: H is {},
/// G is {}", H, G).
struct Hint {
  std::string_view text;
};

template <class... Args>
[[noreturn]] void fail(ErrorCode code, Hint hint, fmt::format_string<Args...> message,
                       Args&&... args) {
  throw Error(code, fmt::format(message, std::forward<Args>(args)...), std::string(hint.text));
}
template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> message, Args&&... args) {
  throw Error(code, fmt::format(message, std::forward<Args>(args)...));
}

/// For shapes and sizes: throws Error(kShape) unless `ok`.
template <class... Args>
void check(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  if (!ok) fail(ErrorCode::kShape, message, std::forward<Args>(args)...);
}

template <class... Args>
void check(bool ok, Hint hint, fmt::format_string<Args...> message, Args&&... args) {
  if (!ok) fail(ErrorCode::kShape, hint, message, std::forward<Args>(args)...);
}

/// a * b; throws Error(kShape) if the product leaves the range of index. `what` names the product
/// in the message.
std::int64_t checked_product(std::int64_t a, std::int64_t b, std::string_view what);

}  // namespace fovea
