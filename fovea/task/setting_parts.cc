// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/setting_parts.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include "fovea/base/check.h"
#include "fovea/base/error.h"
#include "fovea/base/option.h"
#include "fovea/config/json.h"
#include "fovea/tensor/checksum.h"
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

[[noreturn]] void fail_changed(std::string_view field, const std::string& began,
                               const std::string& given) {
  const std::string option = option_name(field);
  const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
  throw Error(ErrorCode::kConfig,
              fmt::format("cannot resume: {}: the run began with {}, given is {}", option,
                          shown(began), shown(given)),
              fmt::format("leave {} out, or train into another folder", option));
}

bool decides_updates(const Field& field, ScheduleKind schedule) {
  if (field.traits.resume == OnResume::kBySchedule) {
    return schedule != ScheduleKind::kConstant && schedule != ScheduleKind::kInverseSqrt;
  }
  return field.traits.resume == OnResume::kNoted;
}

std::string list_of(const std::vector<std::string>& files) {
  return files.empty() ? "no file" : fmt::format("{}", fmt::join(files, ", "));
}

}  // namespace

void require_sound(std::span<const Field> settings, std::span<const Field> usual) {
  for (std::size_t n = 0; n < settings.size(); ++n) {
    require_storable(settings[n]);
    if (value_text(settings[n]) == value_text(usual[n])) continue;
    require_effect(settings[n], unmet_need(settings[n], settings));
  }
}

void resolve_lengths(TrainOptions& recipe, index updates_per_epoch, const UsualLength& usual) {
  constexpr index kBetween = 50;
  const auto longer = [&](index length, index updates) {
    return length * updates_per_epoch < updates ? fmt::format("{}u", updates)
                                                : fmt::format("{}e", length);
  };
  if (recipe.stop_after == kAutoLength) recipe.stop_after = longer(usual.epochs, usual.fewest);
  if (recipe.eval_every == kAutoLength) recipe.eval_every = longer(1, kBetween);
  if (recipe.save_every == kAutoLength) recipe.save_every = longer(1, kBetween);
}

void check_recipe(TrainOptions recipe) {
  resolve_lengths(recipe, 1, {.epochs = 1});
  check_options(recipe);
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

void require_same_settings(const std::vector<Field>& before, const std::vector<Field>& now,
                           bool splits) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    const OnResume resume = before[i].traits.resume;
    const bool is_fixed = resume == OnResume::kNo || (splits && resume == OnResume::kUnlessSplit);
    if (!is_fixed || value_text(before[i]) == value_text(now[i])) continue;
    fail_changed(before[i].name, value_text(before[i]), value_text(now[i]));
  }
}

std::vector<std::string> changed_updates(const std::vector<Field>& before,
                                         const std::vector<Field>& now,
                                         const TrainOptions& recipe) {
  std::vector<std::string> changes;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::string old_value = value_text(before[i]), new_value = value_text(now[i]);
    if (!decides_updates(before[i], recipe.schedule) || old_value == new_value) continue;
    changes.push_back(fmt::format("{}: the checkpoint has {}; from now on it is {}",
                                  option_name(before[i].name), old_value, new_value));
  }
  return changes;
}

std::string stored_model_fingerprint(std::string_view config, const std::string& name) {
  const Json json = parse_json(config, {name, ErrorCode::kModelDamaged});
  const Json* model = json.get_if<Json::Object>() != nullptr ? json.find("model") : nullptr;
  if (model == nullptr) fail(ErrorCode::kModelDamaged, "{}: the key 'model' is missing", name);
  return xxh3_128(model->pretty());
}

void require_same_files(const RunFiles& was, const RunFiles& is) {
  if (was.fingerprint == is.fingerprint) return;
  if (was.train != is.train) fail_changed(is.train_option, list_of(was.train), list_of(is.train));
  if (was.valid != is.valid) fail_changed(is.valid_option, list_of(was.valid), list_of(is.valid));
  std::vector<std::string> files = was.train;
  files.insert(files.end(), was.valid.begin(), was.valid.end());
  throw Error(ErrorCode::kConfig,
              fmt::format("cannot resume: {}: the text has changed since the run began (its "
                          "fingerprint was {}, now it is {})",
                          list_of(files), was.fingerprint, is.fingerprint),
              fmt::format("restore the text, name where it is now with --{}, or train into "
                          "another folder",
                          is.train_option));
}

}  // namespace fovea
