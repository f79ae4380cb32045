// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/language_model.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/config/json.h"
#include "fovea/model/language_model.h"
#include "fovea/model/layer_table.h"
#include "fovea/task/language_model/adapters.h"
#include "fovea/task/language_model/base.h"
#include "fovea/task/language_model/peft.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/run_flow.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

// At least as many values as any table or matrix whose size the settings name.
double largest_matrix(const LanguageModelConfig& c) {
  const index block = c.position == PositionKind::kLearned ? c.block : 0;
  double columns = static_cast<double>(std::max(c.vocabulary, block));
  if (c.kind == LanguageModelKind::kTransformer) {
    const double heads = static_cast<double>(c.heads) * static_cast<double>(c.head_dim);
    columns = std::max({columns, static_cast<double>(c.ff), heads});
  }
  return static_cast<double>(c.width) * columns;
}

ModelSizes sizes_of(const LanguageModelConfig& c) {
  return {.layers = layer_count(sized_stages(resolve(c))),
          .largest_matrix = largest_matrix(c),
          .parameters = [c] { return parameter_count(c); },
          .bytes = [c] { return model_memory(c); }};
}

// Bytes of ids, targets and offsets of an update's batches.
double batch_bytes(const LanguageModelRun& run) {
  return 2 * sizeof(token) * static_cast<double>(run.settings.recipe.accumulate) *
         static_cast<double>(run.training->largest_batch());
}

// Bytes of the keys and values that a decoder keeps for `tokens` tokens.
double cache_bytes(const LanguageModelConfig& config, index tokens) {
  const LanguageModelConfig c = resolve(config);
  double values = 0;
  for (const SizedStage& stage : sized_stages(c)) {
    for (const SizedLayer& layer : stage.branches) {
      const auto kept = layer.spec.kind->kept;
      if (kept == nullptr) continue;
      // All but the first read the columns that they make.
      values +=
          kept(layer.spec, layer.in, c.block, tokens) +
          static_cast<double>(layer.spec.layers - 1) * kept(layer.spec, layer.out, c.block, tokens);
    }
  }
  return sizeof(float) * values;
}

double update_gradients(const LanguageModelRun& run) {
  const LanguageModelConfig c = resolve(run.settings.model);
  const OptimizerKind optimizer = run.settings.recipe.optimizer;
  const index tokens = run.settings.recipe.accumulate * run.training->largest_batch();
  const UsedTable table{c.vocabulary, c.width, tokens};
  // The output projection reads all rows of a tied one.
  const bool is_sparse = !c.tie && run.settings.from.freeze.empty();
  return gradient_bytes(optimizer, parameter_count(c) - run.frozen,
                        {&table, is_sparse ? std::size_t{1} : std::size_t{0}});
}

}  // namespace

std::string config_text(const LanguageModelSettings& settings) {
  SettingsFile<LanguageModelSettings> file{std::string(kLanguageModelKind), settings};
  return to_json(file);
}

LanguageModelSettings settings_from_text(std::string_view text, const std::string& name) {
  SettingsFile<LanguageModelSettings> file{std::string(kLanguageModelKind)};
  file.settings.model.embedding_scale = 1;  // of models that were made before it was a setting
  return config_from_text(std::move(file), text, name, "a language model").settings;
}

LanguageModelSettings load_settings(const fs::path& folder) {
  return settings_from_text(read_model_file(folder, "config.json"),
                            (folder / "config.json").string());
}

