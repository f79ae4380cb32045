// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/chat_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/chat.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

using Turns = std::vector<ChatTurn>;

constexpr std::string_view kSystem = "system", kUser = "user", kAssistant = "assistant";
constexpr const char* kForms =
    "a line is {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}, {\"role\": "
    "\"assistant\", \"content\": \"...\"}]}, or {\"prompt\": \"...\", \"completion\": \"...\"}";

// A line of the file, and what its errors begin with.
struct Line {
  const Json& json;
  const std::string& where;
  const char* forms;

  [[noreturn]] void fail_with(const std::string& what) const {
    throw Error(ErrorCode::kInputFormat, fmt::format("{}: {}", where, what), forms);
  }

  std::string text(const Json& object, const char* key) const {
    const Json* const found = object.find(key);
    const auto* const text = found == nullptr ? nullptr : found->get_if<std::string>();
    if (text == nullptr) fail_with(fmt::format("expected a text \"{}\"", key));
    return *text;
  }
};

std::string_view role_of(const Line& line, const std::string& name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"system", kSystem},
                                                                      {"user", kUser},
                                                                      {"human", kUser},
                                                                      {"assistant", kAssistant},
                                                                      {"gpt", kAssistant}};
  for (const auto& [known, role] : kNames) {
    if (known == name) return role;
  }
  line.fail_with(fmt::format("expected a role system, user or assistant, got {}", printable(name)));
}

Turns turns_in(const Line& line, const Json& list, const char* role, const char* text) {
  const auto* const messages = list.get_if<Json::Array>();
  if (messages == nullptr) line.fail_with("expected a list of messages");
  Turns turns;
  for (const Json& message : *messages) {
    if (message.get_if<Json::Object>() == nullptr) line.fail_with("expected messages as objects");
    turns.push_back(
        {std::string(role_of(line, line.text(message, role))), line.text(message, text)});
  }
  return turns;
}

Turns asked_and_answered(std::string question, std::string answer) {
  return {{std::string(kUser), std::move(question)}, {std::string(kAssistant), std::move(answer)}};
}

Turns turns_of(const Line& line) {
  const Json& json = line.json;
  if (json.get_if<Json::Object>() == nullptr) line.fail_with("expected an object");
  if (const Json* const list = json.find("messages")) {
    return turns_in(line, *list, "role", "content");
  }
  if (const Json* const list = json.find("conversations")) {
    return turns_in(line, *list, "from", "value");
  }
  if (json.find("prompt") != nullptr && json.find("chosen") == nullptr) {
    return asked_and_answered(line.text(json, "prompt"), line.text(json, "completion"));
  }
  if (json.find("instruction") != nullptr) {
    std::string question = line.text(json, "instruction");
    const std::string more = json.find("input") != nullptr ? line.text(json, "input") : "";
    if (!more.empty()) question += "\n\n" + more;
    return asked_and_answered(std::move(question), line.text(json, "output"));
  }
  if (json.find("chosen") != nullptr) {
    line.fail_with("two answers, which --objective dpo compares, and no conversation");
  }
  line.fail_with("no conversation");
}

// The messages in a member that is a list of them, or one of this role that is its text.
Turns messages_in(const Line& line, const char* key, std::string_view role) {
  const Json* const found = line.json.find(key);
  if (found == nullptr) line.fail_with(fmt::format("expected \"{}\"", key));
  if (const auto* const text = found->get_if<std::string>()) return {{std::string(role), *text}};
  return turns_in(line, *found, "role", "content");
}

