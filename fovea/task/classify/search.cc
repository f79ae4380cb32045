// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/search.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/file.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/random.h"
#include "fovea/config/json.h"
#include "fovea/data/epoch_order.h"
#include "fovea/linear/decide.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/classification.h"
#include "fovea/metrics/probabilities.h"
#include "fovea/task/classify/linear.h"
#include "fovea/task/classify/run.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/options.h"
#include "fovea/train/run_state.h"
#include "fovea/train/run_summary.h"

namespace fovea {

namespace {

std::string line_of(const SearchTrial& trial) {
  Json::Object object = json_of(trial).object();
  Json::Object metrics;
  for (const MetricValue& one : trial.metrics) metrics.emplace_back(one.name, one.value);
  object.emplace_back("metrics", std::move(metrics));
  return Json(std::move(object)).line();
}

SearchTrial trial_of(std::string_view line, const std::string& where) {
  Json::Object object = parse_json(line, {where}).object();
  SearchTrial trial;
  std::erase_if(object, [&](const auto& member) {
    if (member.first != "metrics") return false;
    for (const auto& [name, value] : member.second.object()) {
      trial.metrics.push_back({name, value.number()});
    }
    return true;
  });
  set_from_json(fields_of(trial), Json(std::move(object)), {where});
  return trial;
}

// Whether a is better: on a higher rung or, on the same, by what is compared. A trial that failed
// is the worst.
bool is_better(const SearchTrial& a, const SearchTrial& b, std::string_view compared) {
  const double of_a = goodness_of(a, compared), of_b = goodness_of(b, compared);
  if (std::isnan(of_a) || std::isnan(of_b)) return std::isnan(of_b) && !std::isnan(of_a);
  return a.rung != b.rung ? a.rung > b.rung : of_a > of_b;
}

}  // namespace

SearchBudget parse_budget(std::string_view text) {
  SearchBudget budget;
  if (text.ends_with('t')) {
    const char* const end = text.data() + text.size() - 1;
    const auto [rest, error] = std::from_chars(text.data(), end, budget.trials);
    if (error == std::errc{} && rest == end && budget.trials > 0) return budget;
  } else if (text.ends_with('s') || text.ends_with('m') || text.ends_with('h')) {
    budget.seconds = parse_length(text, "--auto").value * 3600;
    return budget;
  }
  fail_option("auto", text, "a time (90s, 10m, 2h) or a number of trials (40t)");
}

SearchRecords read_trials(const std::filesystem::path& folder) {
  SearchRecords records;
  const std::filesystem::path file = folder / kTrialsName;
  const std::string text = read_run_file(file);
  std::string_view rest = text;
  for (bool is_first = true; !rest.empty(); is_first = false) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;  // it was being written
    try {
      if (is_first) {
        from_json(rest.substr(0, end), {file.string()}, records.head);
      } else {
        records.trials.push_back(trial_of(rest.substr(0, end), file.string()));
      }
    } catch (const Error&) {
      break;
    }
    rest.remove_prefix(end + 1);
  }
  return records;
}

void write_trials(const std::filesystem::path& folder, const SearchRecords& records) {
  std::string text = to_json_line(records.head) + "\n";
  for (const SearchTrial& trial : records.trials) text += line_of(trial) + "\n";
  write_file_atomically(folder / kTrialsName, text);
}

void append_trial(const std::filesystem::path& folder, const SearchTrial& trial) {
  append_line(folder / kTrialsName, line_of(trial));
}

std::string_view compared_by(ClassifierMetric metric, ClassifierTask task, bool is_uneven) {
  const std::string_view measure = measured_by(metric, task, is_uneven);
  return metric == ClassifierMetric::kAuto && measure != "macro_f1" ? "loss" : measure;
}

double goodness_of(const SearchTrial& trial, std::string_view compared) {
  if (std::isnan(trial.loss)) return trial.loss;
  return goodness_by(compared, trial.loss, trial.metrics);
}

std::size_t best_trial(std::span<const SearchTrial> trials, std::string_view compared) {
  const auto best = std::min_element(
      trials.begin(), trials.end(),
      [&](const SearchTrial& a, const SearchTrial& b) { return is_better(a, b, compared); });
  if (best == trials.end() || std::isnan(goodness_of(*best, compared))) return trials.size();
  const SearchTrial& usual = trials.front();
  const double ahead = goodness_of(*best, compared) - goodness_of(usual, compared);
  if (usual.rung == best->rung && ahead <= usual.error) return 0;
  return static_cast<std::size_t>(best - trials.begin());
}

