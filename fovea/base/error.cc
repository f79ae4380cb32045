// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/error.h"

#include <cstddef>
#include <utility>

namespace fovea {

namespace {

constexpr bool in_enum_order() {
  for (std::size_t i = 0; i < kErrorCodes.size(); ++i) {
    if (static_cast<std::size_t>(kErrorCodes[i].code) != i) return false;
  }
  return true;
}
static_assert(in_enum_order(), "kErrorCodes lists the codes in the order of the enum");

}  // namespace

const ErrorCodeInfo& info(ErrorCode code) { return kErrorCodes[static_cast<std::size_t>(code)]; }

Error::Error(ErrorCode code, const std::string& message, std::string hint)
    : std::runtime_error(message),
      code_(code),
      has_own_hint_(!hint.empty()),
      hint_(std::move(hint)) {
  if (!has_own_hint_) hint_ = info(code).hint;
}

Error Error::with(ErrorCode code, const std::string& message, std::string hint) const {
  return {code, message, has_own_hint_ ? hint_ : std::move(hint)};
}

}  // namespace fovea
