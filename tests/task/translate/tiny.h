// SPDX-License-Identifier: Apache-2.0
// A translator that is trained in a moment, and one that knows nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "fovea/base/random.h"
#include "fovea/task/translate/run.h"
#include "tests/task/classify/tiny.h"

namespace fovea {

/// Sentences of one to four numbers, word for word.
inline std::string tiny_pairs(index count = 120) {
  constexpr const char* kSource[] = {"one", "two", "three", "four"};
  constexpr const char* kTarget[] = {"eins", "zwei", "drei", "vier"};
  Random random(7, RandomUse::kTest);
  std::string text;
  for (index i = 0; i < count; ++i) {
    std::string source, target;
    for (index n = 0; n <= i % 4; ++n) {
      const auto word = static_cast<std::size_t>(random.below(4));
      source += std::string(n > 0 ? " " : "") + kSource[word];
      target += std::string(n > 0 ? " " : "") + kTarget[word];
    }
    text += source + "\t" + target + "\n";
  }
  return text;
}

inline TranslatorSettings tiny_translator(const TestFolder& folder) {
  TranslatorSettings s;
  s.text.train = {write_file(folder, "pairs.tsv", tiny_pairs())};
  s.text.min_count = 1;
  s.text.batch_tokens = 160;
  s.text.label_smoothing = 0;
  s.model.encoder_layers = s.model.decoder_layers = 1;
  s.model.width = 32;
  s.model.heads = 2;
  s.model.block = 16;
  s.model.dropout = 0;
  s.recipe.lr = s.recipe.min_lr = 5e-3;
  s.recipe.warmup = 30;
  s.recipe.stop_after = "200u";
  s.recipe.eval_every = s.recipe.save_every = "50u";
  return s;
}

inline std::filesystem::path trained(const TestFolder& folder, const TranslatorSettings& settings) {
  TrainingObserver silent;
  train_translator(Context(2), prepare_run(settings), folder / "model", {}, silent);
  return folder / "model";
}

/// Of characters, with random weights.
inline LoadedTranslator untrained_translator(void (*change)(TranslatorConfig&) = nullptr) {
  LoadedTranslator loaded;
  const TokenizerKind& kind = tokenizer_kind("char");
  loaded.vocabulary.of_source = kind.make(kind.learn("abcdef ", "text", {}));
  loaded.vocabulary.of_target = kind.make(kind.learn("uvwxyz ", "text", {}));
  TranslatorConfig& c = loaded.settings.model;
  c.encoder_layers = 1;
  c.decoder_layers = 2;
  c.width = 16;
  c.heads = 2;
  c.block = 24;
  c.tie = false;
  if (change != nullptr) change(c);
  c.vocabulary = loaded.vocabulary.source().vocabulary_size();
  c.target_vocabulary = loaded.vocabulary.target().vocabulary_size();
  loaded.model = std::make_unique<Translator>(c, 3);
  // Weights as they start make all tokens about as likely.
  for (Parameter* p : loaded.model->parameters()) {
    if (p->value.shape().axes() < 2) continue;
    for (float& x : p->value.vec<float>()) x *= 12;
    ++p->version;
  }
  return loaded;
}

}  // namespace fovea