namespace {

// Adds the settings that the commands ask for, as if it were one of ours.
LoadedLanguageModel with_settings(PretrainedLanguageModel read) {
  LoadedLanguageModel loaded;
  loaded.settings.model = std::move(read.config);
  loaded.settings.text.tokenizer = kPretrainedKind;
  loaded.settings.text.batch_size = 1;
  loaded.tokenizer = subwords_tokenizer(read.text.subwords);
  loaded.model = std::move(read.model);
  loaded.pretrained = std::move(read.text);
  return loaded;
}

// A folder of ours.
LoadedLanguageModel load_own(const fs::path& folder, const PretrainedOptions& options) {
  if (fs::exists(folder / kPeftFiles[1]) && !fs::exists(folder / kManifestName)) {
    throw Error(
        ErrorCode::kModelWrongKind,
        fmt::format("{}: adapters of PEFT, without the model that they change", folder.string()),
        "name the model, and these with --adapter");
  }
  if (options.max_context > 0) {
    throw Error(
        ErrorCode::kUsage,
        "--max-context is for models from elsewhere: a folder of Hugging Face, or a GGUF file",
        "leave it out: a model of fovea has the --block with which it was trained");
  }
  LoadedLanguageModel loaded;
  loaded.settings = load_settings(folder);
  TokenizerData data = read_tokenizer_data(folder);
  TextCutter cutter = make_cutter(data, (folder / "tokenizer.txt").string());
  if (cutter.pretrained) loaded.kept_text = std::move(data.model);
  const index tokens = cutter.tokenizer->vocabulary_size();
  if (tokens != loaded.settings.model.vocabulary) {
    fail(ErrorCode::kModelDamaged, "{}: the tokenizer has {} tokens, the model {}", folder.string(),
         tokens, loaded.settings.model.vocabulary);
  }
  loaded.tokenizer = std::move(cutter.tokenizer);
  loaded.pretrained = std::move(cutter.pretrained);
  if (loaded.settings.from.lora > 0) {
    AdaptedModel adapted = load_adapted(folder, loaded.settings,
                                        architecture_name(loaded.pretrained), options.weights);
    loaded.model = std::make_unique<LanguageModel>(std::move(adapted.model));
    if (adapted.adapters) loaded.adapters.push_back(std::move(adapted.adapters));
    return loaded;
  }
  loaded.model = load_model<LanguageModel>(folder, sizes_of, loaded.settings.model,
                                           loaded.settings.recipe.seed);
  return loaded;
}

}  // namespace

LoadedLanguageModel load_language_model(const fs::path& path, const PretrainedOptions& options) {
  LoadedLanguageModel loaded =
      is_pretrained(path) ? with_settings(load_pretrained(path, options)) : load_own(path, options);
  // All stand side by side before the first is merged: so those that do not add up are refused.
  for (const std::string& choice : options.adapter) {
    loaded.adapters.push_back(load_adapters(
        {*loaded.model, path, architecture_name(loaded.pretrained)}, adapter_choice(choice)));
  }
  for (auto& adapters : loaded.adapters) {
    if (merge_into_values(*loaded.model, *adapters)) adapters.reset();
  }
  std::erase(loaded.adapters, nullptr);
  return loaded;
}

LanguageModel load_weights_of(const fs::path& folder, const LanguageModelConfig& config,
                              std::uint64_t seed) {
  return std::move(*load_model<LanguageModel>(folder, sizes_of, config, seed));
}

TextCutter make_cutter(const TokenizerData& data, const std::string& where) {
  if (data.kind != kPretrainedKind) return {make_tokenizer(data)};
  PretrainedText text = read_kept_text(data.model, where);
  return {subwords_tokenizer(text.subwords), std::move(text)};
}

void keep_found(LanguageModelSettings& given, const LanguageModelSettings& began) {
  given.model.vocabulary = began.model.vocabulary;
  given.from.base_checksum = began.from.base_checksum;
}

template <>
struct TaskOf<LanguageModelRun> {
  using Objective = LanguageModelObjective;

  static std::vector<NamedFile> files(const LanguageModelRun& run) {
    return first_files(config_text(run.settings), run.tokenizer_data);
  }

  static LanguageModel make(const LanguageModelRun& run) {
    LanguageModel model = run.from_base
                              ? load_base(run.settings, types_of_base(run.settings.from))
                              : LanguageModel(run.settings.model, run.settings.recipe.seed);
    freeze_for(model, run);
    return model;
  }

  static index tokens(const LanguageModelRun& run) { return run.training->largest_batch(); }

  static TapeLoad load(const auto& set, TapeMode mode, const LanguageModelRun& run) {
    TapeLoad load = batch_load(run, mode);
    load.tokens = set.largest_batch();
    load.sequences = run.settings.text.batch_size;
    return load;
  }

