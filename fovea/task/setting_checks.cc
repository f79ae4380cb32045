// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/setting_checks.h"

#include <fmt/core.h>

#include "fovea/base/error.h"
#include "fovea/base/option.h"
#include "fovea/text/utf8.h"

namespace fovea {

void require_storable(const std::string& text, std::string_view option) {
  if (!find_invalid_utf8(text)) return;
  throw Error(
      ErrorCode::kOptionValue,
      fmt::format("--{}: {}: not UTF-8, and a model cannot store it", option, escape_text(text)),
      "write it in UTF-8; a file or folder can be renamed, or named by a link");
}

void require_together(bool ok, std::string_view options, std::string_view why,
                      std::string_view hint) {
  if (ok) return;
  throw Error(ErrorCode::kOptionValue, fmt::format("{}: {}", options, why), std::string(hint));
}

void require_effect(const Field& setting, std::string_view needs) {
  if (needs.empty()) return;
  const std::string option = option_name(setting.name), value = value_text(setting);
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{}: has no effect without {}",
                          value == "true" ? option : option + " " + value, needs),
              fmt::format("leave {} out, or choose {}", option, needs));
}

}  // namespace fovea
