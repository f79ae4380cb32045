// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/setting_parts.h"

#include <fmt/core.h>

#include "fovea/base/error.h"
#include "fovea/base/option.h"
#include "fovea/text/sentencepiece/piece_model.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

void require_storable(const Field& field) {
  const std::string text = value_text(field);
  if (!find_invalid_utf8(text)) return;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{}: {}: not UTF-8, and a model cannot store it", option_name(field.name),
                          escape_text(text)),
              "write it in UTF-8; a file or folder can be renamed, or named by a link");
}

}  // namespace

void require_sound(std::span<const Field> settings, std::span<const Field> usual) {
  for (std::size_t n = 0; n < settings.size(); ++n) {
    require_storable(settings[n]);
    if (value_text(settings[n]) == value_text(usual[n])) continue;
    require_effect(settings[n], unmet_need(settings[n], settings));
  }
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

void require_subword_model(bool subwords, const std::string& file, std::string_view option) {
  require_together(!subwords || !file.empty(), "--tokenizer sentencepiece",
                   fmt::format("needs {} FILE.model", option),
                   "learn a model first: fovea tokenizer train --train FILE -o FILE.model");
}

LearnOptions with_subword_model(LearnOptions options, const std::string& file) {
  if (file.empty()) return options;
  options.model = piece_model_bytes(file);
  options.model_name = file;
  return options;
}

}  // namespace fovea
