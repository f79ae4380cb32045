// SPDX-License-Identifier: Apache-2.0
// How well a language model predicts a text.
#pragma once

#include <span>
#include <string>

#include "fovea/task/language_model/language_model.h"

namespace fovea {

struct TextScore {
  double loss = 0;        ///< nats per token
  double perplexity = 0;  ///< exp(loss)
  /// loss x tokens / (ln 2 x bytes of their text). NaN if the tokens do not say what the text is:
  /// if words are unknown, or the tokenizer puts text into lower case.
  double bits_per_byte = 0;
  index tokens = 0;           ///< how many were predicted
  index unknown = 0;          ///< how many of these stand for unknown words
  index single_lines = 0;     ///< as in Sequences
  index truncated_lines = 0;  ///< as in Sequences

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("loss", loss, "mean negative log-likelihood, in nats per token");
    visit("perplexity", perplexity, "exp(loss)");
    visit("bits_per_byte", bits_per_byte, "of UTF-8 text, comparable between tokenizers");
    visit("tokens", tokens, "how many were predicted");
    visit("unknown", unknown, "how many of these stand for unknown words");
    visit("single_lines", single_lines, "lines of one token, which were left out");
    visit("truncated_lines", truncated_lines, "lines of which tokens were dropped (--max-length)");
  }
};

struct TextEvaluation {
  index stride = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("stride", stride,
          "move the window of the context by N tokens and count the last N alone, so that all but "
          "the first window's see at least the context without N; 0: windows do not overlap",
          {.range = ValueRange::from(0, "windows do not overlap"), .shown = "N"});
  }
};

/// The score of the files one after another, cut into sequences as the model's own validation text
/// was, or into windows that overlap. Throws as read_text does, and kInputTooSmall; kOptionValue
/// for a stride that is longer than the context, or of a model that reads lines; kModelDamaged if
/// the loss is not finite.
TextScore evaluate_text(const Context& context, const LoadedLanguageModel& loaded,
                        std::span<const std::string> files, const TextEvaluation& options = {});

}  // namespace fovea
