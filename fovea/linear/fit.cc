// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/random.h"
#include "fovea/data/epoch_order.h"
#include "fovea/linear/calibrate.h"
#include "fovea/linear/decide.h"
#include "fovea/linear/fit_plan.h"
#include "fovea/linear/scaled_solver.h"
#include "fovea/linear/solver.h"
#include "fovea/linear/wide_solver.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"

namespace fovea {

namespace {

struct TextSizes {
  double texts = 0, characters = 0, without_blanks = 0;
};

TextSizes sizes_of(std::span<const std::string> texts) {
  constexpr std::size_t kLookedAt = 2000;
  TextSizes sizes;
  // At even distances: files are often sorted by label or by source.
  const std::size_t looked_at = std::min(kLookedAt, texts.size());
  for (std::size_t n = 0; n < looked_at; ++n) {
    std::string_view text = texts[n * texts.size() / looked_at];
    while (!text.empty()) {
      const DecodedCharacter c = decode_character(text);
      text.remove_prefix(static_cast<std::size_t>(c.length));
      sizes.characters += 1;
      sizes.without_blanks += has_no_blanks(c.value) ? 1 : 0;
    }
    sizes.texts += 1;
  }
  return sizes;
}

}  // namespace

ChosenNgrams choose_ngrams(std::span<const std::string> texts, const LinearFitOptions& options,
                           WordSplit split, bool lower) {
  constexpr double kShortText = 200, kLittleText = 5e6, kMuchText = 1e9;
  const TextSizes sizes = sizes_of(texts);
  const double length = sizes.characters / std::max(sizes.texts, 1.0);
  const double all = length * static_cast<double>(texts.size());
  NgramsLeftOut left_out = NgramsLeftOut::kNone;
  std::string_view words = all > kMuchText ? "1-2" : "1-3", characters = "0", why = "long texts";
  if (sizes.without_blanks > 0.5 * sizes.characters) {
    words = "0", characters = "1-3", why = "a script without blanks between words";
  } else if (length <= kShortText) {
    words = "1-2", characters = "1-5", why = "short texts", left_out = NgramsLeftOut::kWords;
  } else if (all <= kLittleText) {
    words = "1-2", characters = "2-5", why = "little text";
  }
  ChosenNgrams chosen;
  chosen.rules.split = split;
  chosen.rules.lower = lower;
  chosen.rules.binary = is_binary(options.weighting);
  const auto read = [](const std::string& option, std::string_view found, std::string_view name) {
    return parse_lengths(option == "auto" ? found : std::string_view(option), name);
  };
  chosen.rules.words = read(options.word_ngrams, words, "word_ngrams");
  chosen.rules.characters = read(options.char_ngrams, characters, "char_ngrams");
  // Who names the n-grams of words wants them.
  if (options.leave_out != NgramsLeftOut::kAuto) {
    chosen.leave_out = options.leave_out;
  } else if (options.word_ngrams == "auto") {
    chosen.leave_out = left_out;
  }
  chosen.note =
      fmt::format("n-grams of words: {}, of characters: {} ({}: {:.0f} characters each)",
                  to_string(chosen.rules.words), to_string(chosen.rules.characters), why, length);
  return chosen;
}

namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::infinity();

// The model of one output of a weighting, as a column of weights over the columns of the rows.
struct OutputProblem {
  std::vector<std::int32_t> used = {};
  std::vector<float> y = {};
  std::vector<double> costs = {};
  std::vector<float> scales = {};
  double offset = 0;
};

// The state that a fold of the outputs that are solved together keeps from one C of a path to the
// next. If all of them take more than kMostKept bytes, it begins anew at each C.
struct PathState {
  std::vector<OutputProblem> problems = {};
  LinearSolution solution = {};
  WideSolution wide = {};

  /// Of the problem in a lane.
  double weight(index column, std::size_t lane) const {
    if (!wide.lines.empty()) return double{wide.weight(column, lane)};
    return solution.weights[static_cast<std::size_t>(column * solution.lanes) + lane];
  }
};
// The values from `first` on, `count` at most.
std::span<const index> part_of(std::span<const index> all, index first, index count) {
  const auto begin = static_cast<std::size_t>(first);
  return all.subspan(begin, std::min(static_cast<std::size_t>(count), all.size() - begin));
}

class Fitter {
 public:
  Fitter(const Context& context, const LinearData& data, const LinearFitOptions& options,
         std::uint64_t seed, const FitObserver& observer)
      : context_(context),
        data_(data),
        options_(options),
        seed_(seed),
        observer_(observer),
        outputs_(logit_count(data.task, data.classes)),
        folds_(fold_count(data.truth.size(), data.task, outputs_, options)),
        calibration_folds_(calibration_folds(data.truth.size(), data.task, outputs_, options)) {
    if (folds_ > 0) fold_ = draw_folds(data, folds_, seed);
    take_texts();
  }

