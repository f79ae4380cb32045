// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/conversation.h"

#include <algorithm>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/task/language_model/generate.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

ChatTemplate template_of(const LoadedLanguageModel& loaded) {
  if (loaded.pretrained) return {loaded.pretrained->chat_template, *loaded.pretrained->bpe};
  throw Error(ErrorCode::kModelWrongKind, "a model of fovea has no chat template",
              "take a model that was trained on conversations");
}

}  // namespace

Conversation::Conversation(const Context& context, const LoadedLanguageModel& loaded,
                           std::string system, const SamplingOptions& options)
    : context_(context),
      loaded_(loaded),
      template_(template_of(loaded)),
      options_(options),
      decoder_(context, *loaded.model) {
  check_options(options);
  if (system.empty()) system = template_.usual_system();
  has_system_ = !system.empty();
  if (!has_system_) return;
  require_utf8(system, "--system");
  turns_.push_back({"system", std::move(system)});
}

// The tokens of the turns, without the oldest ones where all are too many.
std::vector<token> Conversation::fitting_tokens() {
  const index block = loaded_.settings.model.block;
  const index room = block - std::min(options_.max_tokens, block / 2);
  const std::size_t first = has_system_ ? 1 : 0;
  for (;;) {
    std::vector<token> tokens = template_.tokens(turns_);
    if (std::ssize(tokens) <= room) return tokens;
    if (turns_.size() == first + 1) {
      const index size = std::ssize(tokens);
      fail(ErrorCode::kInputFormat,
           Hint{"write a shorter message, or choose a smaller --max-tokens"},
           "the message has {} tokens with its marks; there is room for {}", size, room);
    }
    const auto oldest = turns_.begin() + static_cast<std::ptrdiff_t>(first);
    turns_.erase(oldest, oldest + 2);  // a question and its answer
  }
}

index Conversation::answer(std::string_view message,
                           const std::function<bool(std::string_view)>& write) {
  require_utf8(message, "message");
  turns_.push_back({"user", std::string(message)});
  try {
    return answer_turns(write);
  } catch (...) {
    turns_.pop_back();  // a question without its answer
    throw;
  }
}

index Conversation::answer_turns(const std::function<bool(std::string_view)>& write) {
  std::vector<token> tokens = fitting_tokens();
  require_memory(
      "the answer",
      generation_memory(context_, loaded_.settings.model, std::ssize(tokens), options_.max_tokens),
      "give a smaller --max-tokens or --max-context");
  // What was written is cut anew, and may have become other tokens.
  const auto known = static_cast<std::size_t>(decoder_.size());
  if (known >= tokens.size() ||
      !std::equal(tokens_.begin(), tokens_.begin() + decoder_.size(), tokens.begin())) {
    decoder_.clear();
  }
  tokens_ = std::move(tokens);
  StreamDecoder text(*loaded_.tokenizer);
  std::string answer;
  bool read_on = true;
  const auto pass_on = [&](std::string_view part) {
    answer += part;
    return read_on = read_on && write(part);
  };
  const index count = write_tokens(loaded_, decoder_, tokens_, options_,
                                   [&](token chosen) { return pass_on(text.push(chosen)); });
  pass_on(text.finish());
  turns_.push_back({"assistant", std::move(answer)});
  ++options_.seed;
  return count;
}

}  // namespace fovea