  static OwnBytes bytes(const Context&, const LanguageModelRun& run) {
    OwnBytes own{.batches = batch_bytes(run), .vocabulary = vocabulary_bytes(run.tokenizer_data)};
    if (run.adapted.trained > 0) {
      const index trained = run.adapted.trained;
      const double values = sizeof(float) * static_cast<double>(trained);
      own.adapters = {.model = run.adapted.bytes + values, .trained = trained};
      own.gradients = gradient_bytes(run.settings.recipe.optimizer, trained, {});
    } else {
      own.gradients = update_gradients(run);
      own.frozen = run.frozen;
    }
    return own;
  }

  static PassCost plan(const Context& context, const LanguageModelRun& run, const TapeLoad& load) {
    return plan_pass(context, run.settings.model, load, adapters_for_plan(run));
  }

  static RowCounts rows(const LanguageModelRun& run) {
    RowCounts rows{.of_update = static_cast<double>(tokens(run) * run.settings.recipe.accumulate)};
    if (run.validation) {
      rows.evaluated = static_cast<double>(run.validation->sequences().target_count());
    }
    if (run.settings.recipe.evaluate_training) {
      rows.evaluated += static_cast<double>(run.training->sequences().stream.size());
    }
    return rows;
  }

  // All batches are about as large.
  static double flops(const Context& context, const LanguageModelRun& run) {
    const TapeLoad load = TaskOf::load(*run.training, TapeMode::kTrain, run);
    return plan(context, run, load).flops * static_cast<double>(run.settings.recipe.accumulate);
  }
};

namespace {

// What the model of the beginning makes of the answers: from the folder, or measured now, which is
// only right while the model is that one. False if the observer asked to stop.
bool take_reference(LanguageModelObjective& objective, const LanguageModelRun& run,
                    const fs::path& folder, bool measures, TrainingObserver& observer) {
  const index pairs = run.training->sequences().items(),
              validated = run.validation ? run.validation->sequences().items() : 0;
  if (!measures) {
    objective.set_reference(read_reference(folder, pairs, validated));
    return true;
  }
  observer.told(fmt::format("first, what the base makes of {} pairs", pairs + validated));
  auto reference = objective.measure_reference([&](double done) {
    observer.works("what the base makes of the answers", done);
    return observer.request() != Request::kStop;
  });
  if (!reference) return false;
  write_reference(folder, *reference);
  objective.set_reference(std::move(*reference));
  return true;
}

}  // namespace

TrainResult train_language_model(const Context& context, const LanguageModelRun& run,
                                 const std::filesystem::path& folder, StartAt start,
                                 TrainingObserver& observer) {
  const bool prefers = run.settings.text.objective == LanguageObjective::kDpo;
  // A run without a checkpoint begins from its base again, and so do adapters until their values
  // are read.
  const bool measures = !start.resume || (run.from_base && !fs::exists(folder / kReferenceName));
  RunTraining training(context, run, folder, std::move(start));
  if (prefers && !take_reference(training.objective(), run, folder, measures, observer)) {
    return TrainResult{.state = {}, .stopped = true};
  }
  return training.train(run.settings.recipe, observer);
}

void require_token_memory(std::string_view text, const Tokenizer& tokenizer, index block) {
  // A line has a begin token and an end token. Each sequence has a slice and a place in the order.
  constexpr double kSequence = sizeof(Slice) + 2 * sizeof(index);
  const auto lines = static_cast<double>(std::count(text.begin(), text.end(), '\n') + 1);
  const double tokens = static_cast<double>(tokenizer.token_count(text)) + 2 * lines;
  require_memory("the tokens of the text",
                 sizeof(token) * tokens +
                     kSequence * (tokens / static_cast<double>(std::max<index>(block, 1)) + lines),
                 "use less text, or a machine with more memory");
}

namespace {

// A weight that lies in blocks lies so in the plan, too.
PassCost plan_pass_of(const Context& context, const LanguageModel& model, const TapeLoad& load) {
  return plan_pass(context, model.config(), load, [&](const LanguageModel& planned) {
    for (std::size_t n = 0; n < model.parameters().size(); ++n) {
      planned.parameters()[n]->blocks = model.parameters()[n]->blocks;
    }
    return std::unique_ptr<LowRankAdapters>();
  });
}

}  // namespace

