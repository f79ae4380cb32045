// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/file.h"
#include "fovea/config/json.h"
#include "fovea/kernel/gemm.h"
#include "fovea/tensor/checksum.h"
#include "fovea/train/checkpoint.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/run_state.h"
#include "fovea/train/run_summary.h"
#include "fovea/train/schedule.h"

namespace fovea {

namespace {

index interval(const std::string& text, index updates_per_epoch, std::string_view option) {
  return to_updates(parse_length(text, option), updates_per_epoch, option);
}

// The window of the mean training loss, in updates: an epoch if the run is counted in epochs, else
// the interval between evaluations.
index window_length(const TrainOptions& options, index updates_per_epoch) {
  const bool epochs = parse_length(options.stop_after, "--stop-after").unit == LengthUnit::kEpochs;
  return epochs ? updates_per_epoch
                : interval(options.eval_every, updates_per_epoch, "--eval-every");
}

TrainerSetup with_products(const Context& context, TrainerSetup setup) {
  std::string& products = setup.identity.products;
  const Operands operands = operands_of<float>(context);
  if (!products.empty() || operands == Operands::kWhole) return setup;
  products = operands == Operands::kPaired ? "pairs" : "converted";
  return setup;
}

double mean_or_zero(double sum, index count) {
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

// What the manifest lists, as far as it exists: a run may go on without a file that was lost
// before.
std::vector<std::filesystem::path> model_files_of(const TrainerSetup& setup) {
  std::vector<std::filesystem::path> files;
  for (const NamedFile& file : setup.attachments) files.push_back(setup.folder / file.name);
  std::erase_if(files, [](const auto& file) { return !std::filesystem::exists(file); });
  return files;
}

}  // namespace

Trainer::Trainer(const Context& context, Objective& objective, TrainingObserver& observer,
                 TrainerSetup setup)
    : context_(context),
      objective_(objective),
      observer_(observer),
      setup_(with_products(context, std::move(setup))),
      folder_(setup_.folder),
      model_files_(model_files_of(setup_)),
      horizon_(parse_length(setup_.options.stop_after, "--stop-after"),
               objective.updates_per_epoch()),
      eval_every_(
          interval(setup_.options.eval_every, objective.updates_per_epoch(), "--eval-every")),
      save_every_(
          interval(setup_.options.save_every, objective.updates_per_epoch(), "--save-every")),
      window_(window_length(setup_.options, objective.updates_per_epoch())),
      optimizer_(objective.parameters(), setup_.options.optimizer, objective.rates()),
      started_(monotonic_seconds()) {}

TrainResult Trainer::run() {
  const TrainOptions& options = setup_.options;
  if (!history_) history_.emplace(setup_.folder / "metrics.jsonl");
  observer_.begins(state_);
  // A kill between the last checkpoint and its picture.
  if (state_.step > 0 && !std::filesystem::exists(setup_.folder / kCurvesName)) draw_curve();
  for (;;) {
    const double lr = learning_rate(options, horizon_, state_.step, seconds());
    take_requests();
    if (objective_.has_validation() && due(eval_every_, state_.evaluated_step)) evaluate();
    if (due(save_every_, saved_step_) || save_requested_ || stop_requested_) save();
    if (finished() || stop_requested_) break;
    record_start();

    const double begin = monotonic_seconds();
    objective_.observe_attention(observes_next());
    const index targets = objective_.begin_update(state_.step);
    double loss = 0;
    Hits hits;
    for (index batch = 0; batch < options.accumulate; ++batch) {
      loss += objective_.forward(batch);
      hits += objective_.hits();
      objective_.backward();
    }
    const double norm = optimizer_.gradient_norm(context_);
    stop_if_diverged(loss, norm);
    optimizer_.step(context_, {.options = {.lr = lr,
                                           .beta1 = options.beta1,
                                           .beta2 = options.beta2,
                                           .epsilon = options.epsilon,
                                           .weight_decay = options.weight_decay},
                               .step = state_.step + 1,
                               .gradient_scale = clip_scale(norm, options.clip)});
    record({loss, lr, norm, monotonic_seconds() - begin, targets, hits});
    note_warmup_at_this_speed();
  }
  if (out_of_patience()) {
    observer_.noticed(fmt::format(
        "the run ends early: no evaluation after that of update {} was better (--patience {})",
        state_.best_step, setup_.options.patience));
  }
  // The evaluation at the end is part of the run: if it was interrupted, the run counts as stopped.
  const bool evaluated = !objective_.has_validation() || state_.evaluated_step == state_.step;
  return {state_, !(finished() && evaluated), process_tokens_, process_step_seconds_};
}

// How many updates a run has that ends by hours is known when some are done.
void Trainer::note_warmup_at_this_speed() {
  constexpr index kEnough = 20;
  if (!horizon_.in_hours() || state_.step != kEnough) return;
  const double updates = kEnough / horizon_.fraction(kEnough, seconds());
  const std::string note = warmup_note(setup_.options.warmup, static_cast<index>(updates));
  if (!note.empty()) observer_.noticed("at this speed, " + note);
}

// A process that finds nothing to do leaves no trace.
void Trainer::record_start() {
  if (std::exchange(start_recorded_, true)) return;
  write_in_folder([&] {
    append_start(setup_.folder, start_of_process(state_.step, context_.threads(), setup_.identity));
  });
}

double Trainer::seconds() const { return seconds_before_ + monotonic_seconds() - started_; }

void Trainer::look_at_the_clock() { fraction_done_ = horizon_.fraction(state_.step, seconds()); }

// Depends on the step only, except at the end of the run, where everything is due.
bool Trainer::due(index every, index done_at) const {
  return state_.step > 0 && state_.step != done_at && (state_.step % every == 0 || finished());
}

bool Trainer::out_of_patience() const {
  const index patience = setup_.options.patience;
  return patience > 0 && state_.worse_evaluations >= patience;
}

void Trainer::take_requests() {
  const Request request = observer_.request();
  save_requested_ |= request == Request::kSave;
  stop_requested_ |= request == Request::kStop;
}

void Trainer::fail_diverged(index update, std::string_view what) const {
  const bool saved = saved_step_ >= 0;
  throw Error(ErrorCode::kDiverged, fmt::format("training diverged at update {}: {}", update, what),
              fmt::format("lower --lr, warm up longer (--warmup) or clip (--clip 1); {}",
                          saved ? fmt::format("the checkpoint of update {} is intact", saved_step_)
                                : "no checkpoint had been due yet: begin anew with --overwrite"));
}

void Trainer::stop_if_diverged(double loss, double norm) const {
  if (std::isfinite(loss) && std::isfinite(norm)) return;
  const double wrong = std::isfinite(loss) ? norm : loss;
  fail_diverged(
      state_.step + 1,
      fmt::format("{} is {}", std::isfinite(loss) ? "the norm of the gradient" : "the loss",
                  std::isnan(wrong) ? std::abs(wrong) : wrong));  // no "-nan"
}

std::vector<NamedTensor> Trainer::finite_weights() const {
  std::vector<NamedTensor> weights = parameter_tensors(objective_.parameters());
  const std::string bad = first_not_finite(weights);
  if (!bad.empty()) fail_diverged(state_.step, fmt::format("a value of {} is not finite", bad));
  return weights;
}

bool Trainer::observes_next() const {
  const index every = setup_.options.observe_every;
  return every > 0 && (state_.step + 1) % every == 0;
}

void Trainer::record(const Update& update) {
  const bool observed = observes_next();
  ++state_.step;
  look_at_the_clock();
  state_.tokens += update.targets;
  state_.window_loss += update.loss * static_cast<double>(update.targets);
  state_.window_tokens += update.targets;
  state_.window_right += update.hits.right;
  state_.window_judged += update.hits.of;
  process_tokens_ += update.targets;
  process_step_seconds_ += update.seconds;
  recent_[static_cast<std::size_t>(state_.step) % recent_.size()] = update.loss;

  const UpdateRecord described = describe(update);
  const bool at_end = finished();
  unlogged_.reset();
  if (state_.step % setup_.options.log_every == 0 || at_end) {
    history_->add(described);
  } else {
    unlogged_ = described;
  }
  if (observed) {
    AttentionRecord attention = objective_.observed_attention();
    attention.step = state_.step;
    history_->add(attention);
  }
  if (state_.step % window_ == 0 || at_end) {
    state_.train_loss = described.running_loss;
    state_.train_accuracy = described.running_accuracy;
    state_.window_loss = 0;
    state_.window_tokens = state_.window_right = state_.window_judged = 0;
  }
  observer_.updated(described, fraction_done_);
}

UpdateRecord Trainer::describe(const Update& update) const {
  const auto n = std::min<std::size_t>(static_cast<std::size_t>(state_.step), recent_.size());
  // Before update 16 the rest of recent_ is zero.
  const double recent = std::accumulate(recent_.begin(), recent_.end(), 0.0);
  // The time so far includes evaluations and saves, so the estimate does too.
  const double share = fraction_done_ - first_fraction_;
  const double here = seconds() - seconds_before_;
  return {.step = state_.step,
          .loss = update.loss,
          .mean16_loss = recent / static_cast<double>(n),
          .running_loss = mean_or_zero(state_.window_loss, state_.window_tokens),
          .lr = update.lr,
          .gradient_norm = update.gradient_norm,
          .tokens = state_.tokens,
          .tokens_per_second = static_cast<double>(process_tokens_) / process_step_seconds_,
          .seconds = seconds(),
          .seconds_left = share > 0 ? std::max(0.0, 1 - fraction_done_) * here / share : 0,
          .running_accuracy = state_.window_accuracy()};
}

// The run ends here for want of patience, which its last update did not know. A run that is resumed
// with more patience drops the line.
void Trainer::log_last_update() {
  if (!finished() || !unlogged_) return;
  state_.metrics_bytes_to_go_on = history_->bytes();
  history_->add(*std::exchange(unlogged_, std::nullopt));
}

void Trainer::evaluate() {
  observer_.evaluation_begins(state_.step);
  const auto interrupted = [&] {
    take_requests();
    return stop_requested_;
  };
  const std::optional<Validation> found = objective_.validate(interrupted);
  if (!found) return;
  if (!std::isfinite(found->loss)) stop_if_diverged(found->loss, 0);
  state_.evaluated_step = state_.step;
  state_.valid_loss = found->loss;
  ++state_.worse_evaluations;
  const bool is_best = state_.best_step < 0 || found->goodness() > state_.best_score;
  if (is_best) {
    state_.best_step = state_.step;
    state_.best_valid_loss = found->loss;
    state_.best_score = found->goodness();
    state_.worse_evaluations = 0;
    write_model();
  }
  write_in_folder([&] { objective_.evaluated(state_.step, *found); });
  history_->add(EvaluationRecord{.step = state_.step,
                                 .train_loss = state_.recent_train_loss(),
                                 .valid_loss = found->loss,
                                 .best_valid_loss = state_.best_valid_loss,
                                 .is_best = is_best,
                                 .seconds = seconds(),
                                 .train_accuracy = state_.recent_train_accuracy()});
  if (!found->metrics.empty()) {
    history_->add(MetricsRecord{.step = state_.step, .is_best = is_best, .values = found->metrics});
  }
  if (setup_.options.evaluate_training) evaluate_training(interrupted);
  log_last_update();
  draw_curve();
  observer_.evaluated(history_->evaluations().back());
  if (!found->metrics.empty()) observer_.measured(history_->metrics().back());
}

// Decides nothing: whether it is done or interrupted, the run goes on with the same bits.
void Trainer::evaluate_training(const std::function<bool()>& interrupted) {
  const std::optional<Validation> found = objective_.validate_training(interrupted);
  if (!found) return;
  history_->add(TrainingRecord{.step = state_.step, .loss = found->loss, .values = found->metrics});
}

// The Trainer's checkpoints: saving and resuming.

namespace {

constexpr std::string_view kOptimizerFile = "optimizer.safetensors";
constexpr std::string_view kStateFile = "state.json";
// Names of parameters hold no slash, so none equals this name.
constexpr std::string_view kRecentLosses = "trainer/recent_losses";

struct StateFile {
  RunIdentity identity;
  RunState state;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("identity", identity, "what the run is made of");
    visit("state", state, "where it stands");
  }
};

// The checksum does not prove that the values make sense: state.json may have been changed together
// with it.
void check_state(const RunState& state, const std::string& where) {
  const auto require = [&](bool holds, std::string_view name, auto value, std::string_view wanted) {
    if (holds) return;
    fail(ErrorCode::kModelDamaged, "{}: {} is {}; expected {}", where, name, value, wanted);
  };
  require(state.step >= 0, "step", state.step, "at least 0");
  require(state.tokens >= 0, "tokens", state.tokens, "at least 0");
  require(state.window_tokens >= 0, "window_tokens", state.window_tokens, "at least 0");
  require(state.window_judged >= 0, "window_judged", state.window_judged, "at least 0");
  require(state.window_right >= 0 && state.window_right <= state.window_judged, "window_right",
          state.window_right, "0 to window_judged");
  require(state.metrics_bytes >= 0, "metrics_bytes", state.metrics_bytes, "at least 0");
  require(state.metrics_bytes_to_go_on >= -1 && state.metrics_bytes_to_go_on <= state.metrics_bytes,
          "metrics_bytes_to_go_on", state.metrics_bytes_to_go_on, "-1 to metrics_bytes");
  require(state.worse_evaluations >= 0, "worse_evaluations", state.worse_evaluations, "at least 0");
  require(state.best_kept >= 0, "best_kept", state.best_kept, "at least 0");
  require(state.seconds >= 0, "seconds", state.seconds, "at least 0");
  const std::string before = fmt::format("-1 to step {}", state.step);
  const auto is_before = [&](index other) { return other >= -1 && other <= state.step; };
  require(is_before(state.evaluated_step), "evaluated_step", state.evaluated_step, before);
  require(is_before(state.best_step), "best_step", state.best_step, before);
}

StateFile state_file_of(const Checkpoint& checkpoint) {
  const std::string where = checkpoint.path.string() + "/state.json";
  StateFile stored;
  from_json(checkpoint.bytes(kStateFile), {where, ErrorCode::kModelDamaged}, stored,
            MissingKeys::kKeepTheirValue);
  check_state(stored.state, where);
  // Checkpoints of before have no score: the lowest loss was the best.
  RunState& state = stored.state;
  if (std::isnan(state.best_score)) state.best_score = -state.best_valid_loss;
  return stored;
}

// The model in a run folder, and its update; nothing if there is no intact one.
struct StoredModel {
  Safetensors weights;
  index step;
};
std::optional<StoredModel> stored_model(const std::filesystem::path& folder) {
  try {
    Safetensors weights = read_model_weights(folder);
    const std::optional<index> step = update_of(weights, folder);
    if (!step) return std::nullopt;
    return StoredModel{std::move(weights), *step};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutOfMemory) throw;  // the model may be intact
    return std::nullopt;
  }
}

constexpr std::string_view kFileIsGone = "the file of the run was moved or removed";
constexpr std::string_view kGoOn =
    "the same command with --resume -o DIR goes on from the last checkpoint";
constexpr std::string_view kIfMoved =
    "if it was moved, the same command with --resume -o DIR goes on from the last checkpoint, once "
    "it is back or with -o where it is now; if it was removed, train again, with --overwrite where "
    "a part of the run is left";

bool is_gone(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::status(file, error).type() == std::filesystem::file_type::not_found;
}

[[noreturn]] void fail_gone(const std::filesystem::path& path, std::string_view what,
                            std::string_view hint) {
  throw Error(ErrorCode::kWrite, fmt::format("{}: {} while it was at work", path.string(), what),
              std::string(hint));
}

// Writes the file of a model again as the checkpoint has it; false if that is another one.
bool put_back(const std::filesystem::path& folder, const std::string& name,
              const Checkpoint& checkpoint) {
  try {
    const Manifest manifest = read_manifest(folder);
    const ManifestEntry* entry = manifest.find(name);
    const std::string& bytes = checkpoint.bytes(name);
    if (entry == nullptr || entry->checksum != xxh3_128(bytes)) return false;
    write_file_atomically(folder / name, bytes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Without them the model cannot be read. A run that goes on puts them back from its checkpoint.
void require_model_files(const std::vector<std::filesystem::path>& files) {
  for (const std::filesystem::path& file : files) {
    if (is_gone(file)) fail_gone(file, kFileIsGone, kGoOn);
  }
}

// A run may go on where a file of its model, beside the weights, is not to be had.
void put_files_back(const TrainerSetup& setup, const Checkpoint& checkpoint,
                    TrainingObserver& observer) {
  for (const NamedFile& file : setup.attachments) {
    try {
      read_model_file(setup.folder, file.name);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) throw;
      const bool is_back = put_back(setup.folder, file.name, checkpoint);
      observer.noticed(fmt::format("{}; {}", error.what(),
                                   is_back ? "it comes from the checkpoint"
                                           : "the run goes on, but its model cannot be read"));
    }
  }
}

}  // namespace

RunIdentity identity_of(const Checkpoint& checkpoint) { return state_file_of(checkpoint).identity; }

RunState state_of(const Checkpoint& checkpoint) { return state_file_of(checkpoint).state; }

// If the folder was moved, nothing is written at its old path. It may also be moved during the
// write: then that is reported as the error. An `rm -rf` that meets a write leaves the folder, but
// without its manifest, and there is nothing that --resume could go on with.
void Trainer::write_in_folder(const std::function<void()>& write) const {
  const auto require_folder = [&] {
    if (!folder_.is_in_place()) {
      fail_gone(setup_.folder, "the folder of the run was moved or removed", kIfMoved);
    }
    const std::filesystem::path manifest = setup_.folder / kManifestName;
    if (is_gone(manifest)) fail_gone(manifest, kFileIsGone, kIfMoved);
  };
  require_folder();
  try {
    write();
  } catch (const Error&) {
    require_folder();
    throw;
  }
  require_folder();
}

void Trainer::write_model() { write_model(finite_weights(), state_.step); }

void Trainer::write_model(const std::vector<NamedTensor>& tensors, index step) {
  write_in_folder([&] {
    write_model_weights(setup_.folder, tensors, {{"step", std::to_string(step)}},
                        dtype_of(setup_.options.save_dtype));
  });
}

void Trainer::draw_curve() {
  write_in_folder([&] {
    write_file_atomically(setup_.folder / kCurvesName,
                          training_curves(*history_, objective_.loss_unit()));
  });
}

// The model is written first: a run that finds the checkpoint of the last step does nothing more.
void Trainer::save() {
  const std::vector<NamedTensor> weights = finite_weights();
  const bool best_is_kept = objective_.has_validation() && state_.best_step >= 0;
  if (!best_is_kept) write_model(weights, state_.step);
  state_.seconds = seconds();
  state_.metrics_bytes = history_->flush();
  state_.best_kept = objective_.kept_evaluations();
  if (saved_step_ != state_.step) {
    std::vector<NamedTensor> optimizer = optimizer_.state();
    optimizer.push_back(
        {std::string(kRecentLosses), Tensor::of(Shape{16}, std::span<const double>(recent_))});
    std::vector<NamedFile> files = setup_.attachments;
    // Views of the values themselves: a checkpoint needs no memory of its own.
    SafetensorsPieces of_weights = safetensors_pieces(weights),
                      of_optimizer = safetensors_pieces(optimizer);
    files.push_back(
        {std::string(kWeightsName), std::move(of_weights.header), std::move(of_weights.values)});
    files.push_back({std::string(kOptimizerFile), std::move(of_optimizer.header),
                     std::move(of_optimizer.values)});
    files.push_back({std::string(kStateFile), to_json(StateFile{setup_.identity, state_})});
    SavedCheckpoint saved;
    write_in_folder([&] {
      saved =
          save_checkpoint(checkpoints_of(setup_.folder), state_.step, files, setup_.options.keep);
    });
    saved_step_ = state_.step;
    observer_.saved(state_.step, saved.path);
    for (const std::string& warning : saved.warnings) observer_.noticed(warning);
  }
  draw_curve();
  save_requested_ = false;
  require_model_files(model_files_);
}

void Trainer::resume() {
  const std::filesystem::path all = checkpoints_of(setup_.folder);
  // Interrupted before the first checkpoint was due: the state of step 0 follows from the options.
  if (checkpoint_steps(all).empty()) {
    observer_.noticed("there is no checkpoint yet: beginning at update 0");
    return;
  }
  const NewestCheckpoint newest = load_newest_checkpoint(all);
  for (const std::string& warning : newest.warnings) observer_.noticed(warning);
  resume(newest.checkpoint);
}

void Trainer::resume(const Checkpoint& checkpoint, Future future) {
  const std::string where = checkpoint.path.string();
  const StateFile stored = state_file_of(checkpoint);
  if (stored.state.step != checkpoint.step) {
    fail(ErrorCode::kModelDamaged, "{}: {} is of step {}, and {} of step {}", where, kStateFile,
         stored.state.step, kManifestName, checkpoint.step);
  }
  compare(stored.identity);
  restore_parameters(
      objective_.parameters(),
      parse_safetensors(checkpoint.bytes(kWeightsName), where + "/model.safetensors"),
      where + "/model.safetensors");
  if (const std::string bad = first_not_finite(parameter_tensors(objective_.parameters()));
      !bad.empty()) {
    fail(ErrorCode::kModelDamaged, Hint{"go on from an earlier checkpoint, or train again"},
         "{}/model.safetensors: a value of {} is not finite", where, bad);
  }
  const Safetensors optimizer =
      parse_safetensors(checkpoint.bytes(kOptimizerFile), where + "/optimizer.safetensors");
  optimizer_.restore(optimizer);
  const Tensor& recent = optimizer.at(kRecentLosses);
  if (recent.size() != static_cast<index>(recent_.size()) || recent.dtype() != DType::kFloat64) {
    fail(ErrorCode::kModelDamaged, "{}: {} must be float64 [{}]; it is {}", where, kRecentLosses,
         recent_.size(), recent.describe());
  }
  std::copy_n(recent.data<double>(), recent_.size(), recent_.begin());

  state_ = stored.state;
  saved_step_ = state_.step;
  seconds_before_ = state_.seconds;
  started_ = monotonic_seconds();
  look_at_the_clock();
  first_fraction_ = fraction_done_;
  // If the process is killed between any two of these steps, the next resume repairs the folder.
  put_files_back(setup_, checkpoint, observer_);
  keep_a_model(future);
  if (future == Future::kOther) {
    remove_checkpoints_after(checkpoints_of(setup_.folder), state_.step);
  }
  reopen_history();
  for (const std::string& warning : objective_.resumed(state_)) observer_.noticed(warning);
  for (const std::string& warning :
       prune_checkpoints(checkpoints_of(setup_.folder), state_.step, setup_.options.keep)) {
    observer_.noticed(warning);
  }
}

// A run that ended for want of patience and goes on drops the line that it has for its end alone.
// If it went on before and was killed, that line is gone, and others stand in its place.
void Trainer::reopen_history() {
  const std::filesystem::path file = setup_.folder / "metrics.jsonl";
  const index to_go_on = state_.metrics_bytes_to_go_on;
  history_.emplace(file, state_.metrics_bytes);
  if (to_go_on < 0) return;
  const std::vector<UpdateRecord>& updates = history_->updates();
  const bool has_line = !updates.empty() && updates.back().step == state_.step;
  if (!finished() || !has_line) history_.emplace(file, to_go_on);
  if (!finished()) state_.metrics_bytes_to_go_on = -1;
}

// The best model is written before any checkpoint that records it. So a model that is older than
// best_step is not the best one: the best is lost. A model that is newer than the checkpoint will
// be made again, unless the run goes on differently (kOther).
void Trainer::keep_a_model(Future future) {
  std::optional<StoredModel> model = stored_model(setup_.folder);
  const bool lost = !model || model->step < state_.best_step;
  const bool given_up = future == Future::kOther && model && model->step > state_.step;
  if (!lost && !given_up) return store_as_asked(model->weights, model->step);
  model.reset();  // its memory
  const index best = state_.best_step;
  if (lost && best >= 0 && best != state_.step) {
    if (rescue_best_model()) return;
    observer_.noticed(fmt::format(
        "{} is missing or damaged: the best weights, of update {}, are lost; those of update {} "
        "stand in their place, and the search for the best begins again",
        (setup_.folder / kWeightsName).string(), best, state_.step));
  }
  if (best != state_.step) state_.best_step = -1;
  write_model();
}

// From the checkpoint of its update, if that is still there.
bool Trainer::rescue_best_model() {
  const index best = state_.best_step;
  std::vector<NamedTensor> tensors;
  try {
    const Checkpoint checkpoint =
        load_checkpoint(checkpoint_path(checkpoints_of(setup_.folder), best));
    tensors = parse_safetensors(checkpoint.bytes(kWeightsName), checkpoint.path.string()).tensors;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutOfMemory) throw;
    return false;
  }
  write_model(tensors, best);
  observer_.noticed(fmt::format(
      "{} was missing or damaged: the best weights, of update {}, come from its checkpoint",
      (setup_.folder / kWeightsName).string(), best));
  return true;
}

// The model that is there, if --save-dtype now asks for another type. The values of a rounded model
// stay rounded: which checkpoint it came from is not known (it may be a mean of several).
void Trainer::store_as_asked(const Safetensors& model, index step) {
  const DType wanted = dtype_of(setup_.options.save_dtype);
  const auto is_wanted = [=](const NamedTensor& one) { return one.tensor.dtype() == wanted; };
  if (std::all_of(model.tensors.begin(), model.tensors.end(), is_wanted)) return;
  std::vector<NamedTensor> tensors;
  for (const NamedTensor& one : model.tensors) {
    tensors.push_back({one.name, one.tensor.to(wanted)});
  }
  write_model(tensors, step);
}

void Trainer::compare(const RunIdentity& stored) {
  const RunIdentity& now = setup_.identity;
  require_same_run(stored, now);
  if (stored.isa != now.isa) {
    observer_.noticed(
        fmt::format("the run began on {} and goes on on {}: results differ in their last bits "
                    "(FOVEA_ISA={} pins it)",
                    stored.isa, now.isa, stored.isa));
  }
  const bool both_known = !stored.products.empty() && !now.products.empty();
  if (stored.isa == now.isa && both_known && stored.products != now.products) {
    const auto words = [](const std::string& products) {
      return products == "pairs" ? "multiplied in pairs" : "converted to float32";
    };
    observer_.noticed(
        fmt::format("the run began where bfloat16 is {}, and goes on where it is {}: results "
                    "differ in their last bits",
                    words(stored.products), words(now.products)));
  }
  if (stored.version != now.version) {
    observer_.noticed(
        fmt::format("the run began with fovea {}, this is {}", stored.version, now.version));
  }
}

}  // namespace fovea