  std::optional<LinearFit> fit();

 private:
  index texts() const { return data_.truth.size(); }
  bool is_number() const { return data_.task == ClassifierTask::kRegression; }
  void list_trials();

  std::vector<float> targets(index output) const;
  double weight_of(index text, index output, bool has) const;
  OutputProblem problem_of(index output, index left_out) const;
  std::vector<OutputProblem> problems_of(const LinearTrial& trial, std::span<const index> outputs,
                                         index left_out) const;
  void leave_words_out(OutputProblem& problem) const;
  void take_ratios(OutputProblem& problem) const;
  void take_ratios(std::span<OutputProblem> problems) const;
  bool same_texts() const;
  bool is_wide() const;
  bool is_alone() const;
  index lanes_for(index outputs, index times) const;
  bool solve(PathState& state, double c);
  void measure(index fold, std::span<const index> outputs, std::size_t trial, PathState& state,
               std::span<float> unseen, index width);
  void list_measured();
  bool cross_validate();
  std::vector<double> losses_by(std::size_t trial) const;
  std::size_t clearly_better(std::size_t usual, std::size_t other) const;
  std::size_t choose() const;
  bool measure_all(std::size_t trial);
  void keep_measured();
  std::vector<IsotonicMap> calibrate_further(const Calibration& by, std::vector<float>& unseen);
  std::optional<LinearWeights> solve_all(const LinearTrial& setting, const Calibration& by);

  void take_texts();
  std::vector<double> priors() const;
  /// The answers of the models of a trial for texts that they have not seen, for measured outputs.
  CalibrationData unseen_by(std::size_t trial) const {
    CalibrationData seen = seen_;
    seen.values = unseen_[trial];
    if (!is_sampled()) return seen;
    if (seen.task == ClassifierTask::kSingleLabel) {
      // Some of the classes, each against the others.
      seen.task = ClassifierTask::kMultiLabel;
      for (double& prior : seen.prior) prior -= std::log1p(-std::exp(prior));
    }
    seen.outputs = static_cast<index>(measured_.size());
    seen.labels = measured_;
    for (std::size_t m = 0; m < measured_.size(); ++m) {
      seen.prior[m] = seen.prior[static_cast<std::size_t>(measured_[m])];
    }
    seen.prior.resize(measured_.size());
    return seen;
  }
  bool is_sampled() const { return static_cast<index>(measured_.size()) < outputs_; }
  bool measures_again() const { return is_sampled() || calibration_folds_ > folds_; }

  void solved(index problems) {
    const double done = static_cast<double>(done_ += problems);
    if (std::this_thread::get_id() != caller_ || !observer_.works) return;
    observer_.works(folds_ > 0 ? "cross-validation" : "fitting",
                    done / static_cast<double>(to_do_));
  }
  // Only the thread of the caller asks; the others see what it was told.
  bool interrupted() {
    if (std::this_thread::get_id() == caller_ && observer_.interrupted && observer_.interrupted()) {
      stop_ = true;
    }
    return stop_;
  }

