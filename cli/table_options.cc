// SPDX-License-Identifier: Apache-2.0
#include "cli/table_options.h"

#include <algorithm>

#include "fovea/base/error.h"
#include "fovea/base/option.h"
#include "fovea/config/field.h"

namespace fovea::cli {

std::vector<Flag> table_flags(TableOptions& table) { return flags_of(fields_of(table)); }

std::vector<Flag> text_table_flags(TableOptions& table) {
  std::vector<Flag> flags = table_flags(table);
  std::erase_if(flags, [](const Flag& flag) {
    return flag.name == "label-column" || flag.name == "label-separator" ||
           flag.name == "second-column";
  });
  return flags;
}

std::vector<Flag> pair_table_flags(TableOptions& table) {
  std::vector<Flag> flags = table_flags(table);
  std::erase_if(flags, [](const Flag& flag) {
    return flag.name == "label-column" || flag.name == "label-separator";
  });
  return flags;
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
