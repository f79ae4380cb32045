// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/embed/settings.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/task/embed/sentence_encoder.h"

namespace fovea {

namespace {

constexpr double kUsualLr = 2e-5, kUsualLastLr = 2e-6;  // as sentence-transformers trains

}  // namespace

EmbedSettings::EmbedSettings() {
  apply_encoder_recipe(recipe);
  recipe.lr = kUsualLr;
  recipe.min_lr = kUsualLastLr;
}

TableOptions table_options(const GroupTableOptions& options) {
  return {.format = options.format,
          .text_column = options.text_column,
          .second_column = options.second_column,
          .label_column = options.label_column,
          .header = options.header,
          .separator = options.separator,
          .bad_rows = options.bad_rows,
          .pairs = true,
          .more_texts = true,
          .more_columns = options.negative_columns,
          .labels = LabelUse::kNumbersOrNone};
}

std::vector<index> matryoshka_columns(const std::string& said, index width) {
  std::vector<index> columns;
  if (said.empty()) return columns;
  for (const std::string_view part : parts_between(said, ',')) {
    index number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_number = error == std::errc() && end == part.data() + part.size();
    if (!is_number || number < 1 || number > width) {
      fail_option("matryoshka", said,
                  fmt::format("numbers of columns in 1 to {}, with commas between", width));
    }
    columns.push_back(number);
  }
  std::ranges::sort(columns, std::greater<>());
  if (std::ranges::adjacent_find(columns) != columns.end()) {
    fail_option("matryoshka", said, "numbers that differ from each other");
  }
  return columns;
}

void take_base(EmbedSettings& settings, const std::vector<std::string>& set) {
  const std::string& base = settings.from.base;
  if (base.empty()) {
    throw Error(ErrorCode::kUsage, "train embed: no model to begin from",
                "name an encoder: --base MODEL");
  }
  EncoderBase read = read_encoder_base(base, BertHead::kNone);
  const SentenceSettings rules = sentence_settings_of_base(base, read);
  SentenceEncoderConfig theirs;
  take_layers(theirs, read.layers);
  theirs.pooling = rules.pooling;
  theirs.normalizes = rules.normalizes;
  theirs.prompt = rules.prompt;
  keep_dropouts(theirs, settings.model, set);
  settings.model = std::move(theirs);
  index& longest = settings.text.max_length;
  if (longest == 0) longest = rules.max_length;
  require_length(longest, read.text, base);
  keep_base(settings.from, std::move(read), set);
}

void check_options(const EmbedSettings& s) {
  check_recipe(s.recipe);
  check_options(table_options(s.text.table));
  check_encoder_options(s.from);
  check_fields(s, EmbedSettings());
  for (const std::string& column : s.text.table.negative_columns) {
    if (!column.empty()) continue;
    fail_option("negative_columns", column, "names of columns, or their numbers from 1");
  }
  matryoshka_columns(s.text.matryoshka, s.model.has_base() ? s.model.width : kLargestSize);
}

}  // namespace fovea
