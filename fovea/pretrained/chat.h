// SPDX-License-Identifier: Apache-2.0
// Chat templates: how the turns of a conversation become a text with marks. Models bring a program
// in Jinja for it. No such program is run: known ones are recognised by their text, and are here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/tokenizer/subwords.h"

namespace fovea {

struct ChatTurn {
  std::string role;  ///< "system", "user" or "assistant"
  std::string text;
};

/// ChatML: <|im_start|>ROLE, a newline, the text, <|im_end|>, a newline.
/// The vocabulary must outlive it.
class ChatTemplate {
 public:
  /// Throws kModelWrongKind for a template that is not known, or none, or whose marks the
  /// vocabulary lacks.
  ChatTemplate(std::string_view program, const Subwords& subwords);

  /// The system prompt of the template, for a conversation that gives none; "" for nothing.
  const std::string& usual_system() const { return system_; }

  /// The tokens of turns and of the beginning of an answer. The text of a turn is text: marks that
  /// it contains are none.
  std::vector<token> tokens(const std::vector<ChatTurn>& turns) const;

 private:
  const Subwords& subwords_;
  std::string system_;
};

}  // namespace fovea
