// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/evaluate.h"

#include <cmath>
#include <numbers>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/data/corpus.h"
#include "fovea/task/memory.h"
#include "fovea/task/objective.h"

namespace fovea {

TextScore evaluate_text(const Context& context, const LoadedLanguageModel& loaded,
                        std::span<const std::string> files) {
  const TextOptions& text = loaded.settings.text;
  const std::string all =
      read_text(files, text.tokenizer == "byte" ? TextEncoding::kAnyBytes : TextEncoding::kUtf8);
  require_token_memory(all, *loaded.tokenizer, loaded.settings.model.block);
  const EvaluationBatches set(
      data_kind(text.data).evaluation(all, *loaded.tokenizer, loaded.settings.model.block,
                                      files.size() == 1 ? files[0] : "test text"),
      text.batch_size);
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
  const std::vector<std::int32_t> bytes_of_token = loaded.tokenizer->bytes_predicted();
  index bytes = 0;
  for (index i = 0; i < set.size(); ++i) bytes += bytes_predicted(set[i], bytes_of_token);
  return {.loss = loss.mean(),
          .perplexity = std::exp(loss.mean()),
          .bits_per_byte = loss.sum / (std::numbers::ln2 * static_cast<double>(bytes)),
          .tokens = loss.targets};
}

}  // namespace fovea