double evaluation_memory(const Context& context, const LanguageModel& model,
                         const EvaluationBatches& set) {
  const TapeLoad load{.tokens = set.largest_batch(),
                      .mode = TapeMode::kInference,
                      .sequences = set.batch_size(),
                      .precision = context.precision()};
  return kProcessBytes + kRounding * plan_pass_of(context, model, load).bytes();
}

double generation_memory(const Context& context, const LanguageModel& model, index prompt,
                         index max_tokens) {
  const LanguageModelConfig& config = model.config();
  // When the window moves, the model reads the tokens that stay again, from position 0.
  const index read = std::min(prompt, config.block);
  const bool moves_on = max_tokens > config.block - read || prompt > read;
  const index seen = moves_on ? config.block : read + max_tokens;
  const TapeLoad load{.tokens = moves_on ? seen : read,
                      .mode = TapeMode::kInference,
                      .precision = context.precision()};
  const double logits = 3 * 4 * static_cast<double>(config.vocabulary);
  return kProcessBytes + logits + cache_bytes(config, seen) +
         kRounding * plan_pass_of(context, model, load).bytes();
}

TokenBatch token_batch(const Batch& batch) {
  return {.ids = batch.ids,
          .targets = batch.targets,
          .offsets = batch.offsets,
          .samples = batch.samples};
}

std::optional<SetLoss> loss_of(Tape& tape, const LanguageModel& model, const EvaluationBatches& set,
                               const std::function<bool()>& interrupted) {
  return loss_of_batches(
      tape, set.size(), [&](index i) { return set[i]; },
      [&](const Batch& batch) { return model.loss(tape, token_batch(batch)); }, interrupted);
}

std::optional<SetLoss> loss_of(Tape& tape, const LanguageModel& model, const Sequences& sequences,
                               const BatchOptions& batches,
                               const std::function<bool()>& interrupted) {
  const auto tokens = static_cast<index>(sequences.stream.size());
  const index block = batches.block, batch_size = batches.batch_size;
  const bool cut = !sequences.slices.empty();
  const index count =
      cut ? static_cast<index>(sequences.slices.size()) : (tokens - 2 + block) / block;
  const auto batch_at = [&](index i) {
    Batch batch;
    const index end = std::min(count, (i + 1) * batch_size);
    for (index n = i * batch_size; n < end; ++n) {
      if (cut) {
        append(batch, sequences, n);
      } else {
        append(batch, sequences.stream, {n * block, std::min(block, tokens - 1 - n * block)},
               static_cast<std::uint64_t>(n));
      }
    }
    return batch;
  };
  return loss_of_batches(
      tape, (count + batch_size - 1) / batch_size, batch_at,
      [&](const Batch& batch) { return model.loss(tape, token_batch(batch)); }, interrupted);
}

Variable LanguageModelObjective::loss_of_batch(const Batch& batch) {
  return prefers() ? preference_loss(batch) : model_.loss(tape_, token_batch(batch), options_);
}

double LanguageModelObjective::forward(index number) {
  const double loss = ObjectiveOf::forward(number);
  return prefers() ? std::exchange(preference_loss_, 0) : loss;
}

double LanguageModelObjective::weight_of(const Batch& batch) const {
  if (prefers()) return static_cast<double>(batch.sequences()) / 2;
  return static_cast<double>(targets_of(batch));
}

std::vector<double> LanguageModelObjective::reference_of(const Batch& batch,
                                                         const std::vector<double>& all) const {
  std::vector<double> ratios;
  for (std::size_t n = 0; n < batch.samples.size(); n += 2) {
    const auto pair = static_cast<std::size_t>(batch.samples[n] / 2);
    ratios.push_back(all.empty() ? 0 : all[pair]);
  }
  return ratios;
}

// The gradient of the loss by the losses of the answers is known before backward: these are
// computed of the rows first, on a tape of their own.
Variable LanguageModelObjective::preference_loss(const Batch& batch) {
  const Variable rows = model_.rows(tape_, token_batch(batch), options_);
  loss_tape_.reset(TapeMode::kInference);
  const Variable values = loss_tape_.constant(Rows<const float>(rows.value<float>()));
  const std::vector<double> losses = model_.losses_of_rows(loss_tape_, values, token_batch(batch));
  const std::vector<double> reference = reference_of(batch, reference_.training);
  PreferenceStep step = preference_step(losses, reference, run_.settings.text.dpo_beta);
  preference_loss_ = options_.scale * step.loss;
  hits_ = {step.preferred, batch.sequences() / 2};
  for (double& factor : step.factors) factor *= options_.scale;
  return model_.loss_of_rows(tape_, rows, token_batch(batch), step.factors);
}

