// SPDX-License-Identifier: Apache-2.0
// One text in a model of any kind: its weights, its logits and the gradient of its inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/explain/explanation.h"
#include "fovea/explain/layers.h"
#include "fovea/grad/ops.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// A model with a text of `tokens` tokens, or with a sample of `tokens` time steps.
struct ObservedText {
  /// The logits of the text. `seen` is empty or has an element for each layer; `inputs` may be null
  /// (LossOptions::inputs).
  std::function<Variable(Tape& tape, std::span<HeadStatistics> seen, Variable* inputs)> logits;
  std::vector<AttentionLayerName> layers;
  index tokens = 0;
  double tape_bytes = 0;  ///< that a tape takes for the text, with gradients
  index joints = 0;       ///< of each time step; 0: none
  index written = 0;      ///< tokens of a translation, with its end; 0: none

  /// The rows of the encoder. With joints those of each joint follow each other: row j tokens + t.
  index rows() const { return tokens * (joints > 0 ? joints : 1); }
};

/// Throws kOutOfMemory unless there is memory for the weights and a tape.
void require_explain_memory(const ObservedText& text);

/// Fills in the layers; returns the logits, valid until the tape's reset. Throws kModelDamaged if
/// one is not finite.
Variable observe_layers(Tape& tape, const ObservedText& text, Explanation& explanation);

/// [rows] the gradient of what `of` makes of the logits, times the inputs, summed over their
/// columns; with kGradient the length of the gradient. In double.
std::vector<float> gradient_saliency(Tape& tape, const ObservedText& text, SaliencyMethod method,
                                     const std::function<Variable(Variable logits)>& of);

/// The rollout from the mixture `result` [rows] of the last rows. Throws kOptionValue for layers
/// that are not one after another, or whose weights do not sum to 1.
std::vector<float> rollout_of(const ObservedText& text, const Explanation& explanation,
                              std::span<const double> result);

/// The bytes of each token, and a name for special ones.
std::vector<std::string> token_texts(const Tokenizer& tokenizer, std::span<const token> ids);

/// Writes unknown words as the text has them, if it is split into words: the tokens are its first
/// words or, `at_end`, its last.
void write_unknown(const Tokenizer& tokenizer, std::span<const token> ids, std::string_view text,
                   bool at_end, std::vector<std::string>& texts);

/// Adds what is to be said of unknown words of the text, or of a translation that is given.
enum class UnknownIn : std::uint8_t { kText, kTranslation };
void note_unknown(const Tokenizer& tokenizer, std::span<const token> ids, Explanation& explanation,
                  UnknownIn where = UnknownIn::kText);

}  // namespace fovea
