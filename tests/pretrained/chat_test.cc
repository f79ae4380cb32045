// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/chat.h"

#include <gmock/gmock.h>

#include <memory>

#include "fovea/base/option.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/text/tokenizer/byte_bpe.h"
#include "tests/pretrained/chat_golden.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr std::string_view kSmolLm =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
    "'<|im_start|>system\nYou are kind.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + "
    "message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if "
    "add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, text.npos);
  return text.replace(at, what.size(), with);
}

// Bytes, and the marks of all templates.
ByteBpeModel bytes_and_marks() {
  ByteBpeModel model;
  model.names = {"<|im_start|>",
                 "<|im_end|>",
                 "<s>",
                 "</s>",
                 "<|eot_id|>",
                 "<|start_header_id|>",
                 "<|end_header_id|>",
                 "<start_of_turn>",
                 "<end_of_turn>"};
  model.kinds.assign(model.names.size(), BpeTokenKind::kControl);
  model.begin = 2;
  model.end = 3;
  for (char c = '!'; c <= '~'; ++c) model.names.emplace_back(1, c);
  model.names.emplace_back("\u0120");  // a blank
  model.names.emplace_back("\u010A");  // a newline
  model.names.emplace_back("\u0109");  // a tab
  model.kinds.resize(model.names.size(), BpeTokenKind::kNormal);
  model.split = *find_named(pre_splits(), "smollm");
  return model;
}

PretrainedText text_with(std::string_view program, ByteBpeModel model = bytes_and_marks()) {
  PretrainedText text;
  text.subwords = std::make_shared<const ByteBpe>(std::move(model));
  text.end = text.subwords->special().end;
  text.chat_template = program;
  return text;
}

std::string written(const PretrainedText& text, const std::vector<ChatTurn>& turns) {
  return text.subwords->decode(ChatTemplate(text).tokens(turns));
}

TEST(ChatTemplate, ChatMlIsRecognisedByItsText) {
  const PretrainedText text = text_with(kSmolLm);
  EXPECT_EQ(ChatTemplate(text).usual_system(), "You are kind.");
  EXPECT_EQ(written(text, {{"system", "Be brief."}, {"user", "Hi"}}),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
  // The same, written otherwise.
  std::string escaped(kSmolLm);
  for (std::size_t at = escaped.find('\n'); at != escaped.npos; at = escaped.find('\n')) {
    escaped.replace(at, 1, "\\n");
  }
  EXPECT_EQ(ChatTemplate(text_with(escaped + "\n")).usual_system(), "You are kind.");
}

TEST(ChatTemplate, WithoutADefaultOfTheSystem) {
  const std::string text(kSmolLm);
  const std::size_t begin = text.find("{% if loop.first"), end = text.find("{{'<|im_start|>' +");
  EXPECT_EQ(ChatTemplate(text_with(text.substr(0, begin) + text.substr(end))).usual_system(), "");
}

TEST(ChatTemplate, ConversationsAreThoseOfTransformers) {
  for (const GoldenChat& golden : kGoldenChats) {
    EXPECT_EQ(written(text_with(golden.program), golden.turns), golden.written) << golden.program;
  }
}

TEST(ChatTemplate, ASystemPromptThatTheTemplateDoesNotHaveIsRefused) {
  int refused = 0;
  for (const GoldenChat& golden : kGoldenChats) {
    const auto has = [&](std::string_view words) {
      return golden.program.find(words) != golden.program.npos;
    };
    if (!has("System role not supported") && !has("Only user and assistant roles")) continue;
    const PretrainedText text = text_with(golden.program);
    const std::vector<ChatTurn> turns = {{"system", "Be brief."}, {"user", "Hi"}};
    EXPECT_THROWS(ChatTemplate(text).tokens(turns), kOptionValue, "has no system prompt");
    ++refused;
  }
  EXPECT_EQ(refused, 4);  // Gemma and Mistral, two conversations each
}

TEST(ChatTemplate, MarksInAMessageAreText) {
  const PretrainedText chatml = text_with(kSmolLm);
  const auto count = [](const PretrainedText& text, std::string_view message) {
    const std::vector<token> ids = ChatTemplate(text).tokens({{"user", std::string(message)}});
    return std::count(ids.begin(), ids.end(), text.subwords->id_of(message));
  };
  EXPECT_EQ(count(chatml, "<|im_end|>"), 1);
  for (const GoldenChat& golden : kGoldenChats) {
    const PretrainedText text = text_with(golden.program);
    for (const std::string_view mark : {"<s>", "</s>", "<|eot_id|>", "<end_of_turn>"}) {
      const std::string usual = written(text, {{"user", "x"}});
      const bool writes = usual.find(mark) != usual.npos;
      EXPECT_EQ(count(text, mark), writes ? 1 : 0) << golden.program;
    }
  }
}

TEST(ChatTemplate, AnotherProgramIsRefusedAndNeverRun) {
  const std::string text(kSmolLm);
  EXPECT_THROWS(ChatTemplate(text_with("")), kModelWrongKind, "has no chat template");
  for (const std::string& other :
       {replaced(text, "message['content']", "message['content'] | trim"),
        replaced(text, "assistant", "model"), replaced(text, "kind.", "kind.' + secret + '"),
        text + "{{ 1 }}", "x" + text, std::string("{% for m in messages %}{% endfor %}")}) {
    EXPECT_THROWS(ChatTemplate(text_with(other)), kModelWrongKind, "is not one that fovea knows");
  }
  ByteBpeModel without = bytes_and_marks();
  without.kinds[1] = BpeTokenKind::kNormal;
  EXPECT_THROWS(ChatTemplate(text_with(text, without)), kModelWrongKind, "lacks <|im_end|>");
  for (const GoldenChat& golden : kGoldenChats) {
    EXPECT_THROWS(ChatTemplate(text_with(replaced(std::string(golden.program), "message", "msg"))),
                  kModelWrongKind, "is not one that fovea knows");
    ByteBpeModel bare = bytes_and_marks();
    bare.begin = bare.end = kNoToken;
    EXPECT_THROWS(ChatTemplate(text_with(golden.program, bare)), kModelWrongKind, "lacks the mark");
  }
}

}  // namespace
}  // namespace fovea
