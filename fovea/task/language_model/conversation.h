// SPDX-License-Identifier: Apache-2.0
// A conversation with a language model that has a chat template.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/pretrained/chat.h"
#include "fovea/task/decode/sampling.h"
#include "fovea/task/language_model/language_model.h"

namespace fovea {

/// Remembers the turns. When they no longer fit into the context together with an answer (of
/// max_tokens, or of half the context if that is less), the oldest question is forgotten with its
/// answer; what the system says is kept. Belongs to one thread.
class Conversation {
 public:
  /// `system`: what the system says; "": the default of the model, if it has one. Context and model
  /// must outlive it. Throws kModelWrongKind for a model without a template that is known,
  /// kOptionValue for the options.
  Conversation(const Context& context, const LoadedLanguageModel& loaded, std::string system,
               const SamplingOptions& options);

  /// Passes the answer to `write` as it is generated, in whole characters; false stops it. The seed
  /// of answer n (from 0) is that of the options plus n. Returns how many tokens were chosen.
  /// Throws kEncoding, kInputFormat for a message that is longer than the context, kOutOfMemory.
  index answer(std::string_view message, const std::function<bool(std::string_view)>& write);

  /// The turns that the model still sees.

 private:
  // Answers the last turn.
  index answer_turns(const std::function<bool(std::string_view)>& write);
  std::vector<token> fitting_tokens();

  const Context& context_;
  const LoadedLanguageModel& loaded_;
  const ChatTemplate template_;
  SamplingOptions options_;
  LanguageModelDecoder decoder_;
  std::vector<token> tokens_;  // of which the decoder has the first ones
  std::vector<ChatTurn> turns_;
  bool has_system_;
};

}  // namespace fovea
