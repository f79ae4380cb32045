// SPDX-License-Identifier: Apache-2.0
// Shared by the explanations of all kinds of models: what is asked of a text, and what is made of
// the weights that an observed forward saw.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/base/types.h"
#include "fovea/base/view.h"
#include "fovea/explain/explanation.h"
#include "fovea/grad/ops.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// In quotes, escaped.
std::string in_quotes(std::string_view text, QuoteLength length = QuoteLength::kShort);

/// "it has a, b, c": at most eight of the names.
std::string it_has(std::span<const std::string> names);

/// A model without weights to show has its gradients alone: throws kOptionValue for another
/// saliency.
void require_shown(bool has_weights, SaliencyMethod saliency);

/// Throws kInputTooSmall.
void require_tokens(bool has_tokens);

/// Throws kOutOfMemory unless there is memory for the tokens of the text.
void require_token_memory(const Tokenizer& tokenizer, std::string_view text);

/// Throws kOptionValue for a target of a saliency that has none.
void require_target_counts(const ExplainOptions& options);

/// Returns f(). An error of it may have a hint that names an option of another command, whose
/// reading code it shares: `explain` gives this hint instead.
template <class F>
auto with_own_hint(std::string hint, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    if (error.hint().find("--") == std::string::npos) throw;
    throw Error(error.code(), error.what(), std::move(hint));
  }
}

/// The numbers of the values, the largest first; of equal ones the first.
std::vector<index> descending(Vec<const float> values);

/// Adds what rollout leaves out of such a model, if it does.
void note_rollout(const std::vector<SizedStage>& stages, Explanation& explanation);

/// One layer of attention rollout (Abnar & Zuidema 2020, "Quantifying attention flow in
/// transformers", section 3): its weights, and whether its result is added to its input. T tokens
/// are sequences of n = T / sequences, one after another; `across`, token t of sequence s is number
/// t sequences + s.
struct RolloutLayer {
  std::span<const float> weights;  ///< [sequences, heads, n, n], rows that sum to 1, or to 0
  index heads = 0;
  bool residual = true;
  index sequences = 1;
  bool across = false;
};

/// [T]: how much of each token arrives in the mixture `result` [T] of the last layer's rows:
///
///   r = result A_L ... A_1,  A_l = (W_l + I) / 2 with a residual sum, else W_l
///
/// W_l is the mean over the heads. A row that keeps no key passes on itself alone with a residual
/// sum, and nothing without.
std::vector<float> attention_rollout(std::span<const RolloutLayer> layers,
                                     std::span<const double> result);

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

/// [rows] for each row of an input of a tape its gradient times its values, summed over the
/// columns; with kGradient the length of the gradient. A backward must have been.
std::vector<double> weighed_inputs(Variable inputs, SaliencyMethod method);

/// weighed_inputs() [rows] for the gradient of what `of` makes of the logits.
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
