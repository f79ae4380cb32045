// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/same_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "fovea/base/option.h"
#include "fovea/config/field.h"

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

bool is_fixed(const Field& field, bool splits) {
  if (field.name == "text.valid_fraction") return splits;
  constexpr std::array<std::string_view, 3> kFree = {"text.train", "text.valid", "text.batch_size"};
  return field.name.starts_with("model.") ||
         (field.name.starts_with("text.") &&
          std::find(kFree.begin(), kFree.end(), field.name) == kFree.end());
}

// Whether a field affects updates. How often the run is evaluated, saved or logged does not, nor
// do --patience and the end of the run, unless the schedule depends on that.
bool decides_updates(const Field& field, ScheduleKind schedule) {
  constexpr std::array<std::string_view, 6> kWatching = {
      "recipe.eval_every",    "recipe.save_every", "recipe.log_every",
      "recipe.observe_every", "recipe.patience",   "recipe.keep"};
  if (field.name == "text.batch_size") return true;
  if (field.name == "recipe.stop_after") {
    return schedule != ScheduleKind::kConstant && schedule != ScheduleKind::kInverseSqrt;
  }
  return field.name.starts_with("recipe.") &&
         std::find(kWatching.begin(), kWatching.end(), field.name) == kWatching.end();
}

std::string list_of(const std::vector<std::string>& files) {
  return files.empty() ? "no file" : fmt::format("{}", fmt::join(files, ", "));
}

}  // namespace

void require_same_run(const LanguageModelSettings& began, const LanguageModelSettings& given) {
  LanguageModelSettings was = began, is = given;
  // A size given as 0 equals the size that follows from the others.
  was.model = resolve(was.model);
  is.model.vocabulary = was.model.vocabulary;
  is.model = resolve(is.model);
  const bool splits = was.text.valid.empty() && is.text.valid.empty();
  const std::vector<Field> before = fields_of(was), now = fields_of(is);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!is_fixed(before[i], splits) || value_text(before[i]) == value_text(now[i])) continue;
    fail_changed(before[i].name, value_text(before[i]), value_text(now[i]));
  }
}

std::vector<std::string> changed_options(const LanguageModelSettings& checkpoint,
                                         const LanguageModelSettings& given) {
  LanguageModelSettings was = checkpoint, is = given;
  const std::vector<Field> before = fields_of(was), now = fields_of(is);
  std::vector<std::string> changes;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::string old_value = value_text(before[i]), new_value = value_text(now[i]);
    if (!decides_updates(before[i], is.recipe.schedule) || old_value == new_value) continue;
    changes.push_back(fmt::format("{}: the checkpoint has {}, given is {}",
                                  option_name(before[i].name), old_value, new_value));
  }
  return changes;
}

void require_same_text(const LanguageModelSettings& began, const RunIdentity& identity,
                       const LanguageModelRun& given) {
  if (identity.data == given.identity.data) return;
  const TextOptions& was = began.text;
  const TextOptions& is = given.settings.text;
  if (was.train != is.train) fail_changed("train", list_of(was.train), list_of(is.train));
  if (was.valid != is.valid) fail_changed("valid", list_of(was.valid), list_of(is.valid));
  std::vector<std::string> files = was.train;
  files.insert(files.end(), was.valid.begin(), was.valid.end());
  throw Error(ErrorCode::kConfig,
              fmt::format("cannot resume: {}: the text has changed since the run began (its "
                          "fingerprint was {}, now it is {})",
                          list_of(files), identity.data, given.identity.data),
              "restore the text, name where it is now with --train, or train into another folder");
}

}  // namespace fovea
