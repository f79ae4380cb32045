// SPDX-License-Identifier: Apache-2.0
// The recipe by which a model is improved. It knows parameters and losses, not models or data.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/file.h"
#include "fovea/train/checkpoint.h"
#include "fovea/train/history.h"
#include "fovea/train/optimizer.h"
#include "fovea/train/options.h"
#include "fovea/train/run_state.h"
#include "fovea/train/stop_after.h"

namespace fovea {

/// What is trained. All it does is a function of the update's number and the parameters, so that a
/// run can go on from any step.
class Objective {
 public:
  virtual ~Objective() = default;

  /// At fixed addresses, always in the same order.
  virtual std::span<Parameter* const> parameters() = 0;
  virtual index updates_per_epoch() const = 0;

  /// Chooses what update number `update` (from 0) is made of; returns how many targets it has.
  virtual index begin_update(index update) = 0;
  /// What batch number `batch` of this update adds to the update's loss, the mean over all its
  /// targets.
  virtual double forward(index batch) = 0;
  /// Adds the gradient of what forward returned to the gradients of the parameters.
  virtual void backward() = 0;

  virtual bool has_validation() const = 0;
  /// The exact mean loss over the validation set; nothing if `interrupted` began to say true.
  virtual std::optional<double> validate(const std::function<bool()>& interrupted) = 0;
};

enum class Request { kNone, kSave, kStop };

/// Who watches. Called by the thread that trains, between the parts of a step.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;

  virtual void begins(const RunState&) {}
  /// Something that a user may want to know, such as a damaged checkpoint that was passed over.
  virtual void noticed(const std::string& /*what*/) {}
  virtual void updated(const UpdateRecord&, double /*fraction_done*/) {}
  virtual void evaluation_begins(index /*step*/) {}
  virtual void evaluated(const EvaluationRecord&) {}
  virtual void saved(index /*step*/, const std::filesystem::path& /*checkpoint*/) {}
  /// kSave is asked for once, kStop from then on.
  virtual Request request() { return Request::kNone; }
};

struct TrainerSetup {
  TrainOptions options;
  std::filesystem::path folder;  ///< of the run; exists
  RunIdentity identity;
  std::vector<NamedFile> attachments;  ///< files that every checkpoint holds, too
};

struct TrainResult {
  RunState state;
  bool stopped = false;  ///< by request, before the end
  index process_tokens = 0;
  double process_step_seconds = 0;
};

/// What the run of a checkpoint is made of. Throws kModelDamaged.
RunIdentity identity_of(const Checkpoint& checkpoint);

/// Where it stands there. Throws kModelDamaged.
RunState state_of(const Checkpoint& checkpoint);

/// What follows a checkpoint that a run goes on from.
enum class Future {
  kSame,   ///< what followed before, in the same bits
  kOther,  ///< other options, or an older checkpoint: what came after it is given up
};

/// Trains in a run folder, whose lock the caller holds where others could train there, too:
///   model.safetensors   the parameters with the lowest validation loss; the last ones where there
///                       is no validation. Replaced by one rename.
///   metrics.jsonl       see History
///   loss.svg            the same as curves, drawn again after every evaluation and checkpoint
///   checkpoints/step-N  parameters, moments, state: a resumed run ends with the same bits as one
///                       that was never interrupted
class Trainer {
 public:
  /// Begins at step 0.
  Trainer(const Context& context, Objective& objective, TrainingObserver& observer,
          TrainerSetup setup);

  /// Goes on from the newest whole checkpoint of the run, or from update 0 if none was due yet, and
  /// removes older ones than options.keep says.
  /// Throws kModelDamaged, and kConfig where model, text or tokenizer are not the same any more;
  /// another instruction set or version is only noticed.
  void resume();
  /// The same from this checkpoint. kOther: later checkpoints are removed (kWrite if they cannot
  /// be), and so is a model of a later update. Where the model that was the best is lost, that of
  /// the checkpoint takes its place, and the search for the best begins anew.
  void resume(const Checkpoint& checkpoint, Future future = Future::kSame);

  /// To the end of the run, or until the observer asks to stop. Throws kDiverged, before anything
  /// is changed by it, where a loss or the gradient is not finite; kWrite and kDiskFull, also where
  /// the folder is moved or removed meanwhile.
  TrainResult run();

  const RunState& state() const { return state_; }
  const History& history() const { return *history_; }  ///< once run() has begun

 private:
  void look_at_the_clock();
  bool finished() const { return fraction_done_ >= 1; }
  double seconds() const;
  bool due(index every, index done_at) const;
  void take_requests();
  void evaluate();
  void save();
  void write_model();
  void draw_curve();
  void write_in_folder(const std::function<void()>& write) const;
  void compare(const RunIdentity& stored);
  void keep_a_model(Future future);
  void stop_if_diverged(double loss, double norm) const;
  struct Update {
    double loss, lr, gradient_norm, seconds;
    index targets;
  };
  void record(const Update& update);
  UpdateRecord describe(const Update& update) const;

  const Context context_;
  Objective& objective_;
  TrainingObserver& observer_;
  const TrainerSetup setup_;
  const HeldFolder folder_;
  const Horizon horizon_;
  const index eval_every_, save_every_, window_;
  Optimizer optimizer_;
  std::optional<History> history_;  // since run() or restore() began
  RunState state_;
  std::array<double, 16> recent_{};  // of step s at s % 16

  double started_;             // clock
  double seconds_before_ = 0;  // of earlier processes
  double fraction_done_ = 0;   // when this step began: one answer for all of the step
  double first_fraction_ = 0;
  index saved_step_ = -1;
  bool save_requested_ = false, stop_requested_ = false;
  index process_tokens_ = 0;
  double process_step_seconds_ = 0;
};

}  // namespace fovea