  const Context context_;
  const LinearData& data_;
  const LinearFitOptions& options_;
  const std::uint64_t seed_;
  const FitObserver& observer_;
  const index outputs_;
  index folds_;
  const index calibration_folds_;
  std::vector<std::int32_t> fold_;  // of each text
  std::vector<LinearTrial> trials_;
  std::vector<index> measured_;             // outputs by which a trial is chosen
  std::vector<std::vector<float>> unseen_;  // [trials][texts, measured] what is added to the prior
  CalibrationData seen_{.truth = data_.truth};  // without values
  const std::thread::id caller_ = std::this_thread::get_id();
  std::atomic<bool> stop_ = false;
  std::atomic<index> done_ = 0;
  index to_do_ = 1;
  index paths_ = 0;  // each with as many C
};

void Fitter::list_trials() {
  for (LinearTrial trial : paths_of(data_.features, texts(), data_.task, options_)) {
    trial.loss = kNotMeasured;
    for (const double c : path_of(trial.weighting, data_.task, folds_, options_)) {
      trial.c = c;
      trials_.push_back(trial);
    }
    ++paths_;
  }
}

double Fitter::weight_of(index text, index output, bool has) const {
  if (data_.class_weights.empty()) return 1;
  if (data_.task == ClassifierTask::kMultiLabel) {
    return has ? data_.class_weights[static_cast<std::size_t>(output)] : 1;
  }
  return data_.class_weights[static_cast<std::size_t>(data_.truth.labels_of(text)[0])];
}

std::vector<float> Fitter::targets(index output) const {
  std::vector<float> y(static_cast<std::size_t>(texts()));
  if (is_number()) return data_.truth.numbers;
  const std::int32_t wanted =
      data_.task == ClassifierTask::kBinary ? 1 : static_cast<std::int32_t>(output);
  for (index i = 0; i < texts(); ++i) {
    const auto labels = data_.truth.labels_of(i);
    const bool has = std::find(labels.begin(), labels.end(), wanted) != labels.end();
    y[static_cast<std::size_t>(i)] = has ? 1.0F : -1.0F;
  }
  return y;
}

// The problem of all texts but those of the fold `left_out`; -1: of all texts.
OutputProblem Fitter::problem_of(index output, index left_out) const {
  OutputProblem problem{.y = targets(output)};
  problem.costs.resize(problem.y.size(), 1);
  double with = 0.5, without = 0.5;
  for (index i = 0; i < texts(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!is_number()) problem.costs[at] = weight_of(i, output, problem.y[at] > 0);
    const bool is_used = left_out < 0 || fold_[at] != left_out;
    if (!is_used || problem.costs[at] <= 0) continue;
    problem.used.push_back(static_cast<std::int32_t>(i));
    (problem.y[at] > 0 ? with : without) += problem.costs[at];
  }
  if (!is_number()) problem.offset = std::log(with / without);
  return problem;
}

// r_f = log((1 + texts of the class with f) / all of these) - the same of the other texts.
void Fitter::take_ratios(OutputProblem& problem) const {
  const auto columns = static_cast<std::size_t>(data_.features.columns());
  std::vector<double> with(columns, 1), without(columns, 1);
  for (const std::int32_t i : problem.used) {
    const auto at = static_cast<std::size_t>(i);
    std::vector<double>& counts = problem.y[at] > 0 ? with : without;
    for (index n = data_.rows.starts[at]; n < data_.rows.starts[at + 1]; ++n) {
      counts[static_cast<std::size_t>(data_.rows.columns[static_cast<std::size_t>(n)])] +=
          problem.costs[at];
    }
  }
  const double all_with = std::accumulate(with.begin(), with.end() - 1, 0.0);
  const double all_without = std::accumulate(without.begin(), without.end() - 1, 0.0);
  problem.scales.resize(columns, 1);
  for (std::size_t f = 0; f + 1 < columns; ++f) {
    problem.scales[f] =
        static_cast<float>(std::log(with[f] / all_with) - std::log(without[f] / all_without));
  }
}

// The same for many outputs with the same texts: a column that no text of a label has differs from
// what all of them have in common by a number of the label.
void Fitter::take_ratios(std::span<OutputProblem> problems) const {
  const auto columns = static_cast<std::size_t>(data_.features.columns());
  std::vector<double> all(columns, 1), with(columns), without(columns), logs(columns);
  for (const std::int32_t i : problems.front().used) {
    const double cost = weight_of(i, 0, false);
    for (const std::int32_t f : data_.rows.row(i).columns) all[static_cast<std::size_t>(f)] += cost;
  }
  std::transform(all.begin(), all.end(), logs.begin(), [](double n) { return std::log(n); });
  const double total = std::accumulate(all.begin(), all.end() - 1, 0.0);
  for (OutputProblem& problem : problems) {
    std::vector<std::int32_t> touched;
    double all_with = static_cast<double>(columns - 1), all_without = total;
    for (const std::int32_t i : problem.used) {
      const auto at = static_cast<std::size_t>(i);
      if (problem.y[at] < 0) continue;
      const double cost = weight_of(i, 0, false);
      for (const std::int32_t column : data_.rows.row(i).columns) {
        const auto f = static_cast<std::size_t>(column);
        if (f + 1 == columns) continue;  // of the bias
        if (with[f] == 0) touched.push_back(column), with[f] = 1, without[f] = all[f];
        with[f] += problem.costs[at], all_with += problem.costs[at];
        without[f] -= cost, all_without -= cost;
      }
    }
    const double between = std::log(all_without) - std::log(all_with);
    problem.scales.resize(columns, 1);
    for (std::size_t f = 0; f + 1 < columns; ++f) {
      problem.scales[f] = static_cast<float>(between - logs[f]);
    }
    for (const std::int32_t column : touched) {
      const auto f = static_cast<std::size_t>(column);
      problem.scales[f] = static_cast<float>(between + std::log(with[f]) - std::log(without[f]));
      with[f] = 0;
    }
  }
}

// Columns that are scaled by 0 have no weight. Those of characters become as long as they would be
// alone, so that the same C suits them.
void Fitter::leave_words_out(OutputProblem& problem) const {
  const std::vector<NgramBlock>& blocks = data_.features.blocks;
  const auto longer = static_cast<float>(std::sqrt(static_cast<double>(blocks.size())));
  problem.scales.resize(static_cast<std::size_t>(data_.features.columns()), 1);
  auto scale = problem.scales.begin();
  for (const NgramBlock& block : blocks) {
    const float by = block.kind == NgramKind::kWords ? 0 : longer;
    for (index n = 0; n < block.names.size(); ++n) *scale++ *= by;
  }
}

std::vector<OutputProblem> Fitter::problems_of(const LinearTrial& trial,
                                               std::span<const index> outputs,
                                               index left_out) const {
  std::vector<OutputProblem> problems;
  for (const index output : outputs) problems.push_back(problem_of(output, left_out));
  if (has_ratios(trial.weighting) && is_wide()) {
    take_ratios(problems);
  } else if (has_ratios(trial.weighting)) {
    for (OutputProblem& problem : problems) take_ratios(problem);
  }
  if (trial.without_words) {
    for (OutputProblem& problem : problems) leave_words_out(problem);
  }
  return problems;
}

// Where a label has no weight, its texts are used for other labels alone.
bool Fitter::same_texts() const {
  const auto& weights = data_.class_weights;
  return data_.task != ClassifierTask::kMultiLabel ||
         std::all_of(weights.begin(), weights.end(), [](double w) { return w > 0; });
}

// Whether each output is solved by itself, whatever the number of threads.
bool Fitter::is_alone() const {
  return !is_number() && !is_wide() && solves_alone(outputs_, data_.features.columns());
}

bool Fitter::is_wide() const { return fovea::is_sampled(data_.task, outputs_) && same_texts(); }

// How many outputs are solved side by side, where there are so many, so many times: as many as
// leave something to each thread.
index Fitter::lanes_for(index outputs, index times) const {
  if (is_wide()) return kWideLanes;
  if (is_number() || !same_texts() || is_alone()) return 1;
  index lanes = kMostLanes;
  while (lanes > 1 && times * ((outputs + lanes - 1) / lanes) < context_.threads()) lanes /= 2;
  return lanes;
}

bool Fitter::solve(PathState& state, double c) {
  const SolverOptions options{.seed = seed_, .interrupted = [this] { return interrupted(); }};
  std::vector<LinearProblem> said;
  for (const OutputProblem& problem : state.problems) {
    said.push_back({.rows = data_.rows,
                    .columns = data_.features.columns(),
                    .used = problem.used,
                    .y = problem.y,
                    .costs = problem.costs,
                    .scales = problem.scales,
                    .offset = problem.offset,
                    .c = c});
  }
  const bool done = is_number()  ? solve_squares(said.front(), options, state.solution)
                    : is_alone() ? solve_scaled(said.front(), options, state.solution)
                    : is_wide()  ? solve_logistic(said, options, state.wide)
                                 : solve_logistic(said, options, state.solution);
  solved(static_cast<index>(said.size()));
  return done;
}

// A trial for the texts of a fold. `state` is that of the trial before it on the path, and becomes
// its own. What the models add to the prior goes into `unseen` [texts, width], from the first
// output's column on.
void Fitter::measure(index fold, std::span<const index> outputs, std::size_t trial,
                     PathState& state, std::span<float> unseen, index width) {
  if (state.problems.empty()) {
    state.problems = problems_of(trials_[trial], outputs, fold);
  }
  if (!solve(state, trials_[trial].c)) return;
  double values[kWideLanes];
  const std::span<double> found(values, outputs.size());
  for (index i = 0; i < texts(); ++i) {
    if (fold_[static_cast<std::size_t>(i)] != fold) continue;
    is_wide() ? multiply(data_.rows.row(i), state.wide, found)
              : multiply(data_.rows.row(i), state.solution, found);
    std::copy_n(values, outputs.size(), unseen.begin() + i * width);
  }
  state.solution.weights = {};  // which follow from the duals
  state.wide.lines = {};
}

// If there are many outputs, only some are measured: the loss is a mean over them.
void Fitter::list_measured() {
  const index count = fovea::is_sampled(data_.task, outputs_) ? kMostMeasured : outputs_;
  for (index m = 0; m < count; ++m) measured_.push_back(m * outputs_ / count);
}

// All weightings go along their paths together, step by step. A path ends where its loss has become
// clearly worse: it is convex but for chance, and the largest C take the longest.
bool Fitter::cross_validate() {
  constexpr double kClearly = 1.01;
  const std::size_t length = trials_.size() / static_cast<std::size_t>(paths_);
  const auto width = static_cast<index>(measured_.size());
  const index lanes = lanes_for(width, paths_ * folds_), groups = (width + lanes - 1) / lanes;
  const index each = folds_ * groups;
  const bool keeps =
      kept_bytes(texts(), data_.features.columns(), paths_ * folds_ * width) <= kMostKept;
  unseen_.resize(trials_.size());
  std::vector<PathState> states(static_cast<std::size_t>(paths_ * each));
  std::vector<double> best(static_cast<std::size_t>(paths_), kNotMeasured);
  std::vector<std::size_t> open(static_cast<std::size_t>(paths_));
  std::iota(open.begin(), open.end(), std::size_t{0});
  for (std::size_t step = 0; step < length && !open.empty(); ++step) {
    for (const std::size_t path : open) {
      unseen_[path * length + step].resize(static_cast<std::size_t>(texts() * width));
    }
    context_.for_each_in_order(static_cast<index>(open.size()) * each, [&](index item) {
      const std::size_t path = open[static_cast<std::size_t>(item / each)];
      const std::size_t trial = path * length + step;
      const index first = item % groups * lanes, fold = item % each / groups;
      const auto own =
          path * static_cast<std::size_t>(each) + static_cast<std::size_t>(item % each);
      measure(fold, part_of(measured_, first, lanes), trial, states[own],
              std::span(unseen_[trial]).subspan(static_cast<std::size_t>(first)), width);
      if (!keeps) states[own] = {};
    });
    std::erase_if(open, [&](std::size_t path) {
      LinearTrial& trial = trials_[path * length + step];
      const CalibrationData seen = unseen_by(path * length + step);
      trial.loss =
          loss_of(context_, seen, calibrate(context_, seen, CalibrationSize::kTemperature));
      best[path] = std::min(best[path], trial.loss);
      const bool ends = trial.loss > kClearly * best[path];
      if (ends) done_ += static_cast<index>(length - step - 1) * folds_ * width;
      return ends;
    });
    if (stop_) return false;
  }
  keep_measured();
  return true;
}

// The losses of the texts by a trial, times their weights.
std::vector<double> Fitter::losses_by(std::size_t trial) const {
  const CalibrationData seen = unseen_by(trial);
  std::vector<double> losses =
      losses_of(context_, seen, calibrate(context_, seen, CalibrationSize::kTemperature));
  for (std::size_t i = 0; i < seen.weights.size(); ++i) losses[i] *= seen.weights[i];
  return losses;
}

// `other` if its loss is less by more than chance: by a standard error of the mean difference. Of
// few texts it is often less by luck.
std::size_t Fitter::clearly_better(std::size_t usual, std::size_t other) const {
  if (usual == trials_.size() || other == trials_.size()) return std::min(usual, other);
  const std::vector<double> of_usual = losses_by(usual), of_other = losses_by(other);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < of_usual.size(); ++i) {
    const double difference = of_usual[i] - of_other[i];
    sum += difference;
    squares += difference * difference;
  }
  const double n = static_cast<double>(of_usual.size());
  return sum > std::sqrt(std::max(squares - sum * sum / n, 0.0)) ? other : usual;
}

