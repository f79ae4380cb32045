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
  std::string data;    ///< fingerprint of the texts
  std::string models;  ///< kinds that are tried: "linear,bag"
  std::string given;   ///< options that are fixed
  index rows = 0, rungs = 0, seed = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kind", kind, "what the line is");
    visit("data", data, "fingerprint of the texts");
    visit("models", models, "kinds of models that are tried");
    visit("given", given, "options that are not searched");
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

/// Its number: that of the lowest loss on the highest rung; the first of equal ones. The count of
/// trials if all failed.
std::size_t best_trial(std::span<const SearchTrial> trials);

/// Lines for people: the best trials, the highest rung first, `most` of them.
std::string trial_table(std::span<const SearchTrial> trials, std::size_t most);

struct SearchResult {
  std::vector<SearchTrial> trials;
  std::size_t best = 0;         ///< of these; if there is none, the defaults are kept
  ClassifierSettings settings;  ///< with those of the best trial, and no search to do
  bool stopped = false;         ///< by request, before the end
};

/// Tries settings in rounds. The first round has the defaults among its settings, all others are
/// drawn without repetition. A round measures 3^(n-1) settings on the texts of the first of n
/// rungs, the best third on those of the second, which has three times as many, and so on; the last
/// rung has all texts. The best trial is that of the lowest loss on the highest rung. Options that
/// are not at their defaults stay as they are.
///
/// A loss is that of the validation files; without such, of linear models that of cross-validation.
/// Where bags and encoders are tried, too, it is that of a part of the texts that is held back.
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
