// SPDX-License-Identifier: Apache-2.0
// fovea train classify: trains a text classifier on labelled texts.
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/classify_options.h"
#include "cli/commands.h"
#include "cli/run_training.h"
#include "fovea/task/classify/run.h"

namespace fovea::cli {

namespace {

constexpr std::string_view kExamples = R"(Examples:
  fovea train classify --train reviews.tsv -o model    labels and columns are found, the rest has defaults
  fovea train classify --train a.csv --valid b.csv --text-column body --label-column stars -o model
  fovea train classify --train tags.jsonl --multi-label --class-weights balanced -o model
  fovea train classify --train grades.csv --regression -o model
  fovea train classify --train reviews.tsv --encoder conv3,bilstm --pooling attention -o model
  fovea train classify --input npz --train gestures.npz -o model
  fovea train classify --resume -o model               go on after an interruption

The texts come as TSV, CSV, JSON lines or fastText lines, packed by gzip or zstd or not, by their name or
content. The labels are those of the texts to train on, in their natural order.

A folder that is not empty is refused, unless
  --resume     goes on at its newest whole checkpoint (or at the one that --resume=PATH names), with
               the settings stored there; options given beside it count more
  --overwrite  removes what an earlier run wrote there (nothing else) and begins anew; beside
               --resume=CHECKPOINT, what came after that checkpoint

Settings come, each counting more than those before it, from: defaults, --config, the environment
(FOVEA_HEAD_DIM is --head-dim), options. A run that ends by hours depends on the speed of the machine;
any other gives the same bits again, for any number of threads.

SIGINT, SIGTERM and SIGHUP save a checkpoint and stop, SIGUSR1 saves and goes on, SIGUSR2 saves and
stops.)";

// The options in lines.
std::string epilog() {
  constexpr std::size_t kColumns = 100;
  std::string text(kExamples), line = "With --input npz other defaults hold:";
  text += "\n\n";
  for (const std::string& option : defaults_of_npz()) {
    if (line.size() + 1 + option.size() > kColumns) {
      text += line + "\n";
      line = " ";
    }
    line += " " + option;
  }
  return text + line;
}

class ClassifierTraining final : public TrainingOf<ClassifierSettings, ClassifierRun> {
 public:
  std::string_view command() const override { return "train classify"; }
  std::string_view unit() const override { return words_of(settings_.text.input).entry; }
  std::string_view row() const override { return words_of(settings_.text.input).row; }
  std::string_view sizes() const override {
    return "--batch-size, --max-length, --width or --buckets";
  }
  std::vector<OptionSpec> options() const override { return train_classify_options(); }
  RunOptions run_options(const Arguments& arguments) const override {
    return classify_run_options(arguments);
  }

  std::vector<std::string> settle(const Arguments& arguments, const RunOptions&,
                                  const StoredRun* stored) override {
    if (stored == nullptr) {
      settings_ = classify_settings(classify_defaults(arguments), arguments);
      return {};
    }
    const ClassifierConfigFile file =
        classifier_config_from_text(stored->file("config.json"), stored->path("config.json"));
    began_ = file.settings;
    vectors_ = file.outputs.vectors;
    settings_ = classify_settings(began_, arguments);
    // What followed from the texts stays.
    if (settings_.text.tokenizer == "auto") settings_.text.tokenizer = began_.text.tokenizer;
    if (settings_.text.max_length == 0) settings_.text.max_length = began_.text.max_length;
    require_same_run(began_, settings_);
    return changed_options(began_, settings_);
  }

  std::vector<std::string> input_files() const override {
    std::vector<std::string> files = TrainingOf::input_files();
    if (!settings_.text.embeddings.empty()) files.push_back(settings_.text.embeddings);
    return files;
  }

  std::vector<std::string> overview() const override { return run_.overview; }
  std::vector<std::string> description() const override {
    const index updates = run_.training->updates_per_epoch();
    if (run_.tokenizer == nullptr) return frame_description(updates);
    return {fmt::format("texts: {} to train on, {} to validate on, at most {} tokens each",
                        run_.training->examples().size(),
                        run_.validation ? run_.validation->examples().size() : 0,
                        run_.settings.text.max_length),
            fmt::format("vocabulary of {} tokens, {} update{} an epoch",
                        run_.tokenizer->vocabulary_size(), updates, updates == 1 ? "" : "s")};
  }

  TrainResult train(const Context& context, const std::filesystem::path& folder, StartAt start,
                    TrainingObserver& observer) const override {
    return train_classifier(context, run_, folder, std::move(start), observer);
  }

 private:
  // Weights that are stored need no vectors of a file.
  ClassifierRun make_run(const StoredRun* stored) const override {
    std::unique_ptr<Tokenizer> known;
    if (settings_.text.input == InputKind::kText) known = tokenizer_of(stored);
    const bool saved = stored != nullptr && stored->checkpoint;
    ClassifierRun run =
        prepare_run(settings_, std::move(known), saved ? RunWeights::kStored : RunWeights::kNew);
    if (saved) run.outputs.vectors = vectors_;
    return run;
  }

  std::vector<std::string> frame_description(index updates) const {
    const ClassifierConfig& model = run_.settings.model;
    return {fmt::format("samples: {} to train on, {} to validate on, at most {} time steps each",
                        run_.training->examples().size(),
                        run_.validation ? run_.validation->examples().size() : 0,
                        run_.settings.text.max_length),
            fmt::format("{}{} features, {} update{} an epoch",
                        model.joints > 0 ? fmt::format("{} joints of ", model.joints) : "",
                        model.features, updates, updates == 1 ? "" : "s")};
  }

  VectorCounts vectors_;  // of the stored run
};

}  // namespace

CommandSpec train_classify_spec() {
  return {.name = "train classify",
          .summary = "Trains a classifier on labelled texts: classes, several labels, or numbers.",
          .positionals = {},
          .options = train_classify_options(),
          .epilog = epilog()};
}

int train_classify(const Arguments& arguments) {
  ClassifierTraining training;
  return run_training(training, arguments);
}

}  // namespace fovea::cli