std::string trial_table(std::span<const SearchTrial> trials, std::string_view compared,
                        std::size_t most) {
  std::vector<std::size_t> order(trials.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return is_better(trials[a], trials[b], compared);
  });
  std::string text = "trial   texts    loss  ";
  const std::size_t named = order.empty() ? 0 : trials[order[0]].metrics.size();
  for (std::size_t m = 0; m < named; ++m) {
    text += fmt::format("{:>9}  ", trials[order[0]].metrics[m].name);
  }
  text += "seconds  options\n";
  for (std::size_t n = 0; n < std::min(most, order.size()); ++n) {
    const SearchTrial& trial = trials[order[n]];
    text += fmt::format("{:>5}  {:>6}  {:>6.4f}  ", trial.trial, trial.rows, trial.loss);
    for (std::size_t m = 0; m < named; ++m) {
      text += m < trial.metrics.size() ? fmt::format("{:>9.4f}  ", trial.metrics[m].value)
                                       : fmt::format("{:>9}  ", "");
    }
    text += fmt::format("{:>7.1f}  {}{}{}\n", trial.seconds, trial.options,
                        trial.found.empty() ? "" : " ", trial.found);
  }
  return text;
}

namespace {

namespace fs = std::filesystem;

constexpr index kThird = 3;            // of the settings of a rung the next one has so many
constexpr index kFewestOnRung = 1000;  // texts
constexpr index kMostRungs = 4;
constexpr index kFewestForNetworks = 2000;   // texts
constexpr double kSecondsForNetworks = 300;  // of the budget
constexpr double kShareOfTrial = 1.0 / 6;    // of the budget: a network that takes longer fails
constexpr double kHeldBack = 0.1;            // where networks are tried without --valid
constexpr std::string_view kScratchName = "trial.tmp";

std::vector<std::string> words_of(std::string_view options) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < options.size();) {
    const std::size_t end = std::min(options.find(' ', begin), options.size());
    if (end > begin) words.emplace_back(options.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// An option as it is written: "--lr 0.001", or "--no-lower", which says --lower false.
struct SaidOption {
  std::string name, value, text;
};

std::vector<SaidOption> said_in(std::string_view options) {
  std::vector<SaidOption> said;
  const std::vector<std::string> words = words_of(options);
  for (std::size_t w = 0; w < words.size(); ++w) {
    constexpr std::string_view kNo = "--no-";
    if (words[w].starts_with(kNo)) {
      said.push_back({"--" + words[w].substr(kNo.size()), "false", words[w]});
      continue;
    }
    if (w + 1 == words.size()) {
      fail(ErrorCode::kModelDamaged, "{}: expected options, got {}", kTrialsName, options);
    }
    said.push_back({words[w], words[w + 1], words[w] + " " + words[w + 1]});
    ++w;
  }
  return said;
}

std::vector<Field>::iterator find_option(std::vector<Field>& fields, const std::string& name) {
  return std::find_if(fields.begin(), fields.end(), [&](const Field& one) {
    return one.traits.is_option && option_name(one.name) == name;
  });
}

void set_options(ClassifierSettings& settings, std::string_view options) {
  std::vector<Field> fields = fields_of(settings);
  for (const SaidOption& said : said_in(options)) {
    const auto field = find_option(fields, said.name);
    if (field == fields.end()) {
      fail(ErrorCode::kModelDamaged, "{}: expected options, got {}", kTrialsName, options);
    }
    set_from_text(*field, said.value, said.name);
  }
}

// All of a with all of b behind each.
std::vector<std::string> times(const std::vector<std::string>& a,
                               const std::vector<std::string>& b) {
  std::vector<std::string> all;
  for (const std::string& first : a) {
    for (const std::string& second : b) {
      all.push_back(second.empty() ? first : fmt::format("{} {}", first, second));
    }
  }
  return all;
}

std::vector<std::string> values(std::string_view option, std::initializer_list<const char*> of) {
  std::vector<std::string> all;
  for (const char* value : of) all.push_back(fmt::format("{} {}", option, value));
  return all;
}

std::vector<std::string> linear_settings(const ClassifierSettings& s, bool has_blanks) {
  const bool is_number = s.text.regression;
  const auto weightings = is_number
                              ? values("--weighting", {"tfidf", "binary"})
                              : values("--weighting", {"tfidf", "ratio", "binary", "binary-ratio"});
  std::vector<std::string> lengths;
  if (has_blanks) {
    lengths = times(values("--word-ngrams", {"1", "1-2", "1-3"}),
                    values("--char-ngrams", {"0", "1-3", "2-5", "3-6", "2-6"}));
    for (std::string& more :
         times({"--word-ngrams 0"}, values("--char-ngrams", {"1-4", "2-5", "3-6"}))) {
      lengths.push_back(std::move(more));
    }
  } else {
    lengths =
        times({"--word-ngrams 0"}, values("--char-ngrams", {"1", "1-2", "1-3", "1-4", "2-4"}));
  }
  return times(
      times(times({"--model linear"}, lengths), weightings),
      has_blanks ? std::vector<std::string>{"", "--no-lower"} : std::vector<std::string>{""});
}

std::vector<std::string> bag_settings() {
  return times(times(times(times({"--model bag"}, values("--ngrams", {"1", "2", "3"})),
                           values("--width", {"64", "128"})),
                     values("--dropout", {"0.3", "0.5", "0.8"})),
               values("--lr", {"0.001", "0.002", "0.004"}));
}

std::vector<std::string> encoder_settings() {
  const std::vector<std::string> encoders = {
      "--encoder conv3 --pooling max", "--encoder conv5 --pooling max", "--encoder textcnn:3,4,5",
      "--encoder bigru --pooling attention"};
  return times(times(times(times({"--model encoder"}, encoders), values("--width", {"64", "128"})),
                     values("--dropout", {"0.2", "0.5"})),
               values("--lr", {"0.001", "0.002"}));
}

index rung_count(index rows) {
  index rungs = 1;
  for (index least = rows / kThird; least >= kFewestOnRung && rungs < kMostRungs; least /= kThird) {
    ++rungs;
  }
  return rungs;
}

index count_training(const LabelledSet& set) {
  return std::count(set.validates.begin(), set.validates.end(), false);
}

// Watches a trial: it ends where the time is up, or where the user stops the search.
class TrialWatch final : public TrainingObserver {
 public:
  TrialWatch(TrainingObserver& outer, std::string what, double done, double deadline)
      : outer_(outer), what_(std::move(what)), done_(done), deadline_(deadline) {}

  void works(std::string_view, double) override { show(); }
  void updated(const UpdateRecord&, double) override { show(); }
  Request request() override {
    if (outer_.request() == Request::kStop) user_stopped_ = true;
    const bool is_late = monotonic_seconds() >= deadline_;
    return user_stopped_ || is_late ? Request::kStop : Request::kNone;
  }
  bool user_stopped() const { return user_stopped_; }

 private:
  void show() { outer_.works(what_, done_); }

  TrainingObserver& outer_;
  const std::string what_;
  const double done_, deadline_;
  bool user_stopped_ = false;
};

// The settings that a training chose by itself, as options; `given` says auto.
std::string options_found(const LinearFit& fit, const LinearFitOptions& given,
                          const LinearFitOptions& is) {
  const LinearTrial& chosen = fit.trials[fit.chosen];
  std::vector<std::string> options;
  const auto found = [&](std::string_view name, std::string_view value) {
    options.push_back(fmt::format("--{} {}", name, value));
  };
  if (given.word_ngrams == "auto") {
    found("word-ngrams", chosen.without_words ? "0" : is.word_ngrams);
  }
  if (given.char_ngrams == "auto") found("char-ngrams", is.char_ngrams);
  if (given.weighting == NgramWeighting::kAuto) found("weighting", to_string(chosen.weighting));
  if (given.c == 0) found("regularization-c", fmt::format("{}", chosen.c));
  return fmt::format("{}", fmt::join(options, " "));
}

// Half the width of the 95 % interval of macro F1, by bootstrap over the texts; of several labels
// 0.
double macro_f1_error(const Context& context, const ClassifierRun& run, const MeasuredFit& done) {
  const ClassifierConfig& model = run.settings.model;
  if (model.task == ClassifierTask::kMultiLabel) return 0;
  const KnownTexts& held = run.linear->validation;
  const Examples& truth = held.texts.empty() ? run.linear->training.truth : held.truth;
  const auto chosen =
      most_likely_classes<float>({done.decided.data(), truth.size(), model.classes});
  const Interval macro =
      classification_intervals(context, confusion_matrix(truth.labels, chosen, model.classes))
          .macro.f1;
  return (macro.high - macro.low) / 2;
}

class Searcher {
 public:
  Searcher(const Context& context, const ClassifierSettings& settings, const LabelledSet& set,
           fs::path folder, TrainingObserver& observer)
      : context_(context),
        settings_(settings),
        set_(set),
        folder_(std::move(folder)),
        observer_(observer),
        budget_(parse_budget(settings.search.budget)) {}

  SearchResult run(bool resume);

 private:
  SearchHead head();
  std::string_view compared() const;
  bool measure_defaults();
  std::string config_of_search() const;
  void begin(bool resume);
  void list_settings();
  std::vector<std::string> drawn(const std::vector<std::string>& all, std::uint64_t stream) const;
  std::optional<std::string> without_given(const std::string& options) const;
  bool measure_round(index round, std::vector<std::string> members);
  bool measure(SearchTrial trial);
  bool is_over() const;
  double spent() const { return spent_ + monotonic_seconds() - began_; }
  ClassifierSettings settings_of(const SearchTrial& trial) const;
  bool train(SearchTrial& trial, TrialWatch& watch);
  bool train_linear(const ClassifierRun& run, SearchTrial& trial, TrialWatch& watch) const;
  bool train_network(const ClassifierRun& run, SearchTrial& trial, TrialWatch& watch) const;

  const Context context_;
  const ClassifierSettings& settings_;
  LabelledSet set_;
  const fs::path folder_;
  TrainingObserver& observer_;
  const SearchBudget budget_;
  const double began_ = monotonic_seconds();
  double spent_ = 0;  // by the processes before
  index rungs_ = 1;
  std::string_view compared_ = "loss";
  bool has_networks_ = false, stopped_ = false;
  std::vector<std::string> order_;  // of the settings
  std::vector<SearchTrial> known_;  // of the processes before
  std::vector<SearchTrial> trials_;
};

// The options without those that the user has set: these stay as they are. Nothing for another
// model than that of the user.
std::optional<std::string> Searcher::without_given(const std::string& options) const {
  ClassifierSettings given = settings_, tried = settings_, usual(settings_.text.input);
  set_options(tried, options);
  const ClassifierModel kind = settings_.model.kind;
  if (kind != ClassifierModel::kAuto && kind != tried.model.kind) return std::nullopt;
  given.model.kind = ClassifierModel::kAuto;
  std::vector<Field> is = fields_of(given);
  const std::vector<Field> was = fields_of(usual);
  std::vector<std::string> kept;
  for (const SaidOption& said : said_in(options)) {
    const auto at = find_option(is, said.name);
    const auto n = static_cast<std::size_t>(at - is.begin());
    const bool is_given = at != is.end() && value_text(is[n]) != value_text(was[n]);
    if (!is_given) kept.push_back(said.text);
  }
  return fmt::format("{}", fmt::join(kept, " "));
}

// The ones that are left, each once, in an order that is drawn.
std::vector<std::string> Searcher::drawn(const std::vector<std::string>& all,
                                         std::uint64_t stream) const {
  std::vector<std::string> different;
  for (const std::string& options : all) {
    std::optional<std::string> left = without_given(options);
    if (!left || std::find(different.begin(), different.end(), *left) != different.end()) continue;
    different.push_back(std::move(*left));
  }
  std::vector<index> order(different.size());
  std::iota(order.begin(), order.end(), index{0});
  Random random(settings_.recipe.seed, RandomUse::kSeeds, stream);
  shuffle(order, random);
  std::vector<std::string> shuffled;
  for (const index n : order) shuffled.push_back(different[static_cast<std::size_t>(n)]);
  return shuffled;
}

// The defaults come first; every third is a network, where these are tried.
void Searcher::list_settings() {
  using enum ClassifierModel;
  const ClassifierModel kind = settings_.model.kind;
  std::vector<std::string> texts, linear, networks;
  for (std::size_t i = 0; i < set_.table.rows.size(); i += 1 + set_.table.rows.size() / 2000) {
    texts.push_back(set_.table.rows[i].text);
  }
  const auto defaults = [&](std::vector<std::string>& all, std::string_view model) {
    all.insert(all.begin(), fmt::format("--model {}", model));
  };
  if (kind == kAuto || kind == kLinear) {
    const ChosenNgrams usual = choose_ngrams(texts, {}, settings_.text.words, settings_.text.lower);
    linear = drawn(linear_settings(settings_, usual.rules.words.any()), 0);
    defaults(linear, to_string(kLinear));
  }
  if (has_networks_) {
    std::vector<std::string> bags = drawn(bag_settings(), 1),
                             encoders = drawn(encoder_settings(), 2);
    if (kind != kEncoder) defaults(bags, to_string(kBag));
    for (std::size_t n = 0; n < std::max(bags.size(), encoders.size()); ++n) {
      if (n < bags.size()) networks.push_back(bags[n]);
      if (n < encoders.size()) networks.push_back(encoders[n]);
    }
    if (kind == kEncoder && !settings_.model.encoder.empty()) {
      defaults(networks,
               fmt::format("{} --encoder {}", to_string(kEncoder), settings_.model.encoder));
    }
  }
  for (std::size_t l = 0, n = 0; l < linear.size() || n < networks.size();) {
    const bool is_network =
        l >= linear.size() || (order_.size() % kThird == 2 && n < networks.size());
    order_.push_back(is_network ? networks[n++] : linear[l++]);
  }
}

SearchHead Searcher::head() {
  ClassifierSettings given = settings_, usual(settings_.text.input);
  const std::vector<Field> is = fields_of(given), was = fields_of(usual);
  std::string changed;
  for (std::size_t n = 0; n < is.size(); ++n) {
    const bool counts =
        is[n].traits.is_option && !is[n].traits.is_path && is[n].table() != "search";
    if (!counts || value_text(is[n]) == value_text(was[n])) continue;
    changed += fmt::format("{} {} ", option_name(is[n].name), value_text(is[n]));
  }
  return {.data = fingerprint(set_),
          .models = has_networks_ ? "linear,bag,encoder" : "linear",
          .given = changed,
          .compared = std::string(compared_),
          .rows = count_training(set_),
          .rungs = rungs_,
          .seed = static_cast<index>(settings_.recipe.seed)};
}

std::string_view Searcher::compared() const {
  const ClassifierTextOptions& text = settings_.text;
  std::vector<double> texts(static_cast<std::size_t>(set_.labels.size()));
  for (std::size_t i = 0; i < set_.table.rows.size() && !text.regression; ++i) {
    for (const std::string& label : set_.table.rows[i].labels) {
      if (!set_.validates[i]) texts[static_cast<std::size_t>(set_.labels.find(label))] += 1;
    }
  }
  return compared_by(text.metric, task_of(text, set_.labels.size()), are_uneven(texts));
}

// A search that is interrupted has a configuration, too, by which it is resumed.
std::string Searcher::config_of_search() const {
  ClassifierSettings settings = settings_;
  settings.model.task = task_of(settings.text, set_.labels.size());
  settings.model.classes = settings.text.regression ? 1 : set_.labels.size();
  settings.model.vocabulary = kFirstLearnedToken;
  return config_text(settings, {.labels = set_.labels.names()});
}

// Takes what stands in the folder, or begins there.
void Searcher::begin(bool resume) {
  const ClassifierModel kind = settings_.model.kind;
  SearchRecords before = resume ? read_trials(folder_) : SearchRecords{};
  const bool can = budget_.in_time() ? budget_.seconds >= kSecondsForNetworks : true;
  has_networks_ = kind == ClassifierModel::kBag || kind == ClassifierModel::kEncoder;
  if (kind == ClassifierModel::kAuto) {
    // A search that goes on tries the models that it began with, whatever its budget is now.
    has_networks_ = before.head.rows > 0 ? before.head.models != "linear"
                                         : can && count_training(set_) >= kFewestForNetworks;
  }
  const bool validates = std::count(set_.validates.begin(), set_.validates.end(), true) > 0;
  if (has_networks_ && !validates) {
    hold_back(set_, kHeldBack, settings_.text.regression, settings_.recipe.seed);
  }
  rungs_ = rung_count(count_training(set_));
  compared_ = compared();
  SearchHead now = head();
  if (before.head.rows > 0 && !(before.head == now)) {
    throw Error(ErrorCode::kConfig,
                fmt::format("cannot resume: the trials in {} are of a search of other texts or "
                            "options",
                            (folder_ / kTrialsName).string()),
                "give the options and texts that it began with, or train into another folder");
  }
  if (!resume) write_model_files(folder_, {{{"config.json", config_of_search()}}});
  known_ = std::move(before.trials);
  for (const SearchTrial& trial : known_) spent_ += trial.seconds;
  write_trials(folder_, {std::move(now), known_});
}

bool Searcher::is_over() const {
  return static_cast<index>(trials_.size()) >= budget_.trials ||
         (!trials_.empty() && spent() >= budget_.seconds);
}

ClassifierSettings Searcher::settings_of(const SearchTrial& trial) const {
  ClassifierSettings settings = settings_;
  settings.search.budget.clear();
  set_options(settings, trial.options);
  set_options(settings, trial.found);
  const bool is_own =
      settings_.recipe.min_lr != ClassifierSettings(settings_.text.input).recipe.min_lr;
  const bool draws_lr = trial.options.find("--lr ") != std::string::npos;
  if (settings.recipe.min_lr > settings.recipe.lr || (draws_lr && !is_own)) {
    settings.recipe.min_lr = settings.recipe.lr / 10;  // as of a user who gives --lr alone
  }
  if (settings.model.kind != ClassifierModel::kLinear && settings.text.valid_fraction == 0) {
    settings.text.valid_fraction = kHeldBack;
  }
  return settings;
}

bool Searcher::train_linear(const ClassifierRun& run, SearchTrial& trial, TrialWatch& watch) const {
  const std::optional<MeasuredFit> done = fit_measured(context_, run, watch);
  if (!done) return false;
  if (!done->found) {
    trial.failure = "too few texts to validate";
    return true;
  }
  trial.loss = done->found->loss;
  trial.metrics = done->found->metrics;
  if (trials_.empty() && compared_ == "macro_f1")
    trial.error = macro_f1_error(context_, run, *done);
  // Settings that suit a part of the texts need not suit all.
  if (trial.rung == rungs_) {
    trial.found = options_found(done->fit, settings_of(trial).linear, run.settings.linear);
  }
  return true;
}

bool Searcher::train_network(const ClassifierRun& run, SearchTrial& trial,
                             TrialWatch& watch) const {
  const fs::path scratch = folder_ / kScratchName;
  std::error_code error;
  remove_tree(scratch, error);
  create_folder(scratch);
  const TrainResult result = train_classifier(context_, run, scratch, {}, watch);
  const RunSummary summary = run_summary(scratch);
  remove_tree(scratch, error);
  if (result.stopped) return false;
  trial.loss = summary.best_valid_loss;
  trial.metrics = summary.best_valid_metrics;
  return true;
}

// Returns false if it was interrupted.
bool Searcher::train(SearchTrial& trial, TrialWatch& watch) {
  const double share = static_cast<double>(trial.rows) / static_cast<double>(count_training(set_));
  try {
    const ClassifierRun run = prepare_run(
        settings_of(trial), part_of(set_, share, settings_.text.regression, settings_.recipe.seed));
    if (training_memory(context_, run) > static_cast<double>(reachable_memory().bytes)) {
      trial.failure = "it takes more memory than there is";
      return true;
    }
    return run.linear ? train_linear(run, trial, watch) : train_network(run, trial, watch);
  } catch (const Error& error) {
    const ErrorCode code = error.code();
    if (code != ErrorCode::kOutOfMemory && code != ErrorCode::kInputTooSmall &&
        code != ErrorCode::kDiverged) {
      throw;
    }
    trial.failure = error.what();
    return true;
  }
}

// Adds a trial: the known one of its number, or that which is measured now. Returns false where the
// search ends.
bool Searcher::measure(SearchTrial trial) {
  const std::size_t number = trials_.size();
  if (number < known_.size()) {
    const SearchTrial& before = known_[number];
    if (before.options != trial.options || before.rows != trial.rows) {
      fail(ErrorCode::kModelDamaged, "{}: expected {} on {} texts as trial {}, got {} on {}",
           (folder_ / kTrialsName).string(), trial.options, trial.rows, number + 1, before.options,
           before.rows);
    }
    trials_.push_back(before);
    return true;
  }
  if (is_over()) return false;
  const bool is_network = trial.options.find("--model linear") == std::string::npos;
  const double began = monotonic_seconds();
  double deadline =
      trials_.empty() ? std::numeric_limits<double>::infinity() : began + budget_.seconds - spent();
  const double own = began + budget_.seconds * kShareOfTrial;
  const bool is_limited = is_network && own < deadline;
  if (is_limited) deadline = own;
  const double done = budget_.in_time()
                          ? spent() / budget_.seconds
                          : static_cast<double>(number) / static_cast<double>(budget_.trials);
  TrialWatch watch(observer_, fmt::format("trial {}", number + 1), done, deadline);
  if (!train(trial, watch)) {
    stopped_ = watch.user_stopped();
    if (stopped_ || !is_limited) return false;
    trial.failure = fmt::format("it takes more than {:.0f} s", budget_.seconds * kShareOfTrial);
  }
  trial.seconds = monotonic_seconds() - began;
  append_trial(folder_, trial);
  trials_.push_back(std::move(trial));
  if (best_trial(trials_, compared_) + 1 == trials_.size()) {
    const SearchTrial& best = trials_.back();
    observer_.told(fmt::format("trial {}: {} {:.4f} on {} texts, the best so far: {}", best.trial,
                               compared_, std::abs(goodness_of(best, compared_)), best.rows,
                               best.options));
  }
  return true;
}

// The first setting, on all texts, whatever the time.
bool Searcher::measure_defaults() {
  return measure({.trial = 1,
                  .round = 1,
                  .rung = rungs_,
                  .rows = count_training(set_),
                  .options = order_.front()});
}

bool Searcher::measure_round(index round, std::vector<std::string> members) {
  const index all = count_training(set_);
  for (index rung = 1; rung <= rungs_ && !members.empty(); ++rung) {
    index rows = all;
    for (index above = rung; above < rungs_; ++above) rows /= kThird;
    const std::size_t first = trials_.size();
    for (const std::string& options : members) {
      if (!measure({.trial = static_cast<index>(trials_.size()) + 1,
                    .round = round,
                    .rung = rung,
                    .rows = rows,
                    .options = options})) {
        return false;
      }
    }
    std::vector<SearchTrial> own(trials_.begin() + static_cast<std::ptrdiff_t>(first),
                                 trials_.end());
    std::stable_sort(own.begin(), own.end(), [&](const SearchTrial& a, const SearchTrial& b) {
      return is_better(a, b, compared_);
    });
    const auto kept = (own.size() + kThird - 1) / kThird;
    members.clear();
    for (std::size_t n = 0; n < kept; ++n) {
      if (!std::isnan(goodness_of(own[n], compared_))) members.push_back(own[n].options);
    }
  }
  return true;
}

// The data say these again when the choice is trained.
void forget_found(ClassifierSettings& settings) {
  const ClassifierConfig usual = ClassifierSettings(settings.text.input).model;
  settings.model.task = usual.task;
  settings.model.classes = usual.classes;
  settings.model.vocabulary = usual.vocabulary;
  settings.model.block = usual.block;
}

SearchResult Searcher::run(bool resume) {
  begin(resume);
  list_settings();
  std::size_t size = 1;
  for (index rung = 1; rung < rungs_; ++rung) size *= kThird;
  const bool goes_on = !order_.empty() && measure_defaults();
  index round = 1;
  for (std::size_t next = 1; goes_on && next < order_.size(); next += size, ++round) {
    const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(next);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(size, order_.size() - next));
    if (!measure_round(round, {begin, end})) break;
  }
  std::error_code error;  // what a killed process has left
  remove_tree(folder_ / kScratchName, error);
  SearchResult result;
  result.compared = compared_;
  result.best = best_trial(trials_, compared_);
  result.stopped = stopped_;
  result.settings =
      settings_of(result.best < trials_.size() ? trials_[result.best] : SearchTrial{});
  forget_found(result.settings);
  choose_model(result.settings);
  result.trials = std::move(trials_);
  return result;
}

}  // namespace

ClassifierSearch::ClassifierSearch(const ClassifierSettings& settings) : settings_(settings) {
  check_options(settings_);
  set_ = read_labelled_set(settings_.text, settings_.recipe.seed);
}

SearchResult ClassifierSearch::run(const Context& context, const fs::path& folder, bool resume,
                                   TrainingObserver& observer) const {
  return Searcher(context, settings_, set_, folder, observer).run(resume);
}

}  // namespace fovea