// The trial with the least loss; but ratios, unless it is clearly less without them, and likewise
// words, by which people understand a model.
std::size_t Fitter::choose() const {
  const auto best_of = [&](bool ratios, bool without_words) {
    std::size_t best = trials_.size();
    for (std::size_t t = 0; t < trials_.size(); ++t) {
      const LinearTrial& trial = trials_[t];
      if (has_ratios(trial.weighting) != ratios || trial.without_words != without_words) continue;
      if (best == trials_.size() || trial.loss < trials_[best].loss) best = t;
    }
    return best;
  };
  const auto best_weighting = [&](bool without_words) {
    return clearly_better(best_of(true, without_words), best_of(false, without_words));
  };
  return clearly_better(best_weighting(false), best_weighting(true));
}

// All outputs by the folds for calibration, for the trial that was chosen. The losses of the others
// change in proportion.
bool Fitter::measure_all(std::size_t trial) {
  if (calibration_folds_ > folds_) {
    folds_ = calibration_folds_;
    fold_ = draw_folds(data_, folds_, seed_);
  }
  std::vector<index> all(static_cast<std::size_t>(outputs_));
  std::iota(all.begin(), all.end(), index{0});
  const index lanes = lanes_for(outputs_, folds_), groups = (outputs_ + lanes - 1) / lanes;
  std::vector<float> unseen(static_cast<std::size_t>(texts() * outputs_));
  context_.for_each_in_order(folds_ * groups, [&](index item) {
    PathState state;
    const index first = item % groups * lanes;
    measure(item / groups, part_of(all, first, lanes), trial, state,
            std::span(unseen).subspan(static_cast<std::size_t>(first)), outputs_);
  });
  if (stop_) return false;
  unseen_[trial] = std::move(unseen);
  measured_ = std::move(all);
  const CalibrationData seen = unseen_by(trial);
  const double loss =
      loss_of(context_, seen, calibrate(context_, seen, CalibrationSize::kTemperature));
  const double share = loss / trials_[trial].loss;
  for (LinearTrial& one : trials_) one.loss *= share;
  return true;
}

