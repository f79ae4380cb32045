// SPDX-License-Identifier: Apache-2.0
// The options of training. One list of fields serves the command line, TOML, JSON and the
// checkpoint.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fovea/base/fields.h"
#include "fovea/base/precision.h"
#include "fovea/base/types.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

// Lengths of training: "10e" (epochs), "5000u" (updates), "2h" (hours).

enum class LengthUnit { kUpdates, kEpochs, kHours };

struct Length {
  double value = 0;
  LengthUnit unit = LengthUnit::kUpdates;
};

/// "10e", "0.5e", "5000u", "5000" (updates), "2h", "30m" (minutes), "90s". `option` is named in
/// errors. Throws kOptionValue for any other text and unless the length is greater than 0.
Length parse_length(std::string_view text, std::string_view option);

/// A length counted in updates: epochs are rounded up to whole updates. Throws kOptionValue for
/// hours and for more updates than can be counted.
index to_updates(Length length, index updates_per_epoch, std::string_view option);

/// When a run ends, and which share of it is done. A run that ends by updates or epochs depends on
/// its options alone. If it ends by hours, its learning rates and its bits depend on the machine
/// too.
class Horizon {
 public:
  Horizon(Length stop_after, index updates_per_epoch);

  bool reached(index step, double seconds) const { return fraction(step, seconds) >= 1; }
  /// Share of the run that is done after `step` updates which took `seconds`; 1 at the end.
  double fraction(index step, double seconds) const;
  bool in_hours() const { return updates_ == 0; }
  /// Updates in the whole run; 0 if it ends by hours.
  index updates() const { return updates_; }

 private:
  index updates_ = 0;
  double seconds_ = 0;
};

/// How the learning rate falls after the warm-up; see learning_rate() for the formulas.
enum class ScheduleKind { kCosine, kLinear, kInverseSqrt, kConstant, kWsd };

inline constexpr EnumName<ScheduleKind> kScheduleKindNames[] = {
    {ScheduleKind::kCosine, "cosine"},
    {ScheduleKind::kLinear, "linear"},
    {ScheduleKind::kInverseSqrt, "inverse-sqrt"},
    {ScheduleKind::kConstant, "constant"},
    {ScheduleKind::kWsd, "wsd"}};
inline std::span<const EnumName<ScheduleKind>> enum_names(ScheduleKind) {
  return kScheduleKindNames;
}

inline constexpr EnumName<Precision> kPrecisions[] = {
    {Precision::kFloat32, precision_name(Precision::kFloat32)},
    {Precision::kBFloat16, precision_name(Precision::kBFloat16)}};
inline std::span<const EnumName<Precision>> enum_names(Precision) { return kPrecisions; }

inline constexpr EnumName<Precision> kPrecisionAliases[] = {{Precision::kFloat32, "f32"},
                                                            {Precision::kBFloat16, "bfloat16"}};
inline std::span<const EnumName<Precision>> enum_aliases(Precision) { return kPrecisionAliases; }

/// How weights are updated; train/update_rule.h has the rules of each.
enum class OptimizerKind { kAdamW, kAdamW8, kLion, kMuon };

inline constexpr EnumName<OptimizerKind> kOptimizerNames[] = {{OptimizerKind::kAdamW, "adamw"},
                                                              {OptimizerKind::kAdamW8, "adamw8"},
                                                              {OptimizerKind::kLion, "lion"},
                                                              {OptimizerKind::kMuon, "muon"}};
inline std::span<const EnumName<OptimizerKind>> enum_names(OptimizerKind) {
  return kOptimizerNames;
}

/// The heading in help of the options on validation and what is written while the training goes on.
inline constexpr std::string_view kCheckpointsHeading = "Validation and checkpoints";

