// SPDX-License-Identifier: Apache-2.0
// Trains a language model on text files, into a model folder, loads a model from such a folder, and
// forecasts the memory, FLOPs and time of training, evaluating and generating.
//
// A model folder holds config.json, tokenizer.txt and model.safetensors, and vocab.txt if its
// tokens are words (for people: it is not read); a run folder also the files of Trainer. A
// checkpoint is a model folder, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/data/batcher.h"
#include "fovea/model/language_model.h"
#include "fovea/nn/low_rank.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/task/embeddings.h"
#include "fovea/task/language_model/preference.h"
#include "fovea/task/language_model/settings.h"
#include "fovea/task/objective.h"
#include "fovea/task/run.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// config.json: "kind" of a language model.
inline constexpr std::string_view kLanguageModelKind = "language_model";

/// Adapters beside their model. An assignment would end that first.
struct HeldAdapters : std::vector<std::unique_ptr<LowRankAdapters>> {
  HeldAdapters() = default;
  HeldAdapters(HeldAdapters&&) = default;
  HeldAdapters& operator=(HeldAdapters&&) = delete;
};

struct LoadedLanguageModel {
  LanguageModelSettings settings;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<LanguageModel> model;
  /// How a model from elsewhere reads its texts; also of one that fovea has trained further.
  std::optional<PretrainedText> pretrained = {};
  std::string kept_text = {};  ///< of a folder of fovea: as kept_text() made it of that model
  /// Of a model whose weights stay as they lie: they change it while they live, and end before it.
  HeldAdapters adapters = {};
};

/// Reads config.json alone. Throws kModelMissing if there is none, kModelDamaged, and
/// kModelWrongKind for a model of another kind.
LanguageModelSettings load_settings(const std::filesystem::path& folder);
/// Loads the model of a folder, with what `config` changes of what is in its config.json.
LanguageModel load_weights_of(const std::filesystem::path& folder,
                              const LanguageModelConfig& config, std::uint64_t seed);
/// Loads a model: a folder, or a model from elsewhere, with the adapters of the options. Adapters
/// are merged into the weights, unless these stay as they lie. Throws as load_settings(),
/// load_pretrained() and load_adapters() do, and kModelDamaged if the files of a folder do not
/// belong together.
LoadedLanguageModel load_language_model(const std::filesystem::path& path,
                                        const PretrainedOptions& options = {});

/// The text of config.json, and the settings from that text; `name` is the file's name in errors.
std::string config_text(const LanguageModelSettings& settings);
LanguageModelSettings settings_from_text(std::string_view text, const std::string& name);

/// The architecture of a model that is, or began, from elsewhere; else "".
inline std::string architecture_name(const std::optional<PretrainedText>& text) {
  return text ? text->architecture : "";
}

/// What adapters are trained on: the weights of a model from elsewhere stay as they lie in its
/// file.
struct AdaptedBase {
  index trained = 0;  ///< values of the adapters; 0: there are none
  double bytes = 0;   ///< of the weights of the base
  /// Of each parameter, planned; null: its values are float32.
  std::vector<std::shared_ptr<const BlockMatrix>> blocks = {};
};

/// A run that is ready to begin.
struct LanguageModelRun : PreparedRun<LanguageModelSettings, TrainingBatches, EvaluationBatches> {
  std::unique_ptr<Tokenizer> tokenizer;
  TokenizerData tokenizer_data = {};              ///< all of it, as the folder keeps it
  bool from_base = false;                         ///< its model begins with the weights of --base
  std::optional<PretrainedText> pretrained = {};  ///< as LoadedLanguageModel has it
  index frozen = 0;  ///< parameters that are not trained, though there are no adapters
  AdaptedBase adapted = {};
  std::size_t text_bytes = 0;
};

/// Checks all options, reads the text, and learns the tokenizer unless there is a --base, or
/// `known` is given, of a run that goes on; kStored: it has weights already, and needs none of the
/// base. Writes nothing.
LanguageModelRun prepare_run(LanguageModelSettings settings,
                             std::optional<TokenizerData> known = std::nullopt,
                             RunWeights weights = RunWeights::kNew);

