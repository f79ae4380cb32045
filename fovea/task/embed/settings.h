// SPDX-License-Identifier: Apache-2.0
// All settings of training a sentence encoder, as one list of fields.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/data/table/table_options.h"
#include "fovea/model/sentence_encoder.h"
#include "fovea/task/encoder_base.h"
#include "fovea/task/setting_parts.h"
#include "fovea/train/options.h"

namespace fovea {

/// What the vectors of a batch lose (model/vector_losses.h).
enum class EmbedObjectiveKind : std::uint8_t {
  kAuto,     ///< by the data
  kInfoNce,  ///< texts that belong together, among all texts of a batch
  kCosent,   ///< pairs of texts with scores
};
inline constexpr EnumName<EmbedObjectiveKind> kEmbedObjectiveNames[] = {
    {EmbedObjectiveKind::kAuto, "auto"},
    {EmbedObjectiveKind::kInfoNce, "infonce"},
    {EmbedObjectiveKind::kCosent, "cosent"}};
inline std::span<const EnumName<EmbedObjectiveKind>> enum_names(EmbedObjectiveKind) {
  return kEmbedObjectiveNames;
}

/// The metric by which the best weights are chosen.
enum class EmbedMetric : std::uint8_t { kAuto, kLoss, kMrr, kSpearman };
inline constexpr EnumName<EmbedMetric> kEmbedMetricNames[] = {{EmbedMetric::kAuto, "auto"},
                                                              {EmbedMetric::kLoss, "loss"},
                                                              {EmbedMetric::kMrr, "mrr"},
                                                              {EmbedMetric::kSpearman, "spearman"}};
inline std::span<const EnumName<EmbedMetric>> enum_names(EmbedMetric) { return kEmbedMetricNames; }

/// How files of groups of texts are read.
struct GroupTableOptions {
  TableFormat format = TableFormat::kAuto;
  std::string text_column = {}, second_column = {};
  std::vector<std::string> negative_columns = {};
  std::string label_column = {};
  HeaderRow header = HeaderRow::kAuto;
  std::string separator = {};
  BadRows bad_rows = BadRows::kStop;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("format", format, "format of the files; auto: by name or content");
    visit("text_column", text_column,
          "column of the anchor, or the first text: its name, or its number from 1",
          {.shown = "NAME|N"});
    visit("second_column", second_column,
          "column of the text that belongs to it, or the second text", {.shown = "NAME|N"});
    visit("negative_columns", negative_columns,
          "columns of texts that do not belong to it; not said: those whose names begin with "
          "negative, or without names all further ones",
          {.shown = "NAME|N,..."});
    visit("label_column", label_column, "column of the score of two texts", {.shown = "NAME|N"});
    visit("header", header, "whether the first row of TSV or CSV names the columns");
    visit("separator", separator, "--format tsv and csv: the character between columns",
          {.shown = "CHARACTER"});
    visit("bad_rows", bad_rows, "rows that cannot be read: an error, or left out and counted",
          {.resume = OnResume::kQuiet});
  }
};

/// As the readers of tables have them.
TableOptions table_options(const GroupTableOptions& options);

/// The texts, and what is made of them. In the settings of a stored model, objective is never
/// "auto" and max_length never 0.
struct EmbedTextOptions {
  std::vector<std::string> train;
  std::vector<std::string> valid;
  double valid_fraction = 0.1;
  GroupTableOptions table;
  EmbedObjectiveKind objective = EmbedObjectiveKind::kAuto;
  double temperature = 0.05;
  std::string matryoshka;
  EmbedMetric metric = EmbedMetric::kAuto;
  index max_length = 0;
  index batch_size = 32;
  index micro_batch = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("train", train, "files of texts that belong together, or have scores, to train on",
          kDataFiles);
    visit("valid", valid, "files of such texts to validate on", kDataFiles);
    visit("valid_fraction", valid_fraction,
          "without --valid: this part of the rows, drawn at random, is for validation", kDataSplit);
    table.visit_fields(under("Files", visit));
    visit("objective", objective,
          "infonce: a text is nearer to its anchor than all other texts of the batch; cosent: "
          "cosines have the order of the scores; auto: by the files, cosent if they have scores",
          {.resume = OnResume::kNoted, .place = HelpPlace::kModel});
    visit("temperature", temperature, "by which cosines are divided in the loss",
          {.range = ValueRange::over(0), .resume = OnResume::kNoted});
    visit("matryoshka", matryoshka,
          "the loss is the sum of those of the first N columns of the vectors, for each N, such as "
          "384,128,64: vectors that are truncated to so many are good, too",
          {.resume = OnResume::kNoted, .shown = "N,..."});
    visit("metric", metric,
          "metric of the validation by which the best weights are chosen; auto: spearman of "
          "scores, else mrr");
    visit("max_length", max_length, "most tokens of a text; 0: as the base has it",
          {.range = ValueRange::in(0, kLargestSize, "as the base has it")});
    visit("batch_size", batch_size, "rows per batch: each is compared with all others", kBatchSize);
    visit("micro_batch", micro_batch,
          "texts at once: a larger batch is made in parts, each twice, in less memory (gradient "
          "caching); 0: all of the batch",
          {.range = ValueRange::in(0, kLargestSize, "all of the batch"),
           .resume = OnResume::kNoted,
           .place = HelpPlace::kTraining});
  }
};

struct EmbedSettings {
  EmbedSettings();

  EmbedTextOptions text;
  SentenceEncoderConfig model;
  TrainOptions recipe;
  EncoderBaseOptions from;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit_groups(visit, *this);
    visit("from", from, "the model to begin from", {.resume = OnResume::kNo});
  }
};

/// The numbers of --matryoshka, descending; none: all columns alone. Throws kOptionValue unless
/// each is in 1 to `width`.
std::vector<index> matryoshka_columns(const std::string& said, index width);

/// Takes from settings.from.base its layers, its pooling and its tokens. `set`: the names of the
/// fields that a user has set. Throws kUsage without a base, kOptionValue for a --max-length that
/// the base does not have, and what reading the base throws.
void take_base(EmbedSettings& settings, const std::vector<std::string>& set);

/// Throws kOptionValue, which names the option, for an invalid value of text or recipe.
void check_options(const EmbedSettings& settings);

}  // namespace fovea