// Both conversations, that with the preferred answer first.
std::pair<Turns, Turns> answers_of(const Line& line) {
  if (line.json.get_if<Json::Object>() == nullptr) line.fail_with("expected an object");
  const auto of = [&](const char* key) {
    Turns turns;
    if (line.json.find("prompt") != nullptr) turns = messages_in(line, "prompt", kUser);
    for (ChatTurn& turn : messages_in(line, key, kAssistant)) turns.push_back(std::move(turn));
    if (turns.empty() || turns.back().role != kAssistant) {
      line.fail_with(fmt::format("\"{}\" does not end with an answer", key));
    }
    return turns;
  };
  std::pair<Turns, Turns> both{of("chosen"), of("rejected")};
  const auto& [chosen, rejected] = both;
  const auto is_same = [](const ChatTurn& a, const ChatTurn& b) {
    return a.role == b.role && a.text == b.text;
  };
  if (!std::equal(chosen.begin(), chosen.end() - 1, rejected.begin(), rejected.end() - 1,
                  is_same)) {
    line.fail_with("the conversations differ before their last answers");
  }
  return both;
}

// Turns up to the last answer, behind the system prompt if there is one.
Turns up_to_last_answer(const Line& line, Turns turns) {
  const std::size_t first = !turns.empty() && turns[0].role == kSystem ? 1 : 0;
  for (std::size_t n = first; n < turns.size(); ++n) {
    const std::string_view expected = (n - first) % 2 == 0 ? kUser : kAssistant;
    if (turns[n].role == expected) continue;
    line.fail_with(
        fmt::format("message {} is of the role {}; expected {}", n + 1, turns[n].role, expected));
  }
  if ((turns.size() - first) % 2 == 1) turns.pop_back();
  if (turns.size() == first) line.fail_with("no answer");
  return turns;
}

class ConversationReader {
 public:
  ConversationReader(const PretrainedText& base, const CutOptions& cut, LossOn loss_on)
      : template_(base), ends_(base.ends), cut_(cut), answers_alone_(loss_on == LossOn::kAnswers) {}

  void add(const Line& line) {
    const Turns turns = whole(line, turns_of(line));
    ++found_.conversations;
    Written one = cut(written(line, turns, kAllAnswers));
    if (answers_alone_ && !has_target(one)) {
      ++found_.left_out;
    } else {
      append(one);
    }
  }

  void add_pair(const Line& line) {
    const auto [chosen, rejected] = answers_of(line);
    found_.sequences.together = 2;
    ++found_.conversations;
    if (chosen.back().text == rejected.back().text) {
      ++found_.equal;
      return;
    }
    const Written first = written(line, whole(line, chosen), kLastAnswer),
                  second = written(line, whole(line, rejected), kLastAnswer);
    if (std::max(first.tokens.size(), second.tokens.size()) > most()) {
      ++found_.left_out;
      return;
    }
    append(first);
    append(second);
  }

  ChatSequences take() { return std::move(found_); }

 private:
  struct Written {
    std::vector<token> tokens;
    std::vector<bool> counted;  // of answers
  };
  enum Answers { kAllAnswers, kLastAnswer };

  Turns whole(const Line& line, Turns said) const {
    Turns turns = up_to_last_answer(line, std::move(said));
    if (turns[0].role != kSystem && !template_.usual_system().empty()) {
      turns.insert(turns.begin(), {std::string(kSystem), template_.usual_system()});
    }
    for (const ChatTurn& turn : turns) require_utf8(turn.text, line.where);
    return turns;
  }

  Written cut(Written one) {
    if (one.tokens.size() > most()) {
      ++found_.truncated;
      one.tokens.resize(most());
      one.counted.resize(most());
    }
    return one;
  }

  std::size_t most() const { return static_cast<std::size_t>(cut_.block) + 1; }

  // A first token is no target.
  static bool has_target(const Written& one) {
    return std::find(one.counted.begin() + 1, one.counted.end(), true) != one.counted.end();
  }

  void append(const Written& one) {
    Sequences& all = found_.sequences;
    all.slices.push_back({std::ssize(all.stream), std::ssize(one.tokens) - 1});
    all.stream.insert(all.stream.end(), one.tokens.begin(), one.tokens.end());
    if (answers_alone_) {
      all.counted.insert(all.counted.end(), one.counted.begin(), one.counted.end());
    }
  }

