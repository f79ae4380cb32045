// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/tagged/tagged_options.h"

#include <string>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"

namespace fovea {

void check_options(const TaggedOptions& o) {
  constexpr index kMostColumns = 10000;
  require_option(o.word_column >= 1 && o.word_column <= kMostColumns, "word_column", o.word_column,
                 "in 1 to {}", kMostColumns);
  require_option(o.tag_column >= 0 && o.tag_column <= kMostColumns, "tag_column", o.tag_column,
                 "0 (the last), or in 1 to {}", kMostColumns);
  if (o.tag_column == o.word_column) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--tag-column: {} is the column of the word", o.tag_column),
                "name two columns");
  }
}

TaggedFormat format_of(std::string_view name, const TaggedOptions& options) {
  if (options.format != TaggedFormat::kAuto) return options.format;
  const std::string lower = lower_text(without_compression_suffix(name));
  if (lower.ends_with(".conllu")) return TaggedFormat::kConllu;
  return lower.ends_with(".seg") ? TaggedFormat::kWords : TaggedFormat::kConll;
}

}  // namespace fovea
