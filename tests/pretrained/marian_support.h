// SPDX-License-Identifier: Apache-2.0
// The models of marian_golden.h as folders that transformers would have written, whose parts a test
// may change. Token n is the piece of a letter: "c" is 2.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/pretrained/golden_numbers.h"
#include "tests/pretrained/marian_golden.h"
#include "tests/pretrained/translator_files.h"
#include "tests/text/sentencepiece/proto_writer.h"

namespace fovea {

inline const GoldenMarian& golden_marian(std::string_view name) {
  return *std::ranges::find(kGoldenMarians, name, &GoldenMarian::name);
}

inline std::string letter_of(std::int32_t id) { return {static_cast<char>('a' + id)}; }

/// The words of these tokens, but for the end.
inline std::string text_of(const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) {
    if (id != 0) text += (text.empty() ? "" : " ") + letter_of(id);
  }
  return text;
}

struct MarianFiles : TranslatorFiles {
  explicit MarianFiles(std::string_view name) : MarianFiles(golden_marian(name)) {}
  explicit MarianFiles(const GoldenMarian& golden) {
    set_tensors(golden);
    texts["config.json"] = golden.config;
    texts["generation_config.json"] = golden.generation;
    texts["tokenizer_config.json"] = R"({"eos_token": "</s>", "unk_token": "<unk>"})";
    texts["source.spm"] = texts["target.spm"] = pieces();
    texts["vocab.json"] = vocabulary(24);
    if (golden.name != "one table") {
      set("tokenizer_config.json", "separate_vocabs", "true");
      texts["target_vocab.json"] = vocabulary(20);
    }
  }

 private:
  // factor_of() of make_marian_golden.py.
  static float factor_of(std::string_view name) {
    if (name.ends_with("out_proj.weight") || name.ends_with("fc2.weight")) return 6;
    return name.ends_with("proj.weight") || name.ends_with("fc1.weight") ? 3 : 1;
  }

  void set_tensors(const GoldenMarian& golden) {
    GoldenNumbers numbers;
    for (const GoldenMarian::Stored& stored : golden.tensors) {
      const Shape shape(std::vector<index>(stored.shape.begin(), stored.shape.end()));
      std::vector<float> values = numbers.next(shape.size());
      const bool is_gain =
          stored.name.find("norm") != stored.name.npos && stored.name.ends_with("weight");
      for (float& value : values) value = value * factor_of(stored.name) + (is_gain ? 1 : 0);
      if (stored.name == "final_logits_bias") values[0] += static_cast<float>(golden.end_bias);
      tensors.push_back({std::string(stored.name), Tensor::of<float>(shape, values)});
    }
  }

  // </s>, <unk>, letters from c on, and <pad>.
  static std::string vocabulary(int tokens) {
    Json::Object ids{{"</s>", 0}, {"<unk>", 1}};
    for (int n = 2; n < tokens - 1; ++n) {
      ids.emplace_back(std::string(kSpaceSymbol) + letter_of(n), n);
    }
    ids.emplace_back("<pad>", tokens - 1);
    return Json(std::move(ids)).line();
  }

  static std::string pieces() {
    std::vector<ModelPiece> pieces = {{"<unk>", 0, PieceType::kUnknown},
                                      {"<s>", 0, PieceType::kControl},
                                      {"</s>", 0, PieceType::kControl}};
    for (int n = 0; n < 26; ++n) {
      pieces.push_back({std::string(kSpaceSymbol) + letter_of(n), -1, PieceType::kNormal});
    }
    return model_bytes(pieces, PieceAlgorithm::kUnigram, "");
  }
};

}  // namespace fovea