  // The tokens up to the mark that ends the last answer. A question behind an answer brings its
  // end.
  Written written(const Line& line, const Turns& turns, Answers answers) const {
    Turns asked = turns;
    asked.push_back({std::string(kUser), "?"});
    Written all{.tokens = template_.tokens(asked), .counted = {}};
    all.counted.resize(all.tokens.size());
    auto end = all.tokens.begin();
    for (std::size_t n = 0; n < turns.size(); ++n) {
      if (turns[n].role != kAssistant) continue;
      const bool counts = answers == kAllAnswers || n + 1 == turns.size();
      // Later answers are dropped.
      if (end - all.tokens.begin() > cut_.block + 1) break;
      const std::vector<token> before =
          template_.tokens({turns.begin(), turns.begin() + static_cast<std::ptrdiff_t>(n)});
      const auto begin = std::ranges::mismatch(all.tokens, before).in1;
      end = std::find_first_of(begin, all.tokens.end(), ends_.begin(), ends_.end());
      if (end == all.tokens.end()) {
        throw Error(ErrorCode::kModelWrongKind,
                    fmt::format("{}: the chat template does not end answers with a mark that ends "
                                "a text",
                                line.where),
                    "take a model with another template");
      }
      ++end;
      if (!counts) continue;
      std::fill(all.counted.begin() + (begin - all.tokens.begin()),
                all.counted.begin() + (end - all.tokens.begin()), true);
    }
    const auto size = static_cast<std::size_t>(end - all.tokens.begin());
    all.tokens.resize(size);
    all.counted.resize(size);
    return all;
  }

  const ChatTemplate template_;
  const std::vector<token> ends_;
  const CutOptions cut_;
  const bool answers_alone_;
  ChatSequences found_;
};

Json parsed(std::string_view line, const std::string& where, const char* forms) {
  try {
    return parse_json(line, {where, ErrorCode::kInputFormat});
  } catch (const Error& error) {
    throw Error(error.code(), error.what(), forms);
  }
}

constexpr const char* kPairForms =
    "a line is {\"prompt\": \"...\", \"chosen\": \"...\", \"rejected\": \"...\"}, or has lists of "
    "messages in their place";

// Calls add(line) for each line that is not empty.
template <class Add>
void for_lines(std::string_view text, std::string_view name, const char* forms, const Add& add) {
  for (index number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == line.npos) continue;
    const std::string where = fmt::format("{}, line {}", name, number);
    const Json json = parsed(line, where, forms);
    add({json, where, forms});
  }
}

ChatSequences require_some(ChatSequences found, std::string_view name, index block,
                           std::string_view entry, const char* forms) {
  if (!found.sequences.slices.empty()) return found;
  if (found.conversations == 0) {
    throw Error(ErrorCode::kInputTooSmall, fmt::format("{} holds no {}", name, entry), forms);
  }
  if (found.equal == found.conversations) {
    throw Error(ErrorCode::kInputTooSmall,
                fmt::format("{}: in each pair both answers are equal", name),
                "give answers of which one is better");
  }
  throw Error(ErrorCode::kInputTooSmall,
              fmt::format("{}: no answer fits into a sequence of {} tokens", name, block),
              "give shorter ones, or let the model read more: --sequence-length of train lm, "
              "--max-context of eval");
}

}  // namespace

ChatSequences read_conversations(std::string_view text, const PretrainedText& base,
                                 const CutOptions& cut, LossOn loss_on, std::string_view name) {
  ConversationReader reader(base, cut, loss_on);
  for_lines(text, name, kForms, [&](const Line& line) { reader.add(line); });
  return require_some(reader.take(), name, cut.block, "conversation", kForms);
}

ChatSequences read_preferences(std::string_view text, const PretrainedText& base,
                               const CutOptions& cut, std::string_view name) {
  ConversationReader reader(base, cut, LossOn::kAnswers);
  for_lines(text, name, kPairForms, [&](const Line& line) { reader.add_pair(line); });
  return require_some(reader.take(), name, cut.block, "pair of answers", kPairForms);
}

}  // namespace fovea
