// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

#include "fovea/base/error.h"
#include "fovea/base/option.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/text/python_text.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

using Turns = std::span<const ChatTurn>;

// A conversation as it is written: texts between two marks are one text, which is cut as a whole.
class Writer {
 public:
  Writer(const Subwords& subwords, token begin, token end)
      : subwords_(subwords), begin_(begin), end_(end) {}

  Writer& begin() { return mark(begin_); }
  Writer& end() { return mark(end_); }
  Writer& mark(std::string_view name) { return mark(subwords_.id_of(name)); }
  Writer& text(std::string_view text) {
    if (parts_.empty() || parts_.back().mark != kNoToken) parts_.push_back({});
    parts_.back().text += text;
    return *this;
  }

  std::vector<token> tokens() const {
    std::vector<token> ids;
    TextPlace place = TextPlace::kBegin;
    for (const ChatPart& part : parts_) {
      if (part.mark == kNoToken) {
        subwords_.encode(ids, part.text, Marks::kAreText, place);
      } else {
        ids.push_back(part.mark);
      }
      place = TextPlace::kBehindMark;
    }
    return ids;
  }

 private:
  Writer& mark(token id) {
    parts_.push_back({.mark = id});
    return *this;
  }

  const Subwords& subwords_;
  const token begin_, end_;
  std::vector<ChatPart> parts_;
};

bool is_answer(const ChatTurn& turn) { return turn.role == "assistant"; }

// Takes the system prompt off the turns; "" if there is none.
std::string take_system(Turns& turns) {
  if (turns.empty() || turns.front().role != "system") return "";
  const std::string& text = turns.front().text;
  turns = turns.subspan(1);
  return text;
}

void refuse_system(Turns turns) {
  if (turns.empty() || turns.front().role != "system") return;
  throw Error(ErrorCode::kOptionValue, "the chat template of this model has no system prompt",
              "leave out --system, and write what the model should know into the first message");
}

void write_chatml(Writer& out, Turns turns) {
  for (const ChatTurn& turn : turns) {
    out.mark("<|im_start|>").text(turn.role + "\n" + turn.text).mark("<|im_end|>").text("\n");
  }
  out.mark("<|im_start|>").text("assistant\n");
}

void write_llama2(Writer& out, Turns turns) {
  std::string system;
  if (const bool has_system = !turns.empty() && turns.front().role == "system"; has_system) {
    system = "<<SYS>>\n" + take_system(turns) + "\n<</SYS>>\n\n";
  }
  for (const ChatTurn& turn : turns) {
    const std::string content = std::exchange(system, "") + turn.text;
    const std::string_view stripped = strip_both(content);
    if (is_answer(turn)) {
      out.text(" ").text(stripped).text(" ").end();
    } else {
      out.begin().text("[INST] ").text(stripped).text(" [/INST]");
    }
  }
}

void write_llama3(Writer& out, Turns turns) {
  out.begin();
  const auto head = [&](std::string_view role) {
    out.mark("<|start_header_id|>").text(role).mark("<|end_header_id|>").text("\n\n");
  };
  for (const ChatTurn& turn : turns) {
    head(turn.role);
    out.text(strip_both(turn.text)).mark("<|eot_id|>");
  }
  head("assistant");
}

// Gemma 3 writes a system prompt before the first message, the earlier ones have none.
void write_gemma3(Writer& out, Turns turns) {
  std::string first = take_system(turns);
  if (!first.empty()) first += "\n\n";
  out.begin();
  for (const ChatTurn& turn : turns) {
    out.mark("<start_of_turn>").text(is_answer(turn) ? "model\n" : "user\n");
    out.text(std::exchange(first, "")).text(strip_both(turn.text));
    out.mark("<end_of_turn>").text("\n");
  }
  out.mark("<start_of_turn>").text("model\n");
}

void write_gemma(Writer& out, Turns turns) {
  refuse_system(turns);
  write_gemma3(out, turns);
}

void write_mistral(Writer& out, Turns turns) {
  refuse_system(turns);
  out.begin();
  for (const ChatTurn& turn : turns) {
    if (is_answer(turn)) {
      out.text(turn.text).end();
    } else {
      out.text("[INST] ").text(turn.text).text(" [/INST]");
    }
  }
}

void write_zephyr(Writer& out, Turns turns) {
  for (const ChatTurn& turn : turns) {
    out.text("<|" + turn.role + "|>\n" + turn.text).end().text("\n");
  }
  out.text("<|assistant|>\n");
}

// The texts by which templates are recognised. Of ChatML, a default for the system may stand behind
// the first part.

constexpr std::string_view kChatMlLoop = "{% for message in messages %}";
constexpr std::string_view kChatMlDefault =
    "{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n";
constexpr std::string_view kChatMlDefaultEnd = "<|im_end|>\n' }}{% endif %}";
constexpr std::string_view kChatMlTurns =
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

constexpr std::string_view kLlama2 =
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
    "{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception("
    "'Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\n' + "
    "system_message + '\n<</SYS>>\n\n' + message['content'] %}{% else %}{% set content = "
    "message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + "
    "content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' '  + "
    "content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}";

