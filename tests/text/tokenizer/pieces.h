// SPDX-License-Identifier: Apache-2.0
// Tokenizers of subwords that tests learn.
#pragma once

#include <memory>
#include <string>

#include "fovea/text/sentencepiece/trainer.h"
#include "fovea/text/tokenizer.h"
#include "tests/support/draws.h"

namespace fovea {

/// Lines of words that have parts in common.
inline std::string lines_of_parts(index lines, std::uint32_t seed = 1) {
  constexpr std::string_view kParts[] = {"ka", "to", "mi", "ren", "sol", "u", "the", "ing", "月"};
  Draws draws(seed);
  std::string text;
  for (index line = 0; line < lines; ++line) {
    for (index left = 2 + draws.below(8); left > 0; --left) {
      text += kParts[draws.below(std::ssize(kParts))];
      text += draws.below(3) == 0 && left > 1 ? " " : "";
    }
    text += '\n';
  }
  return text;
}

inline std::string piece_model_of(std::string_view text, PieceTraining training = {}) {
  if (training.vocab_size == PieceTraining().vocab_size) training.vocab_size = 40;
  return train_pieces(text, training).model;
}

inline std::unique_ptr<Tokenizer> piece_tokenizer(std::string model, bool marks = true) {
  return make_tokenizer(learn_pieces("", "", {.marks = marks, .model = std::move(model)}));
}

}  // namespace fovea
