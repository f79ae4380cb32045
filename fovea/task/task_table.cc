// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/task_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "fovea/base/error.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/encoder.h"
#include "fovea/pretrained/translator.h"
#include "fovea/task/classify/run.h"
#include "fovea/task/embed/evaluate.h"
#include "fovea/task/embed/run.h"
#include "fovea/task/embed/sentence_encoder.h"
#include "fovea/task/language_model/evaluate_preferences.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/task/tag/run.h"
#include "fovea/task/translate/translator.h"
#include "fovea/tensor/checksum.h"
#include "fovea/text/vocabulary.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

using Text = std::string_view;
using Name = const std::string&;

constexpr std::string_view kFilesOfWords[] = {kWordListName};
constexpr std::string_view kLanguageModelFiles[] = {kWordListName, kReferenceName};
constexpr std::string_view kTaggerFiles[] = {kWordListName, kCharactersName, kKnownWordsName};
constexpr std::string_view kTranslatorFiles[] = {kWordListName, kTargetWordListName,
                                                 kTargetTokenizerName};

constexpr TaskRow kTasks[] = {
    {.kind = ModelKind::kLanguageModel,
     .key = kLanguageModelKind,
     .name = {"language model", "语言模型"},
     .files = kLanguageModelFiles,
     .scores = [](Text task) { return task == kPreferenceTask; },
     .check_config = [](Text config, Name name) { settings_from_text(config, name); },
     .loss_unit = [](Text config,
                     Name name) { return loss_unit_of(settings_from_text(config, name)); }},
    {.kind = ModelKind::kClassifier,
     .key = kClassifierKind,
     .name = {"classifier", "分类器"},
     .files = kFilesOfWords,
     .scores = [](Text task) { return find_enum<ClassifierTask>(task).has_value(); },
     .check_config = [](Text config, Name name) { classifier_config_from_text(config, name); },
     .loss_unit =
         [](Text config, Name name) {
           return loss_unit_of(classifier_config_from_text(config, name).settings.model);
         }},
    {.kind = ModelKind::kTagger,
     .key = kTaggerKind,
     .name = {"tagger", "标注器"},
     .files = kTaggerFiles,
     .scores = [](Text task) { return find_enum<TagTask>(task).has_value(); },
     .check_config = [](Text config, Name name) { tagger_config_from_text(config, name); },
     .loss_unit =
         [](Text config, Name name) {
           return loss_unit_of(tagger_config_from_text(config, name).settings.text.task);
         }},
    {.kind = ModelKind::kTranslator,
     .key = kTranslatorKind,
     .name = {"translator", "翻译器"},
     .files = kTranslatorFiles,
     .scores = [](Text task) { return task == "translate"; },
     .check_config = [](Text config, Name name) { translator_settings_from_text(config, name); },
     .loss_unit = [](Text, Name) { return kNatsPerToken; }},
    {.kind = ModelKind::kSentenceEncoder,
     .key = kSentenceEncoderKind,
     .name = {"sentence encoder", "句向量模型"},
     .files = {},
     .scores = [](Text task) { return task == kSimilarityTask || task == kRetrievalTask; },
     .check_config = [](Text config, Name name) { embed_settings_from_text(config, name); },
     .loss_unit = [](Text config,
                     Name name) { return loss_unit_of(embed_settings_from_text(config, name)); }},
};

// "a", "b" or "c"
std::string known_keys() {
  std::string keys;
  const auto last = std::size(kTasks) - 1;
  for (std::size_t n = 0; n <= last; ++n) {
    keys += fmt::format("{}\"{}\"", n == 0 ? "" : n == last ? " or " : ", ", kTasks[n].key);
  }
  return keys;
}

}  // namespace

std::span<const TaskRow> task_table() { return kTasks; }

const TaskRow& task_row(ModelKind kind) {
  return *std::find_if(std::begin(kTasks), std::end(kTasks),
                       [&](const TaskRow& row) { return row.kind == kind; });
}

ModelKind kind_of_model(const std::filesystem::path& folder) {
  if (is_hugging_face(folder)) {
    const BertHead head = encoder_head(folder);
    if (head == BertHead::kText) return ModelKind::kClassifier;
    if (head == BertHead::kTokens) return ModelKind::kTagger;
  }
  if (is_encoder(folder)) return ModelKind::kSentenceEncoder;
  if (is_foreign_translator(folder)) return ModelKind::kTranslator;
  if (is_pretrained(folder)) return ModelKind::kLanguageModel;
  const std::string name = (folder / "config.json").string();
  const Json json =
      parse_json(read_model_file(folder, "config.json"), {name, ErrorCode::kModelDamaged});
  const Json* kind = json.get_if<Json::Object>() == nullptr ? nullptr : json.find("kind");
  const std::string text = kind == nullptr ? "none" : kind->line();
  for (const TaskRow& row : kTasks) {
    if (text == fmt::format("\"{}\"", row.key)) return row.kind;
  }
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: expected \"kind\": {}, got {}", name, known_keys(), text),
              "name the folder of a model that fovea train has written");
}

std::string config_checksum(const std::filesystem::path& folder) {
  if (is_pretrained(folder)) return pretrained_checksum(folder);
  return xxh3_128(read_model_file(folder, "config.json"));
}

}  // namespace fovea
