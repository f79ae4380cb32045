// SPDX-License-Identifier: Apache-2.0
// The training loop. It works with parameters and losses only; the Objective knows the model and
// the data.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/file.h"
#include "fovea/train/checkpoint.h"
#include "fovea/train/history.h"
#include "fovea/train/optimizer.h"
#include "fovea/train/options.h"
#include "fovea/train/run_state.h"

namespace fovea {

/// The result of an evaluation.
struct Validation {
  double loss = 0;  ///< the exact mean over the validation set
  /// The best weights are those with the largest score or, without one, with the lowest loss.
  std::optional<double> score = {};
  std::vector<MetricValue> metrics = {};  ///< other numbers, such as accuracy

  /// A score that is not defined, such as a correlation with a constant, is the worst.
  double goodness() const {
    if (!score) return -loss;
    constexpr double kWorst = std::numeric_limits<double>::lowest();  // which JSON can store
    return *score > kWorst ? *score : kWorst;
  }
};

/// The number of targets, and of those that the model answered rightly.
struct Hits {
  index right = 0, of = 0;

  Hits& operator+=(const Hits& more) {
    right += more.right;
    of += more.of;
    return *this;
  }
};

/// The unit of most losses: see Objective::loss_unit().
inline constexpr std::string_view kNatsPerToken = "nats per token";

/// The model and data that are trained. Results depend only on the update's number and the
/// parameters, so a run can go on from any step.
class Objective {
 public:
  virtual ~Objective() = default;

  /// Their addresses and order must not change.
  virtual std::span<Parameter* const> parameters() = 0;
  /// Factors of the learning rate for each of them; none: all are 1.
  virtual std::vector<double> rates() { return {}; }
  virtual index updates_per_epoch() const = 0;
  /// The unit of the loss, as its plot names it.
  virtual std::string_view loss_unit() const { return kNatsPerToken; }

  /// Whether the attention of the next update is observed. Called before begin_update.
  virtual void observe_attention(bool /*observe*/) {}
  /// The attention that was observed in the update; its step is not set.
  virtual AttentionRecord observed_attention() { return {}; }

  /// Prepares the batches of update number `update` (from 0); returns how many targets they have.
  virtual index begin_update(index update) = 0;
  /// Computes what batch number `batch` adds to the loss of the update, which is the mean over all
  /// its targets.
  virtual double forward(index batch) = 0;
  /// The hits of the last forward, with dropout, as it was. It has none where an accuracy means
  /// nothing.
  virtual Hits hits() const { return {}; }
  /// Adds the gradient of what forward returned to the gradients of the parameters.
  virtual void backward() = 0;

  virtual bool has_validation() const = 0;
  /// Evaluates the whole validation set; nothing if `interrupted` returned true meanwhile.
  virtual std::optional<Validation> validate(const std::function<bool()>& interrupted) = 0;
  /// Makes the result of validate() the evaluation after `step` updates; the parameters are still
  /// those that were evaluated.
  virtual void evaluated(index /*step*/, const Validation& /*found*/) {}
  /// How many evaluations it keeps the weights of.
  virtual index kept_evaluations() const { return 0; }
  /// The run goes on from this state. Returns what is missing of what was kept.
  virtual std::vector<std::string> resumed(const RunState& /*state*/) { return {}; }
  /// Measures the whole training set in the same way; nothing if it cannot, or was interrupted.
  virtual std::optional<Validation> validate_training(
      const std::function<bool()>& /*interrupted*/) {
    return std::nullopt;
  }
};

enum class Request { kNone, kSave, kStop };

/// Receives the events of a training. It is called by the training thread, between the parts of a
/// step.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;

  virtual void begins(const RunState&) {}
  /// Something that a user may want to know, such as a damaged checkpoint that was skipped.
  virtual void noticed(const std::string& /*what*/) {}
  virtual void updated(const UpdateRecord&, double /*fraction_done*/) {}
  /// In place of updates, of a training that has none: what is being computed.
  virtual void works(std::string_view /*what*/, double /*fraction_done*/) {}
  virtual void evaluation_begins(index /*step*/) {}
  virtual void evaluated(const EvaluationRecord&) {}
  /// A result on the way, a line.
  virtual void told(const std::string& /*what*/) {}
  /// After evaluated(), if there are metrics.
  virtual void measured(const MetricsRecord&) {}
  virtual void saved(index /*step*/, const std::filesystem::path& /*checkpoint*/) {}
  /// kSave asks for one checkpoint: return it once for each. kStop asks for a checkpoint and the
  /// end of the training.
  virtual Request request() { return Request::kNone; }
};