/// How a language model cuts texts.
struct TextCutter {
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<PretrainedText> pretrained = {};  ///< of a model that is, or began, from elsewhere
};
/// The tokenizer of these data; `where` is their file, for messages. Throws kModelDamaged.
TextCutter make_cutter(const TokenizerData& data, const std::string& where);

extern template RunCost cost_of(const LanguageModelRun&);
extern template double flops_of_update(const Context&, const LanguageModelRun&);
extern template double training_memory(const Context&, const LanguageModelRun&, index);
extern template double updates_to_come(const LanguageModelRun&, const RunState&);
extern template RunTime estimate_run_time(const Context&, const LanguageModelRun&, const RunState&);

/// Makes settings that follow from the data those that the run began with.
void keep_found(LanguageModelSettings& given, const LanguageModelSettings& began);

/// Trains in `folder`, which exists. A new run writes config.json and its vocabulary first. Throws
/// also what Trainer::resume does.
TrainResult train_language_model(const Context& context, const LanguageModelRun& run,
                                 const std::filesystem::path& folder, StartAt start,
                                 TrainingObserver& observer);

/// Throws kOutOfMemory unless there is memory for the tokens of a text and the sequences cut from
/// them. The text itself is in memory already.
void require_token_memory(std::string_view text, const Tokenizer& tokenizer, index block);

/// Bytes that an evaluation of the set takes besides the model.
double evaluation_memory(const Context& context, const LanguageModel& model,
                         const EvaluationBatches& set);

/// Bytes that a decoder takes besides the model for `prompt` tokens and up to `max_tokens` more.
double generation_memory(const Context& context, const LanguageModel& model, index prompt,
                         index max_tokens);

/// A batch as the model reads it, which views it.
TokenBatch token_batch(const Batch& batch);

/// The loss of the model on the set, see loss_of_batches().
std::optional<SetLoss> loss_of(Tape& tape, const LanguageModel& model, const EvaluationBatches& set,
                               const std::function<bool()>& interrupted);
/// The loss on a text to train on. Random blocks are cut as a text to validate on is: one after
/// another, `batches.block` targets each.
std::optional<SetLoss> loss_of(Tape& tape, const LanguageModel& model, const Sequences& sequences,
                               const BatchOptions& batches,
                               const std::function<bool()>& interrupted);

/// Connects a language model and its text with the Trainer.
class LanguageModelObjective final
    : public ObjectiveOf<LanguageModelRun, LanguageModel, LossOptions> {
 public:
  LanguageModelObjective(const Context& context, const LanguageModel& model,
                         const LanguageModelRun& run, LossOptions options = {});

  std::string_view loss_unit() const override;
  double forward(index number) override;
  std::vector<double> rates() override;
  std::optional<Validation> validate_training(const Interrupted& interrupted) override;

  /// --objective dpo: what the model makes of all answers now. Calls `works` with the share that is
  /// done; nothing if it returns false.
  std::optional<PreferenceReference> measure_reference(const std::function<bool(double)>& works);
  void set_reference(PreferenceReference reference) { reference_ = std::move(reference); }

 private:
  bool prefers() const { return run_.settings.text.objective == LanguageObjective::kDpo; }
  // The log-ratios of the reference of the pairs of a batch.
  std::vector<double> reference_of(const Batch& batch, const std::vector<double>& all) const;
  std::vector<double> losses_of(const Batch& batch);
  Variable preference_loss(const Batch& batch);
  std::optional<Validation> measure_preferences(const EvaluationBatches& set,
                                                const Interrupted& interrupted);

  PreferenceReference reference_;  // none where updates are only timed
  Tape loss_tape_;                 // --objective dpo: the losses of the answers of a batch
  double preference_loss_ = 0;     // of the last batch

  index targets_of(const Batch& batch) const override { return batch.target_count(); }
  double weight_of(const Batch& batch) const override;
  Variable loss_of_batch(const Batch& batch) override;
  std::optional<Validation> measure_set(const EvaluationBatches& set,
                                        const Interrupted& interrupted) override {
    if (prefers()) return measure_preferences(set, interrupted);
    return validation_of(loss_of(free_tape(), model_, set, interrupted));
  }
};

/// The unit of losses.
std::string_view loss_unit_of(const LanguageModelSettings& settings);

}  // namespace fovea
