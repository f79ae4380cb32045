// SPDX-License-Identifier: Apache-2.0
// fovea train classify, fovea train pairs: train a classifier on labelled texts, or on pairs of
// them.
#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/classify_options.h"
#include "cli/commands.h"
#include "cli/run_training.h"
#include "cli/search_report.h"
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
  fovea train classify --input npz --train gestures.npz -o model
  fovea train classify --resume -o model               go on after an interruption)",
       .data =
           "The texts come as TSV, CSV, JSON lines or fastText lines, packed by gzip or zstd or "
           "not, by their name or content. The labels are those of the texts to train on, in "
           "their natural order.",
       .when = "With --input npz",
       .defaults = defaults_of_npz()});
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

class ClassifierTraining final : public TrainingWithVectors<ClassifierSettings, ClassifierRun> {
 public:
  explicit ClassifierTraining(InputKind input) : input_(input) {}

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
  std::vector<OptionSpec> options() const override { return train_classify_options(input_); }
  RunOptions run_options(const Arguments& arguments) const override {
    return classify_run_options(arguments);
  }

  bool searches() const override { return !settings_.search.budget.empty(); }
  void prepare_search() override { search_.emplace(settings_); }
  std::optional<std::string> search(const Context& context, const std::filesystem::path& folder,
                                    bool resume, TrainingObserver& observer) override {
    SearchResult result = search_->run(context, folder, resume, observer);
    search_.reset();
    if (result.stopped) return std::nullopt;
    settings_ = std::move(result.settings);
    return search_report(result.trials, result.best);
  }

  std::vector<std::string> description() const override {
    if (run_.linear != nullptr) return linear_description();
    if (run_.tokenizer == nullptr) return frame_description();
    return {
        fmt::format("{}s: {} to train on, {} to validate on, at most {} tokens each",
                    words_of(run_.settings.text.input).entry, run_.training->examples().size(),
                    run_.validation ? run_.validation->examples().size() : 0,
                    run_.settings.text.max_length),
        fmt::format("vocabulary of {} tokens, {}", run_.tokenizer->vocabulary_size(), updates())};
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
  ClassifierSettings usual(const Arguments& arguments) const override {
    return classify_defaults(arguments, input_);
  }
  ClassifierSettings changed(ClassifierSettings settings, const Arguments& arguments,
                             const RunOptions&) const override {
    ClassifierSettings given = classify_settings(std::move(settings), arguments);
    require_input(given.text.input);
    return given;
  }

  ClassifierRun run_with(const StoredRun* stored, RunWeights weights) const override {
    std::unique_ptr<Tokenizer> known;
    if (has_tokenizer(settings_)) known = tokenizer_of(stored);
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

}  // namespace

CommandSpec train_classify_spec() {
  return {.name = "train classify",
          .summary = "Trains a classifier on labelled texts: classes, several labels, or numbers.",
          .positionals = {},
          .options = train_classify_options(),
          .epilog = classify_epilog()};
}

int train_classify(const Arguments& arguments) {
  ClassifierTraining training(InputKind::kText);
  return run_training(training, arguments);
}

CommandSpec train_pairs_spec() {
  return {.name = "train pairs",
          .summary = "Trains a model on pairs of texts: entailment, similarity, relevance.",
          .positionals = {},
          .options = train_classify_options(InputKind::kPairs),
          .epilog = pairs_epilog()};
}

int train_pairs(const Arguments& arguments) {
  ClassifierTraining training(InputKind::kPairs);
  return run_training(training, arguments);
}

}  // namespace fovea::cli