// Forgets the trials behind the end of their path.
void Fitter::keep_measured() {
  std::size_t kept = 0;
  for (std::size_t t = 0; t < trials_.size(); ++t) {
    if (trials_[t].loss == kNotMeasured) continue;
    trials_[kept] = trials_[t];
    if (kept != t) unseen_[kept] = std::move(unseen_[t]);
    ++kept;
  }
  trials_.resize(kept);
  unseen_.resize(kept);
}

// The model of all texts, calibrated.
std::optional<LinearWeights> Fitter::solve_all(const LinearTrial& setting, const Calibration& by) {
  const auto columns = static_cast<std::size_t>(data_.features.columns());
  const auto K = static_cast<std::size_t>(outputs_);
  LinearWeights weights{.task = data_.task, .classes = data_.classes};
  weights.weights.resize(columns * K);
  std::vector<index> all(K);
  std::iota(all.begin(), all.end(), index{0});
  const index lanes = lanes_for(outputs_, 1);
  context_.for_each_in_order((outputs_ + lanes - 1) / lanes, [&](index group) {
    const std::span<const index> outputs = part_of(all, group * lanes, lanes);
    PathState state{.problems = problems_of(setting, outputs, -1)};
    if (!solve(state, setting.c)) return;
    for (std::size_t f = 0; f < columns; ++f) {
      for (std::size_t l = 0; l < outputs.size(); ++l) {
        const auto k = static_cast<std::size_t>(outputs[l]);
        const double shift = f + 1 == columns ? by.shifts[k] : 0;
        const double weight = state.weight(static_cast<index>(f), l);
        weights.weights[f * K + k] = static_cast<float>(by.factors[k] * weight + shift);
      }
    }
  });
  if (stop_) return std::nullopt;
  for (const double prior : seen_.prior) weights.prior.push_back(static_cast<float>(prior));
  return weights;
}

