// SPDX-License-Identifier: Apache-2.0
// The training of a sentence encoder: preparing, what it costs, and training itself.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/text_groups.h"
#include "fovea/model/sentence_encoder.h"
#include "fovea/model/vector_losses.h"
#include "fovea/pretrained/encoder_tokenizer.h"
#include "fovea/task/embed/settings.h"
#include "fovea/task/embeddings.h"
#include "fovea/task/encoder_adapters.h"
#include "fovea/task/objective.h"
#include "fovea/task/run.h"

namespace fovea {

/// A run that is ready to begin.
struct EmbedRun : PreparedRun<EmbedSettings, GroupTraining, GroupEvaluation> {
  EncoderText pieces;
  TokenizerData kept;             ///< as the folder keeps it
  std::vector<index> columns;     ///< of --matryoshka
  bool from_base = false;         ///< its model begins with the weights of the base
  index frozen = 0;               ///< values that are not trained
  EncoderAdapters adapters = {};  ///< of --lora, which leave the base as it is
};

/// Checks all options and reads the texts; the tokenizer is that of the base, unless it is `known`.
/// Writes nothing. Throws kOptionValue, kUsage, and what read_groups() throws.
EmbedRun prepare_run(EmbedSettings settings, std::optional<TokenizerData> known = {},
                     RunWeights weights = RunWeights::kNew);

extern template RunCost cost_of(const EmbedRun&);
extern template double flops_of_update(const Context&, const EmbedRun&);
extern template double training_memory(const Context&, const EmbedRun&, index);
extern template double updates_to_come(const EmbedRun&, const RunState&);
extern template RunTime estimate_run_time(const Context&, const EmbedRun&, const RunState&);

/// Makes settings that follow from the data those that the run began with.
void keep_found(EmbedTextOptions& given, const EmbedTextOptions& began);
/// Does so for all settings; `began` is resolved.
void keep_found(EmbedSettings& given, const EmbedSettings& began);

/// Trains in `folder`, which exists. A new run writes config.json and its vocabulary first. Throws
/// also what Trainer::resume does.
TrainResult train_sentence_encoder(const Context& context, const EmbedRun& run,
                                   const std::filesystem::path& folder, StartAt start,
                                   TrainingObserver& observer);

/// The texts of a batch in parts of at most `most`: where each begins, and the number of texts.
std::vector<index> parts_of(index texts, index most);

/// Connects a sentence encoder and its groups of texts with the Trainer.
///
/// The loss is one of the vectors of all texts of a batch. These are made in parts of micro_batch
/// texts: each part once to know its vectors; then follow the loss and its gradient by the vectors;
/// then each part but the last, whose values are still there, is made again, and pulled back from
/// its vectors' gradient (Gao et al. 2021, "Scaling deep contrastive learning batch size under
/// memory limited setup"). Vectors, loss and their gradient have the bits of one whole batch; the
/// gradients of parameters, which are summed part by part, have its values to rounding.
class EmbedObjective final : public ObjectiveOf<EmbedRun, SentenceEncoder, VectorOptions> {
 public:
  EmbedObjective(const Context& context, const SentenceEncoder& model, const EmbedRun& run)
      : ObjectiveOf(context, model, run), loss_tape_(context.with(Precision::kFloat32)) {
    train_adapters(adapters_of(run, model));
  }

  std::string_view loss_unit() const override;
  std::vector<double> rates() override {
    return encoder_rates(parameters(), model_.config(), run_.settings.from);
  }
  double forward(index number) override;
  void backward() override;

 private:
  index targets_of(const GroupBatch& batch) const override { return batch.groups; }
  double weight_of(const GroupBatch& batch) const override;
  Variable loss_of_batch(const GroupBatch& batch) override;
  std::optional<Validation> measure_set(const GroupEvaluation& set,
                                        const Interrupted& interrupted) override;

  Validation validation_of(Rows<const float> vectors, const GroupEvaluation& set);
  Variable vectors_of_part(std::size_t part, std::span<HeadStatistics> seen);
  Variable pull_of_part(std::size_t part, Variable vectors);

  Tape loss_tape_;
  const GroupBatch* batch_ = nullptr;  // that of the last forward()
  std::vector<index> parts_;           // of it
  std::vector<float> vectors_, slopes_;
  double loss_value_ = 0;
};

/// The unit of losses.
std::string_view loss_unit_of(const EmbedSettings& settings);

}  // namespace fovea