/// The defaults are those of nanoGPT for a small character model on a CPU.
struct TrainOptions {
  double lr = 1e-3;
  double min_lr = 1e-4;
  ScheduleKind schedule = ScheduleKind::kCosine;
  index warmup = 100;
  double decay_share = 0.2;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double clip = 1.0;
  index accumulate = 1;
  bool recompute = false;
  std::string stop_after = "2000u";
  std::string eval_every = "250u";
  std::string save_every = "500u";
  index log_every = 10;
  index observe_every = 0;
  bool evaluate_training = false;
  index patience = 0;
  index keep = 2;
  Precision precision = Precision::kFloat32;
  Precision save_dtype = Precision::kFloat32;
  std::uint64_t seed = 1;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("lr", lr, "learning rate after the warm-up",
          {.range = ValueRange::over(0), .place = HelpPlace::kTraining, .also = "learning-rate"});
    visit("min_lr", min_lr,
          "learning rate at the end of --schedule; if only --lr is given, a tenth of it");
    visit("schedule", schedule, "how the learning rate falls after the warm-up");
    visit("warmup", warmup, "updates over which the learning rate rises from 0",
          {.range = ValueRange::from(0)});
    visit("decay_share", decay_share,
          "--schedule wsd: share of the run, at its end, in which the learning rate falls",
          {.range = ValueRange::over(0, 1)});
    visit("optimizer", optimizer, "how the weights are updated", {.resume = OnResume::kNo});
    visit("beta1", beta1, "AdamW: decay of the mean of the gradients",
          {.range = ValueRange::share()});
    visit("beta2", beta2, "AdamW: decay of the mean of the squared gradients",
          {.range = ValueRange::share()});
    visit("epsilon", epsilon,
          "AdamW: added to the root of the mean of the squared gradients, so that nothing is "
          "divided by 0",
          {.range = ValueRange::over(0)});
    visit("weight_decay", weight_decay, "AdamW: decay of the weights of matrices",
          {.range = ValueRange::from(0)});
    visit("clip", clip, "largest global norm of the gradients; 0: no limit",
          {.range = ValueRange::from(0, "no limit")});
    visit("accumulate", accumulate, "batches whose gradients are accumulated for one update",
          {.range = ValueRange::from(1)});
    visit("recompute", recompute,
          "layers keep their input alone, and backward computes the rest again: less memory, more "
          "time, the same bits",
          {.resume = OnResume::kQuiet});
    visit(
        "stop_after", stop_after,
        "length of the run and of --schedule: epochs (10e), updates (5000u) or time (90s, 30m, 2h)",
        {.resume = OnResume::kBySchedule, .place = HelpPlace::kTraining, .shown = "LENGTH"});
    const auto visit_checkpoints = under(kCheckpointsHeading, visit);
    visit_checkpoints("eval_every", eval_every, "validate every N updates (250u) or epochs (1e)",
                      {.resume = OnResume::kQuiet, .shown = "LENGTH"});
    visit_checkpoints("save_every", save_every,
                      "save a checkpoint every N updates (500u) or epochs (1e)",
                      {.resume = OnResume::kQuiet, .shown = "LENGTH"});
    visit_checkpoints("log_every", log_every, "write metrics every N updates",
                      {.range = ValueRange::from(1), .resume = OnResume::kQuiet});
    visit_checkpoints("observe_every", observe_every,
                      "write entropy, largest score and distance of each attention head every N "
                      "updates; 0: never",
                      {.range = ValueRange::from(0, "never"), .resume = OnResume::kQuiet});
    visit_checkpoints(
        "evaluate_training", evaluate_training,
        "at each validation also measure the whole training set, with the same weights",
        {.resume = OnResume::kQuiet});
    visit_checkpoints(
        "patience", patience,
        "end the run after this many evaluations in a row without a better one; 0: never",
        {.range = ValueRange::from(0, "never"), .resume = OnResume::kQuiet});
    visit_checkpoints("keep", keep, "how many checkpoints to keep",
                      {.range = ValueRange::from(1), .resume = OnResume::kQuiet});
    visit("precision", precision,
          "bf16: products round their operands to bfloat16, sums and weights stay float32");
    visit_checkpoints("save_dtype", save_dtype,
                      "type of the weights in model.safetensors; those of checkpoints are float32");
    visit("seed", seed, "seed of all random numbers: same seed, same bits");
  }
};

/// The type of stored values of that precision.
constexpr DType dtype_of(Precision precision) {
  return precision == Precision::kBFloat16 ? DType::kBFloat16 : DType::kFloat32;
}

/// Throws kOptionValue, which names the option, for an invalid value.
void check_options(const TrainOptions& options);

}  // namespace fovea
