// SPDX-License-Identifier: Apache-2.0
// Generates text from a language model: draws it token by token, or continues a prompt with the
// likeliest text that a beam search finds.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/pretrained/chat.h"
#include "fovea/task/decode/beam_search.h"
#include "fovea/task/decode/sampling.h"
#include "fovea/task/language_model/language_model.h"

namespace fovea {

/// Throws kOutOfMemory unless there is memory for generate_text, kEncoding for a prompt that the
/// tokenizer cannot encode.
void require_generation_memory(const Context& context, const LoadedLanguageModel& loaded,
                               std::string_view prompt, const SamplingOptions& options);

/// The tokens with which a model begins: those of the prompt, behind the mark of a line if the
/// model knows lines; for an empty prompt those of a newline if not. Throws kInputTooSmall if there
/// are none, kEncoding.
std::vector<token> prompt_tokens(const LoadedLanguageModel& loaded, std::string_view prompt);

/// The tokens that were never a target in training, in ascending order: their logits mean nothing.
std::vector<token> never_trained(const LoadedLanguageModel& loaded);

/// The words of a prompt that the model does not know: it reads them all as the same unknown word.
index unknown_words(const LoadedLanguageModel& loaded, std::string_view prompt);

/// The text of tokens; bytes that are no UTF-8 become U+FFFD. Throws kShape.
std::string text_of_tokens(const Tokenizer& tokenizer, std::span<const token> ids);

/// [N, vocabulary]: the logits of the token that follows each of N, which the model sees at once.
/// Throws kShape.
Tensor logits_of(const Context& context, const LanguageModel& model, std::span<const token> ids);

/// Continues `prompt` and passes the continuation to `write` as it is generated, in whole
/// characters; `write` returns false to stop, and is called at least once. Returns how many tokens
/// were chosen. It ends after max_tokens. A model trained with --data lines takes the prompt as the
/// beginning of a line, and also ends at the end of a line if lines had marks. For a model trained
/// with --data blocks, an empty prompt is replaced by a newline. The text depends only on the
/// model, the prompt and the options. Throws kOptionValue for the options, kInputTooSmall for a
/// prompt without a token where the model has no mark to begin with, and as
/// require_generation_memory does.
index generate_text(const Context& context, const LoadedLanguageModel& loaded,
                    std::string_view prompt, const SamplingOptions& options,
                    const std::function<bool(std::string_view)>& write);

/// Goes on with `tokens`, of which the decoder has the first ones, or none: appends a token after
/// the other, and calls `write` with each, which returns false to stop. Ends before a token that
/// ends a text, and after max_tokens. Returns how many it has appended.
index write_tokens(const LoadedLanguageModel& loaded, LanguageModelDecoder& decoder,
                   std::vector<token>& tokens, const SamplingOptions& options,
                   const std::function<bool(token)>& write);

/// A language model as the searcher sees it: sentences are continuations of one prompt. Each
/// hypothesis has a decoder of its own with what it has computed; one that goes on in several ways
/// is encoded anew for all but the first. So its logits are those of the model, whatever layers it
/// has. Belongs to one thread.
class LanguageModelSearch final : public NextTokenModel {
 public:
  /// `tokens`: what every hypothesis begins with; the search's begin token stands behind them.
  /// The model must outlive it.
  LanguageModelSearch(const Context& context, const LanguageModel& model, std::vector<token> tokens,
                      double repetition_penalty);

  Rows<const float> step(std::span<const index> parents, Vec<const std::int32_t> ids) override;

 private:
  struct Written {
    std::unique_ptr<LanguageModelDecoder> decoder;  // null: another hypothesis took it
    std::vector<token> tokens;
  };

  void append(Written& hypothesis, token id, Vec<float> logits) const;

  const Context context_;
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

/// Remembers the turns. When they no longer fit into the context together with an answer (of
/// max_tokens, or of half the context if that is less), the oldest question is forgotten with its
/// answer; what the system says is kept. Belongs to one thread.
class Conversation {
 public:
  /// `system`: what the system says; "": the default of the model, if it has one. The model must
  /// outlive it. Throws kModelWrongKind for a model without a template that is known,
  /// kOptionValue for the options.
  Conversation(const Context& context, const LoadedLanguageModel& loaded, std::string system,
               const SamplingOptions& options);

  /// Passes the answer to `write` as it is generated, in whole characters; false stops it. The seed
  /// of answer n (from 0) is that of the options plus n. Returns how many tokens were chosen.
  /// Throws kEncoding, kInputFormat for a message that is longer than the context, kOutOfMemory.
  index answer(std::string_view message, const std::function<bool(std::string_view)>& write);

 private:
  // Answers the last turn.
  index answer_turns(const std::function<bool(std::string_view)>& write);
  std::vector<token> fitting_tokens();

  const Context context_;
  const LoadedLanguageModel& loaded_;
  const ChatTemplate template_;
  SamplingOptions options_;
  LanguageModelDecoder decoder_;
  std::vector<token> tokens_;  // of which the decoder has the first ones
  std::vector<ChatTurn> turns_;
  bool has_system_;
};

}  // namespace fovea
