// SPDX-License-Identifier: Apache-2.0
#include "cli/run_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <span>
#include <utility>
#include <variant>

#include "cli/field_options.h"
#include "fovea/base/error.h"
#include "fovea/base/option.h"
#include "fovea/config/toml.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

// The name in help of the options of a nested struct: Text, Model, Training, Run.
std::string title_of(const Field& field) {
  std::string title(field.table_also.empty() ? field.table() : field.table_also);
  title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title;
}

// The paths that the field holds.
std::span<std::string> paths_of(const Field& field) {
  if (!field.traits.is_path) return {};
  if (auto* const* files = std::get_if<std::vector<std::string>*>(&field.target)) return **files;
  return {std::get<std::string*>(field.target), 1};
}

void make_absolute(std::string& file) {
  if (file.empty() || file == "-") return;  // standard input
  file = std::filesystem::absolute(file).lexically_normal().string();
}

}  // namespace

std::vector<OptionSpec> training_options(const std::vector<Field>& fields) {
  std::vector<OptionSpec> options = {{.name = "resume",
                                      .kind = OptionKind::kOptionalValue,
                                      .placeholder = "[=PATH]",
                                      .help = "continue from the newest checkpoint, or from PATH",
                                      .place = HelpPlace::kResume}};
  for (std::size_t begin = 0, end = 0; begin < fields.size(); begin = end) {
    while (end < fields.size() && fields[end].table() == fields[begin].table()) ++end;
    const std::span<const Field> group = std::span(fields).subspan(begin, end - begin);
    std::vector<OptionSpec> more = options_of(flags_of(group), title_of(group[0]));
    if (group[0].table() == "run") more = said_or_not(std::move(more));
    options.insert(options.end(), more.begin(), more.end());
  }
  options.insert(
      options.end(),
      {{"dump-config", OptionKind::kFlag, "", "print all settings as TOML, and end", "Run", ""},
       {"dry-run", OptionKind::kFlag, "",
        "print memory, FLOPs and time of the run, and write nothing", "Run", ""}});
  return options;
}

std::vector<std::string> read_settings(const std::vector<Field>& fields,
                                       const Arguments& arguments) {
  std::vector<std::string> set;
  if (arguments.has("config")) set = set_from_toml_file(fields, arguments.text("config"));
  const std::vector<std::string> outside = set_from_outside(flags_of(fields), arguments);
  set.insert(set.end(), outside.begin(), outside.end());
  for (const Field& field : fields) {
    for (std::string& file : paths_of(field)) make_absolute(file);
  }
  return set;
}

std::string settings_toml(const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    if (field.traits.only_command_line || !find_invalid_utf8(value_text(field))) continue;
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("{}: {}: not UTF-8, which TOML is", option_name(field.name), value_text(field)),
        "rename the file or folder, or name it by a link whose path is UTF-8");
  }
  return toml_text(fields);
}

void let_min_lr_follow(TrainOptions& recipe, const std::vector<std::string>& set, bool resumes) {
  const auto is_set = [&](std::string_view name) {
    return std::find(set.begin(), set.end(), name) != set.end();
  };
  if (!is_set("recipe.lr") || is_set("recipe.min_lr")) return;
  if (resumes && recipe.min_lr <= recipe.lr) return;
  recipe.min_lr = recipe.schedule == ScheduleKind::kConstant ? recipe.lr : recipe.lr / 10;
}

std::vector<std::string> paths_in(const std::vector<Field>& fields) {
  std::vector<std::string> files;
  for (const Field& field : fields) {
    const std::span<std::string> more = paths_of(field);
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

std::vector<std::string> warn_of_trained_files(const std::vector<std::string>& trained,
                                               const std::vector<std::string>& tested) {
  std::vector<std::string> lines;
  for (const std::string& file : tested) {
    const bool learned = std::any_of(trained.begin(), trained.end(), [&](const std::string& other) {
      std::error_code none;  // a file that is gone, or no file, is not the same
      return std::filesystem::equivalent(file, other, none);
    });
    if (!learned) continue;
    lines.push_back(
        fmt::format("{}: the model was trained on this file; of new texts it may know less", file));
    warn(lines.back());
  }
  return lines;
}

}  // namespace fovea::cli