constexpr std::string_view kLlama3 =
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
    "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim "
    "+ '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
    "{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant"
    "<|end_header_id|>\n\n' }}{% endif %}";
// Its first form always asked for an answer.
constexpr std::string_view kLlama3First =
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
    "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim "
    "+ '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
    "{{ content }}{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}";

constexpr std::string_view kGemma =
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not "
    "supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != "
    "(loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate "
    "user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') %}"
    "{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}";

constexpr std::string_view kGemma3 = R"({{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%})";

constexpr std::string_view kMistral =
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != "
    "(loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate "
    "user/assistant/user/assistant/...') }}{% endif %}{% if message['role'] == 'user' %}"
    "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
    "{{ message['content'] + eos_token}}{% else %}{{ raise_exception('Only user and assistant "
    "roles are supported!') }}{% endif %}{% endfor %}";

constexpr std::string_view kZephyr =
    "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + "
    "message['content'] + eos_token }}\n{% elif message['role'] == 'system' %}\n{{ '<|system|>\n' "
    "+ message['content'] + eos_token }}\n{% elif message['role'] == 'assistant' %}\n"
    "{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n{% if loop.last and "
    "add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}";

constexpr std::string_view kBegin = "the mark of the beginning", kEnd = "the mark of the end";
constexpr std::string_view kChatMlMarks[] = {"<|im_start|>", "<|im_end|>"};
constexpr std::string_view kBothEnds[] = {kBegin, kEnd};
constexpr std::string_view kLastEnd[] = {kEnd};
constexpr std::string_view kLlama3Marks[] = {kBegin, "<|start_header_id|>", "<|end_header_id|>",
                                             "<|eot_id|>"};
constexpr std::string_view kGemmaMarks[] = {kBegin, "<start_of_turn>", "<end_of_turn>"};

struct KnownTemplate {
  std::string_view name;
  std::string_view text;  // ChatML's has a default of its own
  std::span<const std::string_view> marks;
  void (*write)(Writer& out, Turns turns);
};

constexpr KnownTemplate kTemplates[] = {
    {"ChatML", "", kChatMlMarks, write_chatml},
    {"Llama 2", kLlama2, kBothEnds, write_llama2},
    {"Llama 3", kLlama3, kLlama3Marks, write_llama3},
    {"Llama 3", kLlama3First, kLlama3Marks, write_llama3},
    {"Gemma", kGemma, kGemmaMarks, write_gemma},
    {"Gemma 3", kGemma3, kGemmaMarks, write_gemma3},
    {"Mistral", kMistral, kBothEnds, write_mistral},
    {"Zephyr", kZephyr, kLastEnd, write_zephyr},
};

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

// Whether it is ChatML, and its system prompt.
bool is_chatml(std::string_view text, std::string& system) {
  if (!take(text, kChatMlLoop)) return false;
  if (take(text, kChatMlDefault)) {
    const std::size_t end = text.find(kChatMlDefaultEnd);
    if (end == text.npos || text.substr(0, end).find('\'') != text.npos) return false;
    system = text.substr(0, end);
    text.remove_prefix(end + kChatMlDefaultEnd.size());
  }
  return text == kChatMlTurns;
}

std::size_t kind_of(std::string_view program, std::string& system) {
  const std::string text = with_newlines(program);
  if (is_chatml(text, system)) return 0;
  const auto* const found = std::ranges::find(std::begin(kTemplates) + 1, std::end(kTemplates),
                                              std::string_view(text), &KnownTemplate::text);
  if (found != std::end(kTemplates) && !text.empty()) {
    return static_cast<std::size_t>(found - std::begin(kTemplates));
  }
  throw Error(ErrorCode::kModelWrongKind,
              program.empty() ? "the model has no chat template"
                              : "the chat template of the model is not one that fovea knows: " +
                                    excerpt(program),
              fmt::format("those of {} are known; without --chat the model goes on with a text",
                          "ChatML, Llama 2, Llama 3, Gemma, Mistral and Zephyr"));
}

}  // namespace

ChatTemplate::ChatTemplate(const PretrainedText& text)
    : subwords_(*text.subwords),
      begin_(text.subwords->special().begin),
      end_(text.end),
      kind_(kind_of(text.chat_template, system_)) {
  for (const std::string_view name : kTemplates[kind_].marks) {
    const token id = name == kBegin ? begin_ : name == kEnd ? end_ : subwords_.id_of(name);
    if (id != kNoToken && subwords_.is_mark(id)) continue;
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("the vocabulary lacks {}, which the chat template of {} needs", name,
                            kTemplates[kind_].name),
                "without --chat the model goes on with a text");
  }
}

std::vector<token> ChatTemplate::tokens(const std::vector<ChatTurn>& turns) const {
  Writer out(subwords_, begin_, end_);
  kTemplates[kind_].write(out, turns);
  return out.tokens();
}

}  // namespace fovea
