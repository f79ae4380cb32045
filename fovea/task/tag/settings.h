// SPDX-License-Identifier: Apache-2.0
// All settings of training a tagger, as one list of fields.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/model/tagger.h"
#include "fovea/task/encoder_base.h"
#include "fovea/task/setting_parts.h"
#include "fovea/text/vocabulary.h"
#include "fovea/train/options.h"

namespace fovea {

/// The units that get tags.
enum class TagTask {
  kTag,      ///< each word of a sentence
  kSegment,  ///< each character, by where in a word it is: the tags are words
};
inline constexpr EnumName<TagTask> kTagTaskNames[] = {{TagTask::kTag, "tag"},
                                                      {TagTask::kSegment, "segment"}};
inline std::span<const EnumName<TagTask>> enum_names(TagTask) { return kTagTaskNames; }

/// The parts of a word that a tagger reads.
enum class WordCut {
  kCharacters,
  kSubwords,  ///< the pieces of a .model file
};
inline constexpr EnumName<WordCut> kWordCutNames[] = {{WordCut::kCharacters, "char"},
                                                      {WordCut::kSubwords, kPieceKind}};
inline std::span<const EnumName<WordCut>> enum_names(WordCut) { return kWordCutNames; }

/// How tags mark spans (metrics/tag_scheme.h).
enum class SchemeChoice {
  kAuto,  ///< as the tags of the training text are
  kNone,  ///< they mark no spans
  kIob1,
  kBio,
  kBioes,
  kBmes
};
inline constexpr EnumName<SchemeChoice> kSchemeChoiceNames[] = {
    {SchemeChoice::kAuto, "auto"}, {SchemeChoice::kNone, "none"},   {SchemeChoice::kIob1, "iob1"},
    {SchemeChoice::kBio, "bio"},   {SchemeChoice::kBioes, "bioes"}, {SchemeChoice::kBmes, "bmes"}};
inline std::span<const EnumName<SchemeChoice>> enum_names(SchemeChoice) {
  return kSchemeChoiceNames;
}

/// The metric by which the best weights are chosen.
enum class TaggerMetric { kAuto, kLoss, kAccuracy, kSpanF1 };
inline constexpr EnumName<TaggerMetric> kTaggerMetricNames[] = {
    {TaggerMetric::kAuto, "auto"},
    {TaggerMetric::kLoss, "loss"},
    {TaggerMetric::kAccuracy, "accuracy"},
    {TaggerMetric::kSpanF1, "span-f1"}};
inline std::span<const EnumName<TaggerMetric>> enum_names(TaggerMetric) {
  return kTaggerMetricNames;
}

/// The sentences, and what becomes of them. In the settings of a stored model, scheme is never
/// "auto", and there is one for each tag column.
struct TaggerTextOptions {
  std::vector<std::string> train;
  std::vector<std::string> valid;
  double valid_fraction = 0.1;
  TagTask task = TagTask::kTag;
  bool joint = false;
  TaggedOptions table;
  std::vector<SchemeChoice> scheme = {SchemeChoice::kAuto};  ///< of all tag columns, or of each
  TaggerMetric metric = TaggerMetric::kAuto;
  bool lower = true;
  index min_count = 1;
  double word_dropout = 0.5;
  WordCut tokenizer = WordCut::kCharacters;
  std::string tokenizer_model;
  double subword_sampling = 0;
  std::string embeddings;
  index max_length = 1024;
  index batch_size = 16;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("train", train, "files of tagged sentences to train on", kDataFiles);
    visit("valid", valid, "files of tagged sentences to validate on", kDataFiles);
    visit("valid_fraction", valid_fraction,
          "without --valid: this part of the sentences, drawn at random, is for validation",
          kDataSplit);
    visit("task", task, "what is tagged: words, or the characters of words that are to be found",
          {.place = HelpPlace::kData});
    visit("joint", joint, "--task segment: the tags of the words are learned, too",
          {.needs = {"task", "segment"}});
    table.visit_fields(under("Files", visit));
    visit("scheme", scheme,
          "how tags mark spans, such as names: they are converted to it; auto: as they are; with "
          "commas one for each tag column");
    visit("metric", metric, "metric of the validation by which the best weights are chosen");
    visit("lower", lower,
          "put words into lower case; their characters and shapes stay as they are");
    visit("min_count", min_count, "words seen less often are read as unknown",
          {.range = ValueRange::from(1)});
    visit("word_dropout", word_dropout,
          "probability that a word seen once is read as unknown, in training",
          {.range = ValueRange::in(0, 1), .resume = OnResume::kNoted});
    visit("tokenizer", tokenizer,
          "what is read inside of a word: its characters, or the subwords of --tokenizer-model");
    visit("tokenizer_model", tokenizer_model,
          "--tokenizer sentencepiece: the .model file whose pieces are the subwords",
          {.needs = {"tokenizer", kPieceKind}, .is_path = true});
    visit("subword_sampling", subword_sampling, kSubwordSamplingHelp,
          {.range = ValueRange::in(0, 1), .needs = {"tokenizer", kPieceKind}});
    visit("embeddings", embeddings, kEmbeddingsHelp, {.is_path = true});
    visit("max_length", max_length,
          "most words that the model sees at once; longer sentences are read in pieces",
          {.range = ValueRange::in(1, kLargestSize)});
    visit("batch_size", batch_size, "sentences per batch", kBatchSize);
  }
};

struct TaggerSettings {
  TaggerSettings() : TaggerSettings(TagTask::kTag) {}
  /// The defaults of this task.
  explicit TaggerSettings(TagTask task);

  TaggerTextOptions text;
  TaggerConfig model;
  TrainOptions recipe;
  EncoderBaseOptions from;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit_groups(visit, *this);
    visit("from", from, "the model to begin from", {.resume = OnResume::kNo});
  }
};

/// Whether the model has a vocabulary of characters, or of subwords: not a segmenter, whose words
/// are characters.
bool reads_characters(const TaggerSettings& settings);
/// The names of the tag columns, as the options give them for the first file to train on.
std::vector<std::string> column_names(const TaggerTextOptions& text);
/// How the tags of a column mark spans.
inline SchemeChoice scheme_of_column(const TaggerTextOptions& text, std::size_t column) {
  return text.scheme.size() == 1 ? text.scheme[0] : text.scheme.at(column);
}

/// Recipe and batches with which an encoder that is trained already goes on, where nobody says
/// more.
void apply_base_recipe(TaggerSettings& settings);

/// Takes from settings.from.base what it decides: the layers and the subwords. `set`: the names of
/// the fields that a user has set. Throws kOptionValue for one of them that the base has otherwise,
/// or that has no effect with a base, and what reading the base throws.
void take_base(TaggerSettings& settings, const std::vector<std::string>& set);

/// Whether a field of these settings has no effect on a model that begins from an encoder.
bool is_idle_with_tagger_base(std::string_view field);

/// How long a run is by default.
inline constexpr index kTaggerEpochs = 30;

/// Throws kOptionValue, which names the option, for an invalid value of text or recipe.
void check_options(const TaggerSettings& settings);

/// For a new run: throws kOptionValue for an option that is not as usual and has no effect.
/// `resolved`: the model of the settings, with sizes that need not be its own. (Older builds began
/// runs with such options, which are resumed.)
void require_effects(const TaggerSettings& settings, const TaggerConfig& resolved);

}  // namespace fovea