std::vector<double> Fitter::priors() const {
  std::vector<double> priors(static_cast<std::size_t>(outputs_));
  if (is_number()) return priors;
  double all = 0;
  for (index k = 0; k < outputs_; ++k) {
    double with = 0.5, without = 0.5;
    const std::vector<float> y = targets(k);
    for (index i = 0; i < texts(); ++i) {
      const bool has = y[static_cast<std::size_t>(i)] > 0;
      (has ? with : without) += weight_of(i, k, has);
    }
    priors[static_cast<std::size_t>(k)] =
        data_.task == ClassifierTask::kSingleLabel ? with : std::log(with / without);
    all += with;
  }
  if (data_.task == ClassifierTask::kSingleLabel) {
    for (double& prior : priors) prior = std::log(prior / all);
  }
  return priors;
}

// Takes what is the same in the calibration of all trials.
void Fitter::take_texts() {
  seen_.task = data_.task;
  seen_.outputs = outputs_;
  seen_.prior = priors();
  seen_.interrupted = [this] { return interrupted(); };
  for (index i = 0; i < texts(); ++i) {
    seen_.lengths.push_back(data_.rows.row(i).values.back());  // in the column of the bias
    if (!data_.class_weights.empty() && data_.task != ClassifierTask::kMultiLabel) {
      seen_.weights.push_back(weight_of(i, 0, true));
    }
  }
}

