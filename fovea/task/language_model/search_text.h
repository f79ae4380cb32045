// SPDX-License-Identifier: Apache-2.0
// Continues a prompt with the likeliest text that a beam search finds.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/task/decode/beam_search.h"
#include "fovea/task/language_model/generate.h"

namespace fovea {

/// A language model as the searcher sees it: sentences are continuations of one prompt. Each
/// hypothesis has a decoder of its own with what it has computed; one that goes on in several ways
/// is encoded anew for all but the first. So its logits are those of the model, whatever layers it
/// has. Belongs to one thread.
class LanguageModelSearch final : public NextTokenModel {
 public:
  /// `tokens`: what every hypothesis begins with; the search's begin token stands behind them.
  /// Context and model must outlive it.
  LanguageModelSearch(const Context& context, const LanguageModel& model, std::vector<token> tokens,
                      double repetition_penalty);

  Rows<const float> step(std::span<const index> parents, Vec<const std::int32_t> ids) override;

 private:
  struct Written {
    std::unique_ptr<LanguageModelDecoder> decoder;  // null: another hypothesis took it
    std::vector<token> tokens;
  };

  void append(Written& hypothesis, token id, Vec<float> logits) const;

  const Context& context_;
  const LanguageModel& model_;
  const double repetition_penalty_;
  const std::vector<token> prompt_;
  std::vector<Written> written_;
  std::vector<float> logits_;
};

struct FoundText {
  std::string text;
  index tokens = 0;            ///< without an end
  double log_probability = 0;  ///< of these and the end, in nats
  double score = 0;            ///< that, divided by the length of --length-penalty
};

/// The best continuation of `prompt`. It reads the sampling options max_tokens and
/// repetition_penalty alone. It ends where the model ends a line; otherwise, and at the latest,
/// after max_tokens. Throws as generate_text() does, and kOptionValue for the options of the
/// search.
FoundText search_text(const Context& context, const LoadedLanguageModel& loaded,
                      std::string_view prompt, const SamplingOptions& options,
                      const SearchOptions& search);

}  // namespace fovea