struct TrainerSetup {
  TrainOptions options;
  std::filesystem::path folder;  ///< of the run; exists
  RunIdentity identity;
  std::vector<NamedFile> attachments;  ///< files that are added to every checkpoint
};

struct TrainResult {
  RunState state;
  bool stopped = false;  ///< by request, before the end
  index process_tokens = 0;
  double process_step_seconds = 0;
};

/// The identity of the run that wrote a checkpoint. Throws kModelDamaged.
RunIdentity identity_of(const Checkpoint& checkpoint);

/// The state of the run in a checkpoint. Throws kModelDamaged.
RunState state_of(const Checkpoint& checkpoint);

/// A run may have gone on after the checkpoint from which it is resumed. Whether the resumed run
/// repeats those updates:
enum class Future {
  kSame,   ///< yes, with the same bits: later checkpoints stay
  kOther,  ///< no (other options, or an older checkpoint): later checkpoints are removed
};

/// Trains in a run folder and writes the files below. The caller holds the lock of the folder if
/// another process could train there:
///   model.safetensors   the parameters with the best validation (see Validation); the last ones
///                       if there is none. One rename replaces the file.
///   metrics.jsonl       see History
///   loss.svg            the same as curves, redrawn after every evaluation and checkpoint
///   starts.jsonl        see ProcessStart
///   checkpoints/step-N  parameters, moments, state: a resumed run ends with the same bits as one
///                       that was never interrupted
class Trainer {
 public:
  /// Begins at step 0.
  Trainer(const Context& context, Objective& objective, TrainingObserver& observer,
          TrainerSetup setup);

  /// Goes on from the newest intact checkpoint of the run, or from update 0 if it has none, and
  /// removes those older than the newest options.keep.
  /// Throws kModelDamaged, and kConfig if model, text or tokenizer have changed. Another
  /// instruction set or version is only reported to the observer.
  void resume();
  /// Goes on from this checkpoint. kOther also removes later checkpoints (kWrite if that fails) and
  /// a best model of a later update. If the best model is lost, that of the checkpoint of its
  /// update replaces it; if there is none, the model of this checkpoint, and the search for the
  /// best starts again.
  void resume(const Checkpoint& checkpoint, Future future = Future::kSame);

  /// Trains to the end of the run, or until the observer asks to stop. Throws kDiverged if a loss
  /// or the gradient is not finite, before the parameters change; kWrite (also if the folder is
  /// moved or removed meanwhile) and kDiskFull.
  TrainResult run();

  const RunState& state() const { return state_; }
  const History& history() const { return *history_; }  ///< once run() has begun

 private:
  void look_at_the_clock();
  bool finished() const { return fraction_done_ >= 1 || out_of_patience(); }
  bool out_of_patience() const;
  double seconds() const;
  bool due(index every, index done_at) const;
  void take_requests();
  void evaluate();
  void evaluate_training(const std::function<bool()>& interrupted);
  void record_start();
  void note_warmup_at_this_speed();
  void log_last_update();
  void reopen_history();
  void save();
  void write_model();
  void write_model(const std::vector<NamedTensor>& tensors, index step);
  bool rescue_best_model();
  void draw_curve();
  void write_in_folder(const std::function<void()>& write) const;
  void compare(const RunIdentity& stored);
  void keep_a_model(Future future);
  void store_as_asked(const Safetensors& model, index step);
  [[noreturn]] void fail_diverged(index update, std::string_view what) const;
  void stop_if_diverged(double loss, double norm) const;
  /// The parameters; throws kDiverged if a value is not finite, so that no such model is written.
  std::vector<NamedTensor> finite_weights() const;
  struct Update {
    double loss, lr, gradient_norm, seconds;
    index targets;
    Hits hits;
  };
  bool observes_next() const;
  void record(const Update& update);
  UpdateRecord describe(const Update& update) const;

  const Context context_;
  Objective& objective_;
  TrainingObserver& observer_;
  const TrainerSetup setup_;
  const HeldFolder folder_;
  const std::vector<std::filesystem::path> model_files_;  // without them the model is unreadable
  const Horizon horizon_;
  const index eval_every_, save_every_, window_;
  Optimizer optimizer_;
  std::optional<History> history_;  // set by run() or resume()
  RunState state_;
  std::optional<UpdateRecord> unlogged_;  // the last update, where history_ does not have it
  std::array<double, 16> recent_{};       // loss of step s at s % 16

  double started_;             // clock
  double seconds_before_ = 0;  // of earlier processes
  double fraction_done_ = 0;   // when this step began; constant during the step
  double first_fraction_ = 0;
  index saved_step_ = -1;
  bool start_recorded_ = false;
  bool save_requested_ = false, stop_requested_ = false;
  index process_tokens_ = 0;
  double process_step_seconds_ = 0;
};

}  // namespace fovea
