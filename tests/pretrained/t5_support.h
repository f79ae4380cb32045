// SPDX-License-Identifier: Apache-2.0
// The models of t5_golden.h as folders that transformers would have written, whose parts a test may
// change. Token n is the piece of a letter: "c" is 2; the last two are <unk> and <extra_id_0>.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/pretrained/golden_numbers.h"
#include "tests/pretrained/t5_golden.h"
#include "tests/pretrained/translator_files.h"
#include "tests/text/sentencepiece/proto_writer.h"

namespace fovea {

inline constexpr token kT5Padding = 0, kT5End = 1, kT5Unknown = 22, kT5Sentinel = 23;
inline constexpr int kT5Tokens = 24;

inline const GoldenT5& golden_t5(std::string_view name) {
  return *std::ranges::find(kGoldenT5s, name, &GoldenT5::name);
}

/// What is written for these tokens: marks are no text.
inline std::string t5_text(const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) {
    if (id <= kT5End || id >= kT5Unknown) continue;
    text += (text.empty() ? "" : " ") + std::string(1, static_cast<char>('a' + id));
  }
  return text;
}

struct T5Files : TranslatorFiles {
  explicit T5Files(std::string_view name) : T5Files(golden_t5(name)) {}
  explicit T5Files(const GoldenT5& golden) {
    set_tensors(golden);
    texts["config.json"] = golden.config;
    texts["generation_config.json"] = golden.generation;
    texts["tokenizer.json"] = tokenizer();
  }

  /// Puts the bytes of a spiece.model of `pieces` in the place of tokenizer.json.
  void set_pieces(std::string bytes) {
    texts.erase("tokenizer.json");
    texts["spiece.model"] = std::move(bytes);
  }

  /// The pieces without the sentinel, in the order that transformers expects: <unk> is the third,
  /// so that a letter has the token behind its own.
  static std::vector<ModelPiece> pieces() {
    std::vector<ModelPiece> pieces = {{name_of(kT5Padding), 0, PieceType::kControl},
                                      {name_of(kT5End), 0, PieceType::kControl},
                                      {name_of(kT5Unknown), 0, PieceType::kUnknown}};
    for (int id = kT5End + 1; id < kT5Unknown; ++id) {
      pieces.push_back({name_of(id), -1, PieceType::kNormal});
    }
    return pieces;
  }

 private:
  // factor_of() of make_t5_golden.py.
  static float factor_of(std::string_view name) {
    if (name.find("relative_attention_bias") != name.npos) return 4;
    if (name == "shared.weight") return 1;
    if (name.ends_with(".o.weight") || name.ends_with(".wo.weight")) return 6;
    return name == "lm_head.weight" ? 2 : 4;
  }

  void set_tensors(const GoldenT5& golden) {
    GoldenNumbers numbers(golden.first);
    for (const GoldenT5::Stored& stored : golden.tensors) {
      const Shape shape(std::vector<index>(stored.shape.begin(), stored.shape.end()));
      std::vector<float> values = numbers.next(shape.size());
      const bool is_gain = stored.name.find("norm") != stored.name.npos;
      for (float& value : values) value = value * factor_of(stored.name) + (is_gain ? 1 : 0);
      tensors.push_back({std::string(stored.name), Tensor::of<float>(shape, values)});
    }
  }

  static std::string name_of(int id) {
    if (id == kT5Padding) return "<pad>";
    if (id == kT5End) return "</s>";
    if (id == kT5Unknown) return "<unk>";
    if (id == kT5Sentinel) return "<extra_id_0>";
    return std::string(kSpaceSymbol) + static_cast<char>('a' + id);
  }

  static std::string tokenizer() {
    std::string vocabulary, added;
    for (int id = 0; id < kT5Tokens; ++id) {
      const bool is_mark = id <= kT5End || id >= kT5Unknown;
      const char* const comma = vocabulary.empty() ? "" : ", ";
      vocabulary += fmt::format(R"({}["{}", {}])", comma, name_of(id), is_mark ? 0 : -1);
      if (!is_mark) continue;
      added += fmt::format(R"({}{{"id": {}, "content": "{}", "special": true}})",
                           added.empty() ? "" : ", ", id, name_of(id));
    }
    constexpr std::string_view kBlanks =
        R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true})";
    return fmt::format(
        R"({{"added_tokens": [{}], "normalizer": null,
            "pre_tokenizer": {{"type": "Sequence",
                               "pretokenizers": [{{"type": "WhitespaceSplit"}}, {}]}},
            "post_processor": {{"type": "TemplateProcessing",
                                "single": [{{"Sequence": {{"id": "A", "type_id": 0}}}},
                                           {{"SpecialToken": {{"id": "</s>", "type_id": 0}}}}],
                                "pair": [{{"Sequence": {{"id": "A", "type_id": 0}}}},
                                         {{"SpecialToken": {{"id": "</s>", "type_id": 0}}}},
                                         {{"Sequence": {{"id": "B", "type_id": 0}}}},
                                         {{"SpecialToken": {{"id": "</s>", "type_id": 0}}}}],
                                "special_tokens": {{"</s>": {{"id": "</s>", "ids": [1],
                                                              "tokens": ["</s>"]}}}}}},
            "decoder": {}, "model": {{"type": "Unigram", "unk_id": {}, "vocab": [{}],
                                      "byte_fallback": false}}}})",
        added, kBlanks, kBlanks, kT5Unknown, vocabulary);
  }
};

}  // namespace fovea
