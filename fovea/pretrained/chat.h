// SPDX-License-Identifier: Apache-2.0
// Chat templates: how the turns of a conversation become a text with marks. Models bring a program
// in Jinja for it. No such program is run: known ones are recognised by their text, and are here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/tokenizer/subwords.h"

namespace fovea {

struct PretrainedText;

struct ChatTurn {
  std::string role;  ///< "system", "user" or "assistant"
  std::string text;
};

/// A part of a conversation as a template writes it: a mark, or a text whose marks are text.
struct ChatPart {
  token mark = kNoToken;
  std::string text = {};
};

/// ChatML, and the templates of Llama 2, Llama 3, Gemma 1 to 3, Mistral 7B and Zephyr.
class ChatTemplate {
 public:
  /// The template of a model, whose vocabulary must outlive it. Throws kModelWrongKind for one that
  /// is not known, or none, or whose marks the vocabulary lacks.
  explicit ChatTemplate(const PretrainedText& text);

  /// The system prompt of the template, for a conversation that gives none; "" for nothing.
  const std::string& usual_system() const { return system_; }

  /// The tokens of turns and of the beginning of an answer: questions and answers by turns, behind
  /// a system prompt if there is one. The text of a turn is text: marks that it contains are none.
  /// Throws kOptionValue for a system prompt where the template has none.
  std::vector<token> tokens(const std::vector<ChatTurn>& turns) const;

 private:
  const Subwords& subwords_;
  const token begin_, end_;  // of a text
  std::string system_ = {};  // before kind_, which finds it
  std::size_t kind_;         // a row of the table of templates
};

}  // namespace fovea
