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
#include "fovea/base/option.h"
#include "fovea/data/corpus.h"
#include "fovea/task/language_model/chat_data.h"
#include "fovea/task/language_model/language_model.h"

namespace fovea {

namespace {

// The bytes of text that the targets stand for, and the number of unknown words among the targets.
struct Predicted {
  index bytes = 0;
  index unknown = 0;
};

// The spaces that decoding leaves out in front of the targets: subwords begin each line, or the
// text, with one.
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

// The sequences of a text, and how many of their targets the windows before have counted.
struct Windows {
  EvaluationBatches set;
  index seen = 0;  // of each but the first

  Batch operator[](index i) const {
    Batch batch = set[i];
    for (std::size_t s = 0; s < batch.samples.size(); ++s) {
      if (batch.samples[s] == 0) continue;
      std::fill_n(batch.targets.begin() + batch.offsets[s], seen, kIgnoredTarget);
    }
    return batch;
  }
};

// Windows as long as the context, each `stride` tokens behind the one before.
std::vector<Slice> overlapping(index tokens, index context, index stride) {
  std::vector<Slice> slices;
  for (index start = 0, predicted = 0; predicted < tokens - 1; start += stride) {
    slices.push_back({start, std::min(context, tokens - 1 - start)});
    predicted = start + slices.back().targets;
  }
  return slices;
}

// A test is cut into texts as long as the model sees, whatever it was trained on; a batch has as
// many tokens as there.
BatchOptions batches_of_test(const LanguageModelSettings& settings) {
  BatchOptions batches = batches_of(settings);
  const index trained = std::exchange(batches.block, settings.model.block);
  batches.batch_size = std::max<index>(1, batches.batch_size * trained / batches.block);
  return batches;
}

Windows windows_of(const LoadedLanguageModel& loaded, std::span<const std::string> files,
                   index stride) {
  const TextOptions& text = loaded.settings.text;
  const index context = loaded.settings.model.block;
  const DataKind& kind = data_kind(text.data);
  require_option(stride >= 0 && stride <= context, "stride", stride, "in 0 to {}, the context",
                 context);
  if (stride > 0 && kind.evaluation != cut_blocks) {
    throw Error(ErrorCode::kOptionValue,
                "--stride: the model reads lines, each for itself, and no text without end",
                "leave --stride out");
  }
  const std::string all =
      read_text(files, text.tokenizer == "byte" ? TextEncoding::kAnyBytes : TextEncoding::kUtf8);
  require_token_memory(all, *loaded.tokenizer, stride > 0 ? stride : context);
  const BatchOptions batches = batches_of_test(loaded.settings);
  const std::string name = files.size() == 1 ? name_of_input(files[0]) : "test text";
  Sequences sequences =
      text.data == kChat && loaded.pretrained
          ? read_conversations(all, *loaded.pretrained, batches.cut(), text.loss_on, name).sequences
          : kind.evaluation(all, *loaded.tokenizer, batches.cut(), name);
  if (stride > 0) sequences.slices = overlapping(std::ssize(sequences.stream), context, stride);
  return {EvaluationBatches(std::move(sequences), batches.batch_size),
          stride > 0 ? context - stride : 0};
}

Predicted predicted_by(const Windows& windows, const Tokenizer& tokenizer) {
  const std::vector<std::int32_t> bytes_of_token = tokenizer.bytes_predicted();
  const token unknown = tokenizer.special().unknown;
  const std::vector<bool> begins_with_space = which_begin_with_space(tokenizer);
  Predicted all;
  for (index i = 0; i < windows.set.size(); ++i) {
    const Batch batch = windows[i];
    all.bytes += bytes_predicted(batch, bytes_of_token) -
                 spaces_left_out(batch, tokenizer, begins_with_space);
    if (unknown == kNoToken) continue;
    all.unknown += std::count(batch.targets.begin(), batch.targets.end(), unknown);
  }
  return all;
}

}  // namespace

TextScore evaluate_text(const Context& context, const LoadedLanguageModel& loaded,
                        std::span<const std::string> files, const TextEvaluation& options) {
  const Windows windows = windows_of(loaded, files, options.stride);
  require_memory("the evaluation", evaluation_memory(context, *loaded.model, windows.set),
                 "free some memory, or use a machine that has more");
  Tape tape(context, TapeMode::kInference);
  const auto loss_of_window = [&](const Batch& batch) {
    return loaded.model->loss(tape, {.ids = batch.ids,
                                     .targets = batch.targets,
                                     .offsets = batch.offsets,
                                     .samples = batch.samples});
  };
  const SetLoss loss = loss_of_batches(tape, windows.set.size(),
                                       [&](index i) { return windows[i]; }, loss_of_window, {})
                           .value();
  if (!std::isfinite(loss.mean())) {
    throw Error(ErrorCode::kModelDamaged,
                fmt::format("the loss of the text is {}: expected a finite number",
                            std::isnan(loss.mean()) ? "NaN" : "infinite"),
                "train the model again, or evaluate an earlier checkpoint");
  }
  const Predicted predicted = predicted_by(windows, *loaded.tokenizer);
  const bool says_all = predicted.unknown == 0 && !loaded.settings.text.lower;
  return {.loss = loss.mean(),
          .perplexity = std::exp(loss.mean()),
          .bits_per_byte =
              says_all ? loss.sum / (std::numbers::ln2 * static_cast<double>(predicted.bytes))
                       : std::numeric_limits<double>::quiet_NaN(),
          .tokens = loss.targets,
          .unknown = predicted.unknown,
          .single_lines = windows.set.sequences().single_lines,
          .truncated_lines = windows.set.sequences().truncated_lines};
}

}  // namespace fovea
