// SPDX-License-Identifier: Apache-2.0
#include "cli/tag_options.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/field_options.h"
#include "fovea/base/error.h"
#include "fovea/base/option.h"

namespace fovea::cli {

namespace {

std::vector<Field> settable_fields(TrainTagOptions& options) {
  return settable(fields_of(options));
}

}  // namespace

std::vector<OptionSpec> train_tag_options() {
  TrainTagOptions defaults;
  return training_options(settable_fields(defaults));
}

RunOptions tag_run_options(const Arguments& arguments) {
  TrainTagOptions options;
  read_settings(settable_fields(options), arguments);
  return options.run;
}

TaggerSettings tag_defaults(const Arguments& arguments) {
  TrainTagOptions options;
  read_settings(settable_fields(options), arguments);
  return TaggerSettings(options.settings.text.task);
}

std::vector<std::string> defaults_of_segment() {
  TrainTagOptions words, characters{.settings = TaggerSettings(TagTask::kSegment), .run = {}};
  const std::vector<Flag> usual = flags_of(settable_fields(words)),
                          other = flags_of(settable_fields(characters));
  std::vector<std::string> changed;
  for (std::size_t n = 0; n < usual.size(); ++n) {
    if (usual[n].name == "task" || usual[n].default_text == other[n].default_text) continue;
    changed.push_back(
        other[n].kind == FlagKind::kSwitch
            ? fmt::format("--{}{}", other[n].default_text == "true" ? "" : "no-", other[n].name)
            : fmt::format("--{} {}", other[n].name, other[n].default_text));
  }
  return changed;
}

TaggerSettings tag_settings(TaggerSettings begin, const Arguments& arguments) {
  TrainTagOptions options{.settings = std::move(begin), .run = {}};
  const std::vector<std::string> set = read_settings(settable_fields(options), arguments);
  let_min_lr_follow(options.settings.recipe, set, arguments.has("resume"));
  const bool sized = std::find(set.begin(), set.end(), "model.word_width") != set.end();
  if (!options.settings.text.embeddings.empty() && !sized && !arguments.has("resume")) {
    options.settings.model.word_width = 0;  // that of the vectors
  }
  return options.settings;
}

std::string config_toml(const TaggerSettings& settings, const RunOptions& run) {
  TrainTagOptions options{.settings = settings, .run = run};
  return settings_toml(settable_fields(options));
}

std::vector<Flag> tagged_flags(TaggedOptions& table) { return flags_of(fields_of(table)); }

std::vector<Flag> untagged_flags(TaggedOptions& table) {
  std::vector<Flag> flags = tagged_flags(table);
  std::erase_if(
      flags, [](const Flag& flag) { return flag.name == "tag-column" || flag.name == "column"; });
  return flags;
}

void require_column_effect(std::string_view command, std::span<const std::string> said,
                           std::span<const std::string> files, const TaggedOptions& table) {
  const auto has = [&](TaggedFormat format) {
    return std::any_of(files.begin(), files.end(),
                       [&](const std::string& file) { return format_of(file, table) == format; });
  };
  for (const std::string& name : said) {
    if (name == "format") continue;
    const bool is_conllu = name == "column";
    if (has(is_conllu ? TaggedFormat::kConllu : TaggedFormat::kConll)) continue;
    const std::string_view format = is_conllu ? "conllu" : "conll";
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: {} has no effect: no file is of the format {}", command,
                            option_name(name), format),
                fmt::format("leave it out, or say --format {} if the file is", format));
  }
}

}  // namespace fovea::cli
