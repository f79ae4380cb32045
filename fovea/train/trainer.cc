// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/file.h"
#include "fovea/config/json.h"
#include "fovea/kernel/gemm.h"
#include "fovea/train/checkpoint.h"
#include "fovea/train/curve.h"
#include "fovea/train/schedule.h"
#include "fovea/train/starts.h"

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

// The manifest and what it lists, as far as they exist: a run may go on without a file that was
// lost before.
std::vector<std::filesystem::path> model_files_of(const TrainerSetup& setup) {
  std::vector<std::filesystem::path> files = {setup.folder / kManifestName};
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
      optimizer_(objective.parameters()),
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

}  // namespace fovea