// Isotonic maps. What they make of `unseen` is by maps of the other folds, since steps can follow
// the texts that they come from.
std::vector<IsotonicMap> Fitter::calibrate_further(const Calibration& by,
                                                   std::vector<float>& unseen) {
  for (std::int32_t fold = 0; fold < static_cast<std::int32_t>(folds_); ++fold) {
    const std::vector<float> mapped = predictions_of(
        context_, seen_, by, data_.classes, isotonic_maps(context_, seen_, by, fold_, fold));
    for (index i = 0; i < texts(); ++i) {
      if (fold_[static_cast<std::size_t>(i)] != fold) continue;
      std::copy_n(mapped.begin() + i * data_.classes, data_.classes,
                  unseen.begin() + i * data_.classes);
    }
  }
  return isotonic_maps(context_, seen_, by);
}

std::optional<LinearFit> Fitter::fit() {
  list_trials();
  if (folds_ == 0) trials_.resize(1);
  list_measured();
  to_do_ = static_cast<index>(trials_.size() * measured_.size()) * folds_ + outputs_;
  if (measures_again()) to_do_ += outputs_ * calibration_folds_;
  std::size_t chosen = 0;
  Calibration calibration{std::vector<double>(static_cast<std::size_t>(outputs_), 1),
                          std::vector<double>(static_cast<std::size_t>(outputs_), 0)};
  std::vector<float> unseen;
  std::vector<IsotonicMap> isotonic;
  if (folds_ > 0) {
    if (!cross_validate()) return std::nullopt;
    chosen = choose();
    if (measures_again() && !measure_all(chosen)) return std::nullopt;
    seen_.values = unseen_[chosen];
    if (options_.calibrate != CalibrationKind::kNone) {
      calibration = calibrate(context_, seen_,
                              options_.calibrate == CalibrationKind::kTemperature
                                  ? CalibrationSize::kTemperature
                                  : CalibrationSize::kWhole);
    }
    unseen = predictions_of(context_, seen_, calibration, data_.classes);
    if (options_.calibrate == CalibrationKind::kIsotonic && !is_number()) {
      isotonic = calibrate_further(calibration, unseen);
    }
  }
  std::optional<LinearWeights> weights = solve_all(trials_[chosen], calibration);
  if (!weights) return std::nullopt;
  weights->isotonic = std::move(isotonic);
  // Who weights the classes has said what counts, unless a rule says it as well.
  const ThresholdRule rule = parse_threshold(options_.threshold);
  const bool is_f1 = rule.goal == ThresholdGoal::kF1;
  const bool is_found = folds_ > 0 && (!is_f1 || data_.class_weights.empty());
  if (is_found || rule.goal == ThresholdGoal::kGiven) {
    weights->thresholds =
        find_thresholds(context_, data_.task, unseen, data_.truth, data_.classes,
                        {.rule = rule, .interrupted = [this] { return interrupted(); }});
    if (stop_) return std::nullopt;
  }
  return LinearFit{.model = {data_.features, std::move(*weights)},
                   .trials = std::move(trials_),
                   .chosen = chosen,
                   .unseen = std::move(unseen),
                   .fold = std::move(fold_)};
}

}  // namespace

std::optional<LinearFit> fit_linear(const Context& context, const LinearData& data,
                                    const LinearFitOptions& options, std::uint64_t seed,
                                    const FitObserver& observer) {
  check(data.rows.rows() == data.truth.size() &&
            static_cast<index>(data.texts.size()) == data.truth.size(),
        "linear fit: {} rows, {} texts and {} labels", data.rows.rows(), data.texts.size(),
        data.truth.size());
  return Fitter(context, data, options, seed, observer).fit();
}

}  // namespace fovea
