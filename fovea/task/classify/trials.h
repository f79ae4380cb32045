// SPDX-License-Identifier: Apache-2.0
// The trials of a search for settings: trials.jsonl, one JSON object per line.
#pragma once

#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/train/history.h"

namespace fovea {

inline constexpr std::string_view kTrialsName = "trials.jsonl";

/// What a search may use: time, or, for the same bits on any machine, a number of trials.
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

}  // namespace fovea
