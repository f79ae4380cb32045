// SPDX-License-Identifier: Apache-2.0
// Shared by the experiments: the measurements of `fovea reproduce`, their file, table and pictures;
// the data, which are not part of fovea; and how a training is stopped.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/context.h"
#include "fovea/base/file.h"
#include "fovea/base/types.h"
#include "fovea/config/json.h"
#include "fovea/report/plot.h"
#include "fovea/task/run.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/run_lock.h"
#include "fovea/train/trainer.h"

namespace fovea {

/// The model as published, defects included, or corrected.
enum class ReproduceVariant { kCompat, kFixed };

constexpr std::string_view variant_name(ReproduceVariant variant) {
  return variant == ReproduceVariant::kCompat ? "compat" : "fixed";
}

/// One number of one run.
struct ReproduceRow {
  std::string experiment;  ///< its name in docs/REPRODUCE.md: E4
  std::string variant;     ///< compat or fixed, and what else tells two runs apart
  index seed = 0;
  std::string metric;
  std::optional<double> published = {};  ///< by the source
  std::optional<double> ours = {};
  std::vector<double> by_epoch = {};  ///< the metric after each epoch
  std::optional<double> seconds_per_epoch = {};
  std::optional<double> pytorch_seconds_per_epoch = {};
};

Json json_of_row(const ReproduceRow& row);

/// The name of a run, and of its folder: "E4-fixed-seed1".
inline std::string run_name(const ReproduceRow& row) {
  return fmt::format("{}-{}-seed{}", row.experiment, row.variant, row.seed);
}

/// The share of the epochs or updates, but at least one.
inline index share_of(double share, index all) {
  return std::max<index>(1, std::lround(share * static_cast<double>(all)));
}

struct ReproduceOptions {
  std::filesystem::path data;    ///< laid out as docs/commands/reproduce.md says
  std::filesystem::path output;  ///< of runs, which go on where they were, and of pictures
  std::vector<ReproduceVariant> variants = {ReproduceVariant::kCompat, ReproduceVariant::kFixed};
  index seeds = 3;
  std::string only = {};  ///< E8: parts of names of variants, between commas; none: all run
  /// The part of the epochs and updates: below 1 for a trial, which needs its own output folder.
  double share = 1;
  index share_of(index all) const { return fovea::share_of(share, all); }
  /// PyTorch's seconds for an epoch of an experiment, if PyTorch is there. May be null.
  std::function<std::optional<double>(std::string_view experiment)> pytorch = {};
};

/// Receives what is measured, as soon as it is.
struct ReproduceObserver {
  std::function<void(const ReproduceRow&)> measured;
  std::function<void(const std::string& what)> begins;  ///< a run, for people
  std::function<bool()> stop;                           ///< after the current update
};

/// Thrown when observer.stop() was true: the next call goes on from there.
struct ReproduceStopped {};

/// The context, the options and the observer that every experiment is given.
class Reproduction {
 public:
  Reproduction(const Context& context, const ReproduceOptions& options,
               const ReproduceObserver& observer)
      : context_(context), options_(options), observer_(observer) {}

 protected:
  void tell(const std::string& what) const {
    if (observer_.begins) observer_.begins(what);
  }
  /// Calls train(). A run that diverges is `row`, which has no number, and the other runs go on:
  /// then it returns false.
  template <class Train>
  bool trains(const ReproduceRow& row, Train&& train) const {
    try {
      train();
      return true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDiverged) throw;
      tell(error.what());
      observer_.measured(row);
      return false;
    }
  }

  const Context& context_;
  const ReproduceOptions& options_;
  const ReproduceObserver& observer_;
};

/// E4, E5, E6, E9: language models on The Little Prince (Hands-on NLP, chapter 6).
void reproduce_prince(const Context& context, const ReproduceOptions& options,
                      const ReproduceObserver& observer);
/// E1, E2, E3, P9: text classifiers on the reviews of IMDB (Su 2018, kexue.fm/4765).
void reproduce_imdb(const Context& context, const ReproduceOptions& options,
                    const ReproduceObserver& observer);
/// E8: taggers and segmenters with attention, convolutions and recurrent layers.
void reproduce_tag(const Context& context, const ReproduceOptions& options,
                   const ReproduceObserver& observer);
/// E7, E14: translators of titles and captions, with and without positions.
void reproduce_translate(const Context& context, const ReproduceOptions& options,
                         const ReproduceObserver& observer);
/// P8: which of two tokens came first, without positions and with each kind of them.
void reproduce_order(const Context& context, const ReproduceOptions& options,
                     const ReproduceObserver& observer);
