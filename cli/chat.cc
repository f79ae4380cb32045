// SPDX-License-Identifier: Apache-2.0
#include "cli/chat.h"

#include <fmt/core.h>
#include <unistd.h>

#include <string_view>

#include "cli/answers.h"
#include "cli/output.h"
#include "fovea/base/error.h"
#include "fovea/config/json.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/task/language_model/conversation.h"

namespace fovea::cli {

namespace {

// An answer as --json prints it.
struct Answer {
  std::string message;
  std::string text;
  index tokens = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("message", message, "what was said to the model");
    visit("text", text, "what it answered");
    visit("tokens", tokens, "how many tokens of it the model wrote");
  }
};

// Returns whether somebody reads on.
bool print_answer(Conversation& conversation, const std::string& message, bool json) {
  Answer answer{.message = message, .text = {}};
  bool read_on = true;
  answer.tokens = conversation.answer(message, [&](std::string_view part) {
    answer.text += part;
    return read_on = json || print(part);
  });
  return read_on && print(json ? to_json_line(answer) + "\n" : "\n");
}

// On a terminal, where a message is expected.
void ask() {
  if (isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) print("> ");
}

}  // namespace

void check_chat(const Arguments& arguments, const ChatOptions& chat) {
  if (!chat.chat) {
    if (!arguments.has("system")) return;
    throw Error(ErrorCode::kUsage, "generate: --system has no effect without --chat",
                "add --chat, or leave it out");
  }
  for (const std::string_view option : {"beam", "length-penalty", "samples", "each-line"}) {
    if (!arguments.has(option)) continue;
    throw Error(ErrorCode::kUsage, fmt::format("generate: --{} has no effect with --chat", option),
                "leave one of the two out");
  }
}

int run_chat(const Context& context, const LoadedLanguageModel& loaded, const Arguments& arguments,
             const ChatOptions& chat, const SamplingOptions& options) {
  Conversation conversation(context, loaded, chat.system, options);
  const bool json = arguments.on("json");
  if (arguments.has("PROMPT") && arguments.text("PROMPT") != "-") {
    print_answer(conversation, arguments.text("PROMPT"), json);
    return 0;
  }
  ask();
  LineReader lines(answered_stream("-", [] {}), name_of_input("-"), kLongestTextLine);
  for (Line line; lines.next(line);) {
    lines.require_text(line);
    const std::string_view message = without_carriage_return(line.text);
    if (!message.empty() && !print_answer(conversation, std::string(message), json)) return 0;
    ask();
  }
  return 0;
}

}  // namespace fovea::cli
