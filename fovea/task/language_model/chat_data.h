// SPDX-License-Identifier: Apache-2.0
// Conversations to learn from (--data chat): a JSON object a line, written as the chat template of
// the base writes them.
#pragma once

#include <string>
#include <string_view>

#include "fovea/data/batcher.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/task/language_model/settings.h"

namespace fovea {

/// Conversations as sequences, each by itself.
struct ChatSequences {
  Sequences sequences;
  index conversations = 0;
  index truncated = 0;  ///< that are longer than a sequence; their end is dropped
  index left_out = 0;   ///< of these, those of which no answer is left; pairs that are longer
  index equal = 0;      ///< pairs of equal answers, which are left out
};

/// Reads lines of one of these forms:
///
///   {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}
///   {"prompt": "...", "completion": "..."}
///   {"instruction": "...", "input": "...", "output": "..."}                  (Alpaca)
///   {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}]}
///                                                                          (ShareGPT)
///
/// Roles are system (the first turn alone), user and assistant, the latter two by turns. What
/// stands behind the last answer is left out. With LossOn::kAnswers the targets are the tokens of
/// answers and the marks that end them. Throws kInputFormat, "NAME, line N: ...", for another line,
/// and kInputTooSmall for a text without conversations.
ChatSequences read_conversations(std::string_view text, const PretrainedText& base,
                                 const CutOptions& cut, LossOn loss_on, std::string_view name);

/// Reads lines of two conversations that are the same but for their last answers, each a sequence,
/// that with the preferred answer first:
///
///   {"prompt": "...", "chosen": "...", "rejected": "..."}
///   {"prompt": [{"role": "user", "content": "..."}], "chosen": [{"role": "assistant", ...}],
///    "rejected": [{"role": "assistant", ...}]}
///   {"chosen": [all messages], "rejected": [all messages]}
///
/// The targets are the tokens of the last answers, with the marks that end them. A pair that is
/// longer than a sequence, or whose answers are equal, is left out. Throws as read_conversations().
ChatSequences read_preferences(std::string_view text, const PretrainedText& base,
                               const CutOptions& cut, std::string_view name);

}  // namespace fovea
