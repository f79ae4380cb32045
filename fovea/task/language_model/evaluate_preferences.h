// SPDX-License-Identifier: Apache-2.0
// Which of two answers a language model prefers, held to the model that its training began with
// (preference.h): the measures of direct preference optimisation on pairs of a test.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/config/json.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/task/language_model/settings.h"

namespace fovea {

/// The "task" of an evaluation.
inline constexpr std::string_view kPreferenceTask = "preferences";

struct PreferenceEvaluation {
  bool preferences = false;
  std::string reference_model = {};
  double dpo_beta = 0.1;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("preferences", preferences,
          "the files hold pairs of answers: measure which of them the model prefers. Not said: of "
          "a model of --objective dpo");
    visit("reference_model", reference_model,
          "--preferences: the model that rewards are held to. Not said: the model without "
          "--adapter, or that which its training began with",
          {.shown = "MODEL"});
    visit("dpo_beta", dpo_beta,
          "--preferences: rewards are so many times the change of a log-probability. Not said: as "
          "in the training of the model",
          {.range = ValueRange::over(0)});
  }
};

/// Whether pairs are measured: as it was `said`, else as the model was trained. Throws kUsage for
/// an option that has no effect then.
bool measures_preferences(const PreferenceEvaluation& options, std::span<const std::string> said,
                          const std::filesystem::path& model);

/// The reward of an answer is beta (log p - that of the reference); a margin is the reward of the
/// preferred answer less that of the other one.
struct PreferenceScore {
  index pairs = 0;
  index left_out = 0;  ///< pairs that are longer than the model reads
  index equal = 0;     ///< pairs of equal answers, which are left out, too
  double beta = 0;
  std::string reference;  ///< the model
  double confidence = 0.95;
  Interval accuracy;         ///< the share of margins above 0
  Interval margin;           ///< the mean
  Interval loss;             ///< the mean of -log sigmoid(margin)
  Interval chosen_reward;    ///< the mean reward of preferred answers
  Interval rejected_reward;  ///< that of the others

  /// Calls f(name, interval) for each number.
  template <class F>
  void visit_numbers(F&& f) const {
    f(std::string_view("accuracy"), accuracy);
    f(std::string_view("margin"), margin);
    f(std::string_view("loss"), loss);
    f(std::string_view("chosen_reward"), chosen_reward);
    f(std::string_view("rejected_reward"), rejected_reward);
  }
};

/// One object: "task", "pairs", "left_out", "equal", "beta", "reference", "confidence", and each
/// number as {"value", "low", "high"}.
Json json_of(const PreferenceScore& score);

/// The score of what the losses [2 pairs] of answers are to the model and to the reference, the
/// preferred answer of each pair first. Throws kModelDamaged for one that is not finite.
PreferenceScore score_preferences(const Context& context, std::span<const double> losses,
                                  std::span<const double> reference, double beta,
                                  const BootstrapOptions& options = {});

/// The score of the pairs in all files, by the model in a folder or file with `adapters`. One of
/// both models is in memory at a time. `said`: the options that were set. Throws as
/// load_language_model() and read_preferences() do; kModelWrongKind for a model without a chat
/// template, and for a reference that reads other tokens; kUsage without a reference.
PreferenceScore evaluate_preferences(const Context& context, const std::filesystem::path& model,
                                     const PretrainedOptions& loading,
                                     std::span<const std::string> files,
                                     const PreferenceEvaluation& options,
                                     std::span<const std::string> said);

}  // namespace fovea
