// SPDX-License-Identifier: Apache-2.0
// The files of a translator, and what loading one takes.
#include "fovea/task/translate/translator.h"

#include <algorithm>
#include <string>

#include "fovea/base/check.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/translator.h"
#include "fovea/task/load_parts.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

ModelSizes sizes_of(const TranslatorConfig& config) {
  const TranslatorConfig c = resolve(config);
  const index positions = c.position == PositionKind::kLearned ? c.position_max : 0;
  const index rows = std::max({c.vocabulary, c.target_vocabulary, c.ff, positions});
  return {.layers = layer_count(encoder_stages(c)) + c.decoder_layers,
          .largest_matrix = static_cast<double>(c.width) * static_cast<double>(rows),
          .parameters = [c] { return parameter_count(c); },
          .bytes = [c] { return model_memory(c); }};
}

void require_marks(const Tokenizer& tokenizer, const fs::path& folder) {
  const SpecialTokens marks = tokenizer.special();
  if (marks.begin != kNoToken && marks.end != kNoToken) return;
  fail(ErrorCode::kModelDamaged, "{}: expected tokenizers with begin and end marks",
       folder.string());
}

}  // namespace

std::string config_text(const TranslatorSettings& settings) {
  SettingsFile<TranslatorSettings> file{std::string(kTranslatorKind), settings};
  return to_json(file);
}

TranslatorSettings translator_settings_from_text(std::string_view text, const std::string& name) {
  SettingsFile<TranslatorSettings> file{std::string(kTranslatorKind)};
  return config_from_text(std::move(file), text, name, "a translator").settings;
}

// Beside the parameters, tables of sines that each side has for itself.
double model_memory(const TranslatorConfig& config) {
  const TranslatorConfig c = resolve(config);
  double table = 0;
  for (const EncoderConfig& side : {encoder_of(c), decoder_of(c)}) {
    if (side.position != PositionKind::kSinusoidal) continue;
    table += static_cast<double>(side.position_max) * static_cast<double>(side.width);
  }
  return 4 * (static_cast<double>(parameter_count(c)) + table);
}

TranslatorVocabulary load_vocabulary(const fs::path& folder, const TranslatorSettings& settings) {
  const TranslatorConfig& config = settings.model;
  TranslatorVocabulary vocabulary{.of_source = load_tokenizer(folder, config.vocabulary),
                                  .of_target = nullptr};
  if (!settings.text.shared_vocabulary) {
    vocabulary.of_target = load_tokenizer(folder, config.target_vocabulary, kTargetTokenizerName);
  }
  require_marks(vocabulary.source(), folder);
  require_marks(vocabulary.target(), folder);
  return vocabulary;
}

Translator load_weights_of(const fs::path& folder, const TranslatorConfig& config,
                           std::uint64_t seed) {
  return std::move(*load_model<Translator>(folder, sizes_of, config, seed));
}

namespace {

// The search of transformers.
SearchOptions search_by(const TranslationRules& rules) {
  const Prospect prospect = rules.early_stop == EarlyStop::kNever ? Prospect::kOfBeamAtBestLength
                                                                  : Prospect::kOfBeamAtThisLength;
  return {.beam = rules.beams,
          .length_penalty = rules.length_penalty,
          .length_norm = LengthNorm::kMarian,
          .patience = rules.early_stop == EarlyStop::kYes ? 1.0 : 0.0,
          .most_tokens = rules.most_tokens,
          .prospect = prospect,
          .free_end = rules.forced_end,
          .open_end = !rules.forced_end,
          .shares_rest = rules.renormalizes};
}

LoadedTranslator load_foreign(const fs::path& folder) {
  ForeignTranslator read = load_foreign_translator(folder);
  LoadedTranslator loaded;
  loaded.settings.model = read.config;
  loaded.settings.text.tokenizer = loaded.settings.text.target_tokenizer = kPretrainedKind;
  loaded.vocabulary = {.of_source = std::move(read.vocabularies.of_source),
                       .of_target = std::move(read.vocabularies.of_target),
                       .is_foreign = true,
                       .cleans = read.vocabularies.cleans,
                       .marks = std::move(read.vocabularies.marks)};
  std::erase(read.rules.ends, loaded.vocabulary.target().special().end);
  loaded.vocabulary.more_ends = std::move(read.rules.ends);
  loaded.model = std::move(read.model);
  loaded.search = search_by(read.rules);
  return loaded;
}

}  // namespace

LoadedTranslator load_translator(const fs::path& folder) {
  if (is_hugging_face(folder)) return load_foreign(folder);
  LoadedTranslator loaded;
  loaded.settings = translator_settings_from_text(read_model_file(folder, "config.json"),
                                                  (folder / "config.json").string());
  loaded.vocabulary = load_vocabulary(folder, loaded.settings);
  loaded.model =
      load_model<Translator>(folder, sizes_of, loaded.settings.model, loaded.settings.recipe.seed);
  return loaded;
}

}  // namespace fovea
