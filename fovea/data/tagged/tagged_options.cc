// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/tagged/tagged_options.h"

#include <algorithm>
#include <string>

#include "fovea/base/check.h"
#include "fovea/config/field.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

void require_different(std::string_view option, const std::vector<std::string>& columns) {
  for (auto column = columns.begin(); column != columns.end(); ++column) {
    if (std::find(columns.begin(), column, *column) == column) continue;
    throw Error(ErrorCode::kOptionValue, fmt::format("{}: {} is named twice", option, *column),
                "name each column once");
  }
}

}  // namespace

void check_options(const TaggedOptions& o) {
  check_ranges(o);
  for (const index column : o.tag_column) {
    if (column != o.word_column) continue;
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--tag-column: {} is the column of the word", column),
                "name two columns");
  }
  require_different("--tag-column", tag_columns(TaggedFormat::kConll, o));
  require_different("--column", tag_columns(TaggedFormat::kConllu, o));
}

std::vector<std::string> tag_columns(TaggedFormat format, const TaggedOptions& options) {
  std::vector<std::string> names;
  if (format == TaggedFormat::kConllu) {
    for (const ConlluColumn column : options.column) names.emplace_back(to_string(column));
    return names;
  }
  for (const index column : options.tag_column) {
    names.push_back(column == 0 ? "last" : std::to_string(column));
  }
  return names;
}

TaggedFormat format_of(std::string_view name, const TaggedOptions& options) {
  if (options.format != TaggedFormat::kAuto) return options.format;
  const std::string lower = lower_text(without_compression_suffix(name));
  if (lower.ends_with(".conllu")) return TaggedFormat::kConllu;
  return lower.ends_with(".seg") ? TaggedFormat::kWords : TaggedFormat::kConll;
}

}  // namespace fovea
