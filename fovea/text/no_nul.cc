// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/no_nul.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "fovea/base/error.h"
#include "fovea/text/utf8.h"

namespace fovea {

void require_no_nul(std::string_view text, std::string_view name) {
  const std::size_t at = text.find('\0');
  if (at == std::string_view::npos) return;
  const std::string_view before = text.substr(0, at);
  const std::size_t end = before.rfind('\n');
  const std::size_t begin = end == std::string_view::npos ? 0 : end + 1;
  throw Error(ErrorCode::kEncoding,
              fmt::format("{}:{}:{}: expected text, got a NUL byte", name,
                          1 + std::count(before.begin(), before.end(), '\n'),
                          1 + count_characters(before.substr(begin))),
              looks_binary(text) ? encoding_hint(text) : std::string(kRemoveNuls));
}

}  // namespace fovea