// In inference.
std::vector<double> LanguageModelObjective::losses_of(const Batch& batch) {
  Tape& tape = free_tape();
  tape.reset(TapeMode::kInference);
  return model_.losses_of_rows(tape, model_.rows(tape, token_batch(batch)), token_batch(batch));
}

std::optional<PreferenceReference> LanguageModelObjective::measure_reference(
    const std::function<bool(double)>& works) {
  const Sequences* const validation = run_.validation ? &run_.validation->sequences() : nullptr;
  const double all = static_cast<double>(run_.training->sequences().items() +
                                         (validation == nullptr ? 0 : validation->items()));
  double done = 0;
  const auto measure = [&](const Sequences& set, std::vector<double>& ratios) {
    const index batch_size = run_.settings.text.batch_size;
    for (index begin = 0; begin < set.items(); begin += batch_size) {
      if (!works(done / all)) return false;
      const index end = std::min(set.items(), begin + batch_size);
      Batch batch;
      for (index s = 2 * begin; s < 2 * end; ++s) append(batch, set, s);
      const std::vector<double> losses = losses_of(batch), of_batch = log_ratios(losses);
      ratios.insert(ratios.end(), of_batch.begin(), of_batch.end());
      done += static_cast<double>(end - begin);
    }
    return true;
  };
  PreferenceReference reference;
  if (!measure(run_.training->sequences(), reference.training)) return std::nullopt;
  if (validation != nullptr && !measure(*validation, reference.validation)) return std::nullopt;
  return reference;
}

std::optional<Validation> LanguageModelObjective::measure_preferences(
    const EvaluationBatches& set, const Interrupted& interrupted) {
  double loss = 0;
  index preferred = 0;
  for (index i = 0; i < set.size(); ++i) {
    if (interrupted && interrupted()) return std::nullopt;
    const Batch batch = set[i];
    const std::vector<double> losses = losses_of(batch);
    const std::vector<double> reference = reference_of(batch, reference_.validation);
    const PreferenceStep step = preference_step(losses, reference, run_.settings.text.dpo_beta);
    loss += step.loss;
    preferred += step.preferred;
  }
  const auto pairs = static_cast<double>(set.sequences().items());
  return Validation{.loss = loss / pairs,
                    .metrics = {{"accuracy", static_cast<double>(preferred) / pairs}}};
}

std::string_view loss_unit_of(const LanguageModelSettings& settings) {
  return settings.text.objective == LanguageObjective::kDpo ? kNatsPerPair : kNatsPerToken;
}

std::string_view LanguageModelObjective::loss_unit() const { return loss_unit_of(run_.settings); }

LanguageModelObjective::LanguageModelObjective(const Context& context, const LanguageModel& model,
                                               const LanguageModelRun& run, LossOptions options)
    : ObjectiveOf(context, model, run, options), loss_tape_(context) {
  if (run.settings.from.lora == 0) return;
  train_adapters(make_adapters(model, run.settings, architecture_name(run.pretrained)));
}

std::vector<double> LanguageModelObjective::rates() {
  const double decay = run_.settings.from.layer_lr_decay;
  if (decay == 1) return {};
  return layer_rates(parameters(), base_parts(model_.config()), decay);
}

std::optional<Validation> LanguageModelObjective::validate_training(
    const Interrupted& interrupted) {
  return validation_of(loss_of(free_tape(), model_, run_.training->sequences(),
                               batches_of(run_.settings), interrupted));
}

template RunCost cost_of(const LanguageModelRun&);
template double flops_of_update(const Context&, const LanguageModelRun&);
template double training_memory(const Context&, const LanguageModelRun&, index);
template double updates_to_come(const LanguageModelRun&, const RunState&);
template RunTime estimate_run_time(const Context&, const LanguageModelRun&, const RunState&);

}  // namespace fovea
