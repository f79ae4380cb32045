// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/same_run.h"

#include <fmt/format.h>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/config/json.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

namespace {

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
