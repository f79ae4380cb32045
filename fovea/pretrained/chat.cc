// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/chat.h"

#include <fmt/format.h>

#include "fovea/base/error.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::string_view kStart = "<|im_start|>", kEnd = "<|im_end|>";

// ChatML as models write it, without blanks between the parts; a default for the system may stand
// behind the first.
constexpr std::string_view kLoop = "{% for message in messages %}";
constexpr std::string_view kDefault =
    "{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n";
constexpr std::string_view kDefaultEnd = "<|im_end|>\n' }}{% endif %}";
constexpr std::string_view kTurns =
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

// A newline may be written as \n.
std::string with_newlines(std::string_view program) {
  std::string text;
  for (std::size_t n = 0; n < program.size(); ++n) {
    const bool escaped = program.substr(n).starts_with("\\n");
    text += escaped ? '\n' : program[n];
    if (escaped) ++n;
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

bool take(std::string_view& text, std::string_view front) {
  if (!text.starts_with(front)) return false;
  text.remove_prefix(front.size());
  return true;
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view program, const Subwords& subwords)
    : subwords_(subwords) {
  const std::string text = with_newlines(program);
  std::string_view rest = text;
  bool known = take(rest, kLoop);
  if (known && take(rest, kDefault)) {
    const std::size_t end = rest.find(kDefaultEnd);
    known = end != rest.npos && rest.substr(0, end).find('\'') == rest.npos;
    if (known) {
      system_ = rest.substr(0, end);
      rest.remove_prefix(end + kDefaultEnd.size());
    }
  }
  if (known && rest == kTurns) {
    for (const std::string_view mark : {kStart, kEnd}) {
      const token id = subwords.id_of(mark);
      if (id != kNoToken && subwords.is_mark(id)) continue;
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("the vocabulary lacks {}, which the chat template needs", mark),
                  "without --chat the model goes on with a text");
    }
    return;
  }
  throw Error(ErrorCode::kModelWrongKind,
              program.empty() ? "the model has no chat template"
                              : "the chat template of the model is not one that fovea knows: " +
                                    excerpt(program),
              "ChatML is known; without --chat the model goes on with a text");
}

std::vector<token> ChatTemplate::tokens(const std::vector<ChatTurn>& turns) const {
  std::vector<token> ids;
  const auto mark = [&](std::string_view name) { ids.push_back(subwords_.id_of(name)); };
  for (const ChatTurn& turn : turns) {
    mark(kStart);
    subwords_.encode(ids, turn.role + "\n" + turn.text, Marks::kAreText);
    mark(kEnd);
    subwords_.encode(ids, "\n");
  }
  mark(kStart);
  subwords_.encode(ids, "assistant\n");
  return ids;
}

}  // namespace fovea
