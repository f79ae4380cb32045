// SPDX-License-Identifier: Apache-2.0
// fovea train classify, fovea train pairs: train a classifier on labelled texts, or on pairs of
// them.
#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/run_training.h"
#include "fovea/base/words.h"
#include "fovea/model/layer_table.h"
#include "fovea/report/progress.h"
#include "fovea/task/classify/run.h"
#include "fovea/task/classify/search.h"

namespace fovea::cli {

namespace {

std::string classify_epilog() {
  return epilog_of(
      {.examples =
           R"(  fovea train classify --train reviews.tsv -o model    labels and columns are found, the rest has defaults
  fovea train classify --train a.csv --valid b.csv --text-column body --label-column stars -o model
  fovea train classify --train tags.jsonl --multi-label --class-weights balanced -o model
  fovea train classify --train grades.csv --regression -o model
  fovea train classify --train reviews.tsv --encoder conv3,bilstm --pooling attention -o model
  fovea train classify --base minilm --train reviews.tsv -o model   a pretrained encoder, on your texts
  fovea train classify --input npz --train gestures.npz -o model
  fovea train classify --resume -o model               go on after an interruption)",
       .data =
           "The texts come as TSV, CSV, JSON lines or fastText lines, packed by gzip or zstd or "
           "not, by their name or content. The labels are those of the texts to train on, in "
           "their natural order.",
       .when = "With --input npz",
       .defaults = other_defaults(ClassifierSettings(InputKind::kText),
                                  ClassifierSettings(InputKind::kNpz), "input")});
}

std::string pairs_epilog() {
  return epilog_of(
      {.examples =
           R"(  fovea train pairs --train snli.jsonl --label-column gold_label -o entailment
  fovea train pairs --train sts.tsv --regression -o similarity
  fovea train pairs --train a.csv --valid b.csv --text-column question --second-column answer -o model
  fovea train pairs --train pairs.tsv --pair-encoder cross --encoder attention:layers=2 -o model
  fovea train pairs --resume -o model                  go on after an interruption)",
       .data =
           "The pairs come as TSV, CSV or JSON lines with two columns of texts, packed by gzip or "
           "zstd or not. Columns of usual names are found: sentence1 and sentence2, premise and "
           "hypothesis, question and answer, query and passage. All else is as in train "
           "classify."});
}

constexpr std::size_t kMostShown = 10;

// What is compared on the highest rung, as far as it was the best so far: "0.3901 (trial 1)".
std::string best_so_far(std::span<const SearchTrial> trials, std::string_view compared,
                        index rung) {
  std::string text;
  double best = -std::numeric_limits<double>::infinity();
  for (const SearchTrial& trial : trials) {
    const double own = goodness_of(trial, compared);
    if (trial.rung != rung || !(own > best)) continue;
    best = own;
    text +=
        fmt::format("{}{:.4f} (trial {})", text.empty() ? "" : ", ", std::abs(own), trial.trial);
  }
  return text;
}

// "of the lowest loss of 5": why a trial was chosen.
std::string why_chosen(const SearchResult& result, index of) {
  const std::string_view by = result.compared;
  const SearchTrial& usual = result.trials.front();
  if (result.best == 0 && usual.error > 0) {
    return fmt::format(
        "the defaults, since no {} of {} is higher by more than half of their 95 % interval "
        "({:.4f})",
        by, of, usual.error);
  }
  return fmt::format("of the {} {} of {}", by == "loss" || by == "rmse" ? "lowest" : "highest", by,
                     of);
}

// Lines: the best trials, the best so far over the trials, and what was chosen and why.
std::string search_report(const SearchResult& result) {
  const std::vector<SearchTrial>& trials = result.trials;
  if (result.best >= trials.size()) {
    return "the search found nothing better in its time: the defaults are trained\n";
  }
  const SearchTrial& chosen = trials[result.best];
  double seconds = 0;
  index on_all = 0;
  for (const SearchTrial& trial : trials) {
    seconds += trial.seconds;
    on_all += trial.rung == chosen.rung ? 1 : 0;
  }
  std::string text = trial_table(trials, result.compared, kMostShown);
  if (trials.size() > kMostShown) {
    text += fmt::format("{} more trials: {}\n", trials.size() - kMostShown, kTrialsName);
  }
  text += fmt::format("best {} so far, on {} texts: {}\n", result.compared, chosen.rows,
                      best_so_far(trials, result.compared, chosen.rung));
  text += fmt::format("chosen: trial {}, {} on {} texts ({} trials in {}): {}", chosen.trial,
                      why_chosen(result, on_all), chosen.rows, trials.size(),
                      format_duration(seconds), chosen.options);
  if (!chosen.found.empty()) text += " " + chosen.found;
  return text + "\n";
}

// The default of --pooling is not that of a TextCNN.
void take_pooling(ClassifierConfig& model, const Said& said) {
  if (model.encoder.empty() || model.pooling == PoolingKind::kMax ||
      !parse_encoder(model.encoder).back()[0].kind->is_last) {
    return;
  }
  if (said.has("model.pooling")) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--pooling {}: textcnn in --encoder takes the maximum over time",
                            to_string(model.pooling)),
                "leave --pooling out, or take another --encoder, such as conv3");
  }
  model.pooling = PoolingKind::kMax;
}

// Cross-validation measures a linear model, so no text has to be held back.
void take_model(ClassifierSettings& settings, const Said& said) {
  choose_model(settings);
  const bool may_be_linear = settings.model.kind == ClassifierModel::kLinear ||
                             settings.model.kind == ClassifierModel::kAuto;
  if (may_be_linear && !said.has("text.valid_fraction")) settings.text.valid_fraction = 0;
}

