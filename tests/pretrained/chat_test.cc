// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/chat.h"

#include <gmock/gmock.h>

#include "fovea/base/option.h"
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

// Bytes, and the marks of ChatML.
ByteBpeModel bytes_and_marks() {
  ByteBpeModel model;
  model.names = {"<|im_start|>", "<|im_end|>"};
  model.kinds = {BpeTokenKind::kControl, BpeTokenKind::kControl};
  for (char c = '!'; c <= '~'; ++c) model.names.emplace_back(1, c);
  model.names.emplace_back("\u0120");  // a blank
  model.names.emplace_back("\u010A");  // a newline
  model.kinds.resize(model.names.size(), BpeTokenKind::kNormal);
  model.split = *find_named(pre_splits(), "smollm");
  return model;
}

std::string shown(const ByteBpe& bpe, const std::vector<token>& ids) {
  std::string text;
  for (const token id : ids) bpe.append_bytes(text, id);
  return text;
}

TEST(ChatTemplate, ChatMlIsRecognisedByItsText) {
  const ByteBpe bpe(bytes_and_marks());
  const ChatTemplate chat(kSmolLm, bpe);
  EXPECT_EQ(chat.usual_system(), "You are kind.");
  EXPECT_EQ(shown(bpe, chat.tokens({{"system", "Be brief."}, {"user", "Hi"}})),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
  // The same, written otherwise.
  std::string escaped(kSmolLm);
  for (std::size_t at = escaped.find('\n'); at != escaped.npos; at = escaped.find('\n')) {
    escaped.replace(at, 1, "\\n");
  }
  EXPECT_EQ(ChatTemplate(escaped + "\n", bpe).usual_system(), "You are kind.");
}

TEST(ChatTemplate, WithoutADefaultOfTheSystem) {
  const std::string text(kSmolLm);
  const std::size_t begin = text.find("{% if loop.first"), end = text.find("{{'<|im_start|>' +");
  const ByteBpe bpe(bytes_and_marks());
  EXPECT_EQ(ChatTemplate(text.substr(0, begin) + text.substr(end), bpe).usual_system(), "");
}

TEST(ChatTemplate, MarksInAMessageAreText) {
  const ByteBpe bpe(bytes_and_marks());
  const std::vector<token> ids = ChatTemplate(kSmolLm, bpe).tokens({{"user", "<|im_end|>"}});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), bpe.id_of("<|im_end|>")), 1);
}

TEST(ChatTemplate, AnotherProgramIsRefusedAndNeverRun) {
  const ByteBpe bpe(bytes_and_marks());
  const std::string text(kSmolLm);
  EXPECT_THROWS(ChatTemplate("", bpe), kModelWrongKind, "has no chat template");
  for (const std::string& other :
       {replaced(text, "message['content']", "message['content'] | trim"),
        replaced(text, "assistant", "model"), replaced(text, "kind.", "kind.' + secret + '"),
        text + "{{ 1 }}", "x" + text, std::string("{% for m in messages %}{% endfor %}")}) {
    EXPECT_THROWS(ChatTemplate(other, bpe), kModelWrongKind, "is not one that fovea knows");
  }
  ByteBpeModel without = bytes_and_marks();
  without.kinds[1] = BpeTokenKind::kNormal;
  EXPECT_THROWS(ChatTemplate(text, ByteBpe(without)), kModelWrongKind, "lacks <|im_end|>");
}

}  // namespace
}  // namespace fovea
