// SPDX-License-Identifier: Apache-2.0
// fovea generate --chat: a conversation.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "fovea/task/decode/sampling.h"
#include "fovea/task/language_model/language_model.h"

namespace fovea::cli {

struct ChatOptions {
  bool chat = false;
  std::string system;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("chat", chat,
          "of a model from elsewhere: PROMPT is a message, which the model answers; without PROMPT "
          "each line of standard input is one");
    visit("system", system, "--chat: what the system says first; none: the model's own",
          {.shown = "TEXT"});
  }
};

/// Throws kUsage for options that have no effect with or without --chat.
void check_chat(const Arguments& arguments, const ChatOptions& chat);

/// Answers the message PROMPT, or each line of standard input. Returns the exit status.
int run_chat(const Context& context, const LoadedLanguageModel& loaded, const Arguments& arguments,
             const ChatOptions& chat, const SamplingOptions& options);

}  // namespace fovea::cli
