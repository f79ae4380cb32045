// SPDX-License-Identifier: Apache-2.0
// A search for the settings of a classifier within a budget: successive halving (Jamieson &
// Talwalkar 2016) over settings that are drawn by the seed, and over growing parts of the texts.
#pragma once

#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/types.h"
#include "fovea/task/classify/read_texts.h"
#include "fovea/task/classify/settings.h"
#include "fovea/train/history.h"
#include "fovea/train/trainer.h"

namespace fovea {

inline constexpr std::string_view kTrialsName = "trials.jsonl";

/// The budget of a search: time, or, for the same bits on any machine, a number of trials.
struct SearchBudget {
  double seconds = std::numeric_limits<double>::infinity();
  index trials = std::numeric_limits<index>::max();

  bool in_time() const { return seconds < std::numeric_limits<double>::infinity(); }
};

/// "10m", "90s", "2h", or "40t" trials. Throws kOptionValue for any other text.
SearchBudget parse_budget(std::string_view text);

/// The first line: the search that the trials are of. What does not depend on the budget must be
/// the same to go on.
struct SearchHead {
  std::string kind = "search";
  std::string data;               ///< fingerprint of the texts
  std::string models;             ///< kinds that are tried: "linear,bag"
  std::string given;              ///< options that are fixed
  std::string compared = "loss";  ///< by what: measured_by()
  index rows = 0, rungs = 0, seed = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kind", kind, "what the line is");
    visit("data", data, "fingerprint of the texts");
    visit("models", models, "kinds of models that are tried");
    visit("given", given, "options that are not searched");
    visit("compared", compared, "the number by which trials are compared");
    visit("rows", rows, "texts to train on");
    visit("rungs", rungs, "parts of the texts, each three times that before it");
    visit("seed", seed, "of the order of the settings");
  }

  friend bool operator==(const SearchHead&, const SearchHead&) = default;
};

struct SearchTrial {
  std::string kind = "trial";
  index trial = 0;            ///< from 1
  index round = 0, rung = 0;  ///< from 1
  index rows = 0;             ///< texts that it was trained on
  std::string options = {};   ///< as they were drawn: "--word-ngrams 1-2 --weighting ratio"
  std::string found = {};     ///< options that the training chose: "--regularization-c 4"
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< NaN: it failed
  double seconds = 0;
  double error = 0;                       ///< of the defaults: see best_trial()
  std::string failure = {};               ///< why
  std::vector<MetricValue> metrics = {};  ///< no field: "metrics" is an object

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kind", kind, "what the line is");
    visit("trial", trial, "its number, from 1");
    visit("round", round, "its round, from 1");
    visit("rung", rung, "its rung, from 1");
    visit("rows", rows, "texts that it was trained on");
    visit("options", options, "as they were drawn");
    visit("found", found, "options that the training chose");
    visit("loss", loss, "on texts that it had not seen; null: it failed");
    visit("seconds", seconds, "that it took");
    visit("error", error,
          "of the defaults: half the 95 % interval of what is compared; 0: not used");
    visit("failure", failure, "why it failed");
  }
};

struct SearchRecords {
  SearchHead head = {};
  std::vector<SearchTrial> trials = {};  ///< in order, up to the first line that cannot be read
};

/// Nothing if the folder has no trials.
SearchRecords read_trials(const std::filesystem::path& folder);
/// Begins the file anew, with its first line and trials that are known. Throws kWrite, kDiskFull.
void write_trials(const std::filesystem::path& folder, const SearchRecords& records);
/// Adds a line, durably.
void append_trial(const std::filesystem::path& folder, const SearchTrial& trial);

/// What trials are compared by, where `metric` is asked for: a metric, or the loss. Auto is macro
/// F1 of uneven classes, which a loss hardly sees if they are rare, and else the loss, which tells
/// more than a count.
std::string_view compared_by(ClassifierMetric metric, ClassifierTask task, bool is_uneven);
/// The trial's number for that; larger is better, NaN: it failed.
double goodness_of(const SearchTrial& trial, std::string_view compared);

/// Its number: the best on the highest rung, the first of equal ones; but the first trial, that of
/// the defaults, if this is not better by more than half of its 95 % interval: the best of many is
/// often better by chance. The count of trials if all failed.
std::size_t best_trial(std::span<const SearchTrial> trials, std::string_view compared);

/// Lines for people: the best trials, the highest rung first, `most` of them.
std::string trial_table(std::span<const SearchTrial> trials, std::string_view compared,
                        std::size_t most);

struct SearchResult {
  std::vector<SearchTrial> trials;
  std::string compared;         ///< by this
  std::size_t best = 0;         ///< of these; if there is none, the defaults are kept
  ClassifierSettings settings;  ///< with those of the best trial, and no search to do
  bool stopped = false;         ///< by request, before the end
};

/// Tries the defaults on all texts, then in rounds settings that are drawn without repetition. A
/// round measures 3^(n-1) settings on the texts of the first of n rungs, the best third on those of
/// the second, which has three times as many, and so on; the last rung has all texts. What was
/// found is best_trial(). Options that are not at their defaults stay as they are.
///
/// A trial is measured on the validation files; without such, a linear model by cross-validation,
/// with its thresholds. Where bags and encoders are tried, too, a part of the texts is held back.
class ClassifierSearch {
 public:
  /// Reads the texts. Throws as prepare_run().
  explicit ClassifierSearch(const ClassifierSettings& settings);

  /// Searches, and writes each trial into the folder as it ends. A search that is resumed goes on
  /// behind the trials that stand there, with the time that they left. Throws kConfig if these are
  /// of another search.
  SearchResult run(const Context& context, const std::filesystem::path& folder, bool resume,
                   TrainingObserver& observer) const;

 private:
  const ClassifierSettings settings_;
  LabelledSet set_;
};

}  // namespace fovea