/// E12: what a model remembers of a token at a distance of 10 to 500 tokens.
void reproduce_recall(const Context& context, const ReproduceOptions& options,
                      const ReproduceObserver& observer);
/// E13: the time for a token, forward and backward, of five kinds of layers at many lengths.
void reproduce_speed(const Context& context, const ReproduceOptions& options,
                     const ReproduceObserver& observer);

struct DataFile {
  std::string_view path;    ///< below the folder of data
  std::string_view xxh3;    ///< of its bytes, as xxh3_128() gives it
  std::string_view sha256;  ///< for people, who may have sha256sum; it is not computed here
  std::string_view origin;  ///< where it comes from
};

/// The path of the file. Throws kMissingInput, which says which file is needed, its checksum and
/// where it goes, and kInputFormat if another file is there.
std::filesystem::path require_data(const std::filesystem::path& folder, const DataFile& file);

/// Whether a run began in the folder: its manifest is the last of the files that a run begins with.
inline bool run_began(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / kManifestName);
}

/// Ends a training, with a checkpoint, as soon as stop() is true.
class StopWhenAsked final : public TrainingObserver {
 public:
  explicit StopWhenAsked(const std::function<bool()>& stop) : stop_(stop) {}
  Request request() override { return stop_ && stop_() ? Request::kStop : Request::kNone; }

 private:
  const std::function<bool()>& stop_;
};

/// Trains in `folder`, or goes on where an earlier call was stopped: train(StartAt,
/// TrainingObserver&) returns a TrainResult. Throws ReproduceStopped, and kConfig if a run there
/// went on beyond its `updates`.
template <class Train>
void train_in(const std::filesystem::path& folder, const ReproduceObserver& observer, index updates,
              Train&& train) {
  create_folders(folder);
  const RunLock lock(folder);
  StopWhenAsked watching(observer.stop);
  StartAt start;
  start.resume = run_began(folder);
  const TrainResult result = train(start, watching);
  if (result.stopped) throw ReproduceStopped();
  if (result.state.step == updates) return;
  throw Error(ErrorCode::kConfig,
              fmt::format("{}: the run there went on to update {}; the experiment ends at {}",
                          folder.string(), result.state.step, updates),
              "remove that folder or choose another one with -o: the run is made again");
}

/// The setup of a training in `folder` whose model and data these texts tell from others.
TrainerSetup setup_in(const std::filesystem::path& folder, std::string_view model,
                      std::string_view data);
/// Trains, or goes on where an earlier call was stopped. Throws ReproduceStopped.
void run_trainer(const Context& context, Objective& objective, TrainingObserver& watching,
                 TrainerSetup setup);

class ReproduceResults {
 public:
  /// Rows of earlier calls stay in the file until they are measured again. A last line that is not
  /// finished is dropped. Throws kConfig, which names the line, if the file has others.
  explicit ReproduceResults(std::filesystem::path file);

  /// Notes for people on dropped rows.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Takes the row into the table and into the file, in place of the one with its name.
  void add(const ReproduceRow& row);

  /// The rows of this call as lines of text: of several seeds the mean and the standard deviation.
  std::string table() const;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // experiment, variant, metric
  struct Cell {
    std::vector<double> ours, seconds;
    std::optional<double> published, pytorch;
  };

  void keep_line(const Json& row);

  const std::filesystem::path file_;
  std::vector<std::pair<std::string, std::string>> lines_;  // names and texts of rows
  std::vector<std::string> notes_;
  std::map<Key, Cell> cells_;
  std::vector<Key> order_;
};

class SeedCurves {
 public:
  /// `metric`: "accuracy on the test set".
  explicit SeedCurves(std::string metric) : metric_(std::move(metric)) {}

  /// The published values after each epoch.
  void publish(std::string_view experiment, std::vector<double> by_epoch);
  /// Adds the values of the run of a seed.
  void add(std::string_view experiment, std::string_view variant, std::vector<double> by_epoch);

  /// A curve for each variant, in the order they came: the mean over the seeds so far, with bars of
  /// a standard deviation to both sides from two seeds on.
  Plot plot(std::string_view experiment) const;

 private:
  struct Variant {
    std::string name;
    std::vector<std::vector<double>> seeds;  // of each seed by epoch
  };
  struct Experiment {
    std::vector<double> published;
    std::vector<Variant> variants;
  };

  std::string metric_;
  std::map<std::string, Experiment, std::less<>> experiments_;
};

}  // namespace fovea
