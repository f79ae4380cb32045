// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/data/corpus.h"
#include "fovea/task/language_model/language_model.h"

namespace fovea {

namespace {

// The bytes of text that the targets stand for, and the number of unknown words among the targets.
struct Predicted {
  index bytes = 0;
  index unknown = 0;
};

// The spaces that decoding leaves out in front of the targets: subwords begin each line, or the text,
// with one.
index spaces_left_out(const Batch& batch, const Tokenizer& tokenizer,
                      const std::vector<bool>& begins_with_space) {
  const LineSpace rule = tokenizer.line_space();
  index count = 0;
  for (std::size_t n = 0; n < batch.targets.size(); ++n) {
    const token target = batch.targets[n];
    if (target == kIgnoredTarget || !begins_with_space[static_cast<std::size_t>(target)]) continue;
    std::string before;
    tokenizer.append_bytes(before, batch.ids[n]);
    const bool begins_line = before == "\n" && rule != LineSpace::kOneDroppedAtFirst;
    if (begins_line || batch.ids[n] == tokenizer.special().begin) ++count;
  }
  return count;
}

std::vector<bool> which_begin_with_space(const Tokenizer& tokenizer) {
  std::vector<bool> which(static_cast<std::size_t>(tokenizer.vocabulary_size()));
  if (tokenizer.line_space() == LineSpace::kKept) return which;
  for (token id = 0; id < tokenizer.vocabulary_size(); ++id) {
    std::string bytes;
    tokenizer.append_bytes(bytes, id);
    which[static_cast<std::size_t>(id)] = bytes.starts_with(' ');
  }
  return which;
}

Predicted predicted_by(const EvaluationBatches& set, const Tokenizer& tokenizer) {
  const std::vector<std::int32_t> bytes_of_token = tokenizer.bytes_predicted();
  const token unknown = tokenizer.special().unknown;
  const std::vector<bool> begins_with_space = which_begin_with_space(tokenizer);
  Predicted all;
  for (index i = 0; i < set.size(); ++i) {
    const Batch batch = set[i];
    all.bytes += bytes_predicted(batch, bytes_of_token) -
                 spaces_left_out(batch, tokenizer, begins_with_space);
    if (unknown == kNoToken) continue;
    all.unknown += std::count(batch.targets.begin(), batch.targets.end(), unknown);
  }
  return all;
}

// A test is cut into texts as long as the model sees, whatever it was trained on; a batch has as
// many tokens as there.
BatchOptions batches_of_test(const LanguageModelSettings& settings) {
  BatchOptions batches = batches_of(settings);
  const index trained = std::exchange(batches.block, settings.model.block);
  batches.batch_size = std::max<index>(1, batches.batch_size * trained / batches.block);
  return batches;
}

}  // namespace

TextScore evaluate_text(const Context& context, const LoadedLanguageModel& loaded,
                        std::span<const std::string> files) {
  const TextOptions& text = loaded.settings.text;
  const std::string all =
      read_text(files, text.tokenizer == "byte" ? TextEncoding::kAnyBytes : TextEncoding::kUtf8);
  require_token_memory(all, *loaded.tokenizer, loaded.settings.model.block);
  const BatchOptions batches = batches_of_test(loaded.settings);
  const EvaluationBatches set(
      data_kind(text.data).evaluation(all, *loaded.tokenizer, batches.cut(),
                                      files.size() == 1 ? name_of_input(files[0]) : "test text"),
      batches.batch_size);
  require_memory("the evaluation", evaluation_memory(context, loaded.settings.model, set),
                 "free some memory, or use a machine that has more");
  Tape tape(context, TapeMode::kInference);
  const SetLoss loss = loss_of(tape, *loaded.model, set, {}).value();
  if (!std::isfinite(loss.mean())) {
    throw Error(ErrorCode::kModelDamaged,
                fmt::format("the loss of the text is {}: expected a finite number",
                            std::isnan(loss.mean()) ? "NaN" : "infinite"),
                "train the model again, or evaluate an earlier checkpoint");
  }
  const Predicted predicted = predicted_by(set, *loaded.tokenizer);
  const bool says_all = predicted.unknown == 0 && !text.lower;
  return {.loss = loss.mean(),
          .perplexity = std::exp(loss.mean()),
          .bits_per_byte =
              says_all ? loss.sum / (std::numbers::ln2 * static_cast<double>(predicted.bytes))
                       : std::numeric_limits<double>::quiet_NaN(),
          .tokens = loss.targets,
          .unknown = predicted.unknown,
          .single_lines = set.sequences().single_lines,
          .truncated_lines = set.sequences().truncated_lines};
}

}  // namespace fovea