class ClassifierTraining : public TrainingWithVectors<ClassifierSettings, ClassifierRun> {
 public:
  explicit ClassifierTraining(InputKind input = InputKind::kText) : input_(input) {}

  std::string_view command() const override {
    return input_ == InputKind::kPairs ? "train pairs" : "train classify";
  }
  std::string_view unit() const override { return words_of(settings_.text.input).entry; }
  std::string_view row() const override { return words_of(settings_.text.input).row; }
  std::string_view sizes() const override {
    return solves() ? "set of n-grams: --word-ngrams, --char-ngrams"
                    : "--batch-size, --max-length, --width or --buckets";
  }
  bool solves() const override { return run_.linear != nullptr; }
  // A linear model has a weight for each n-gram and label.
  std::string_view largest_option(const Context& context, index checkpoint_bytes) override {
    constexpr std::size_t kMany = 1000;
    if (solves() && run_.outputs.labels.size() > kMany) return "number of labels";
    return TrainingWithVectors::largest_option(context, checkpoint_bytes);
  }

  bool searches() const override { return !settings_.search.budget.empty(); }
  void prepare_search() override { search_.emplace(settings_); }
  std::optional<std::string> search(const Context& context, const std::filesystem::path& folder,
                                    bool resume, TrainingObserver& observer) override {
    SearchResult result = search_->run(context, folder, resume, observer);
    search_.reset();
    if (result.stopped) return std::nullopt;
    settings_ = result.settings;
    return search_report(result);
  }

  std::vector<std::string> description() const override {
    if (run_.linear != nullptr) return linear_description();
    if (run_.settings.text.input == InputKind::kNpz) return frame_description();
    return {fmt::format("{}s: {} to train on, {} to validate on, at most {} tokens each",
                        words_of(run_.settings.text.input).entry, run_.training->examples().size(),
                        run_.validation ? run_.validation->examples().size() : 0,
                        run_.settings.text.max_length),
            fmt::format("vocabulary of {} tokens, {}", run_.settings.model.vocabulary, updates())};
  }

  std::vector<std::string> findings() const override {
    std::vector<std::string> lines =
        notices_of_uses(run_.uses->uses, run_.outputs.labels, "validation");
    lines.insert(lines.end(), run_.uses->more.begin(), run_.uses->more.end());
    return lines;
  }

  TrainResult train(const Context& context, const std::filesystem::path& folder, StartAt start,
                    TrainingObserver& observer) const override {
    return train_classifier(context, run_, folder, std::move(start), observer);
  }

 private:
  ClassifierSettings settings_in(const std::string& config, const std::string& name) override {
    return settings_of_file(classifier_config_from_text(config, name));
  }
  ClassifierSettings defaults() const override { return ClassifierSettings(input_); }
  ClassifierSettings usual(const ClassifierSettings& given) const override {
    ClassifierSettings settings(given.text.input);
    settings.from.lora = given.from.lora;
    if (!given.from.base.empty()) apply_base_recipe(settings);
    return settings;
  }
  bool hides(const Field& field) const override {
    const FieldNeeds& needs = field.traits.needs;
    const bool pairs = input_ == InputKind::kPairs;
    // Pairs have no linear models, and so no choice of one.
    if (needs.fields == "model" || field.name == "model.model") return pairs;
    if (needs.fields != "input") return pairs && field.name == "text.input";
    return pairs ? !has_word(needs.values, '|', "pairs") : needs.values == "pairs";
  }
  void complete(ClassifierSettings& settings, const Said& said) const override {
    if (!said.resumes && !settings.from.base.empty()) return take_base(settings, said.set);
    take_pooling(settings.model, said);
    if (!said.resumes) {
      const bool sized = said.has("model.width");
      if (!settings.text.embeddings.empty() && !sized) settings.model.width = 0;  // the vectors'
      take_model(settings, said);
    }
    require_input(settings.text.input);
  }

  ClassifierRun run_with(const StoredRun* stored, RunWeights weights) const override {
    std::optional<TokenizerData> known;
    if (has_tokenizer(settings_) || settings_.model.has_base()) known = tokenizer_data_of(stored);
    return prepare_run(settings_, std::move(known), weights);
  }

  // A run of pairs has its own command, which has its defaults.
  void require_input(InputKind given) const {
    const bool pairs = given == InputKind::kPairs;
    if (pairs == (input_ == InputKind::kPairs)) return;
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: expected {}, got --input {}", command(),
                            pairs ? "texts or numbers" : "pairs of texts", to_string(given)),
                pairs ? "fovea train pairs" : "fovea train classify");
  }

  std::vector<std::string> linear_description() const {
    return {fmt::format("texts: {} to train on, {} to validate on", run_.texts_to_train(),
                        run_.linear->validation.truth.size())};
  }

  std::vector<std::string> frame_description() const {
    const ClassifierConfig& model = run_.settings.model;
    return {fmt::format("samples: {} to train on, {} to validate on, at most {} time steps each",
                        run_.training->examples().size(),
                        run_.validation ? run_.validation->examples().size() : 0,
                        run_.settings.text.max_length),
            fmt::format("{}{} features, {}",
                        model.joints > 0 ? fmt::format("{} joints of ", model.joints) : "",
                        model.features, updates())};
  }

  const InputKind input_;  // pairs, or any other
  std::optional<ClassifierSearch> search_;
};

struct PairsTraining final : ClassifierTraining {
  PairsTraining() : ClassifierTraining(InputKind::kPairs) {}
};

}  // namespace

Command train_classify_command() {
  return training_command<ClassifierTraining>(
      "Trains a classifier on labelled texts: classes, several labels, or numbers.",
      classify_epilog());
}

Command train_pairs_command() {
  return training_command<PairsTraining>(
      "Trains a model on pairs of texts: entailment, similarity, relevance.", pairs_epilog());
}

}  // namespace fovea::cli
