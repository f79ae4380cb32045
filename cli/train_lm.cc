// SPDX-License-Identifier: Apache-2.0
// fovea train lm: trains a language model on text files.
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/run_training.h"
#include "cli/train_options.h"
#include "fovea/task/language_model/cost.h"
#include "fovea/task/language_model/language_model.h"

namespace fovea::cli {

namespace {

std::string lm_epilog() {
  return epilog_of(
      {.examples =
           R"(  fovea train lm --train book.txt -o model             a character model, with the defaults
  fovea train lm --train lines.txt --data lines --tokenizer word -o model
  fovea train lm --train a.txt b.txt --valid c.txt --layers 6 --width 384 -o model
  fovea train lm --train book.txt --model lstm --width 256 -o model
  fovea train lm --train book.txt --model encoder --encoder conv3,attention:window=64,gru -o model
  fovea train lm -c recipe.toml --lr 3e-4 -o model     a flag counts more than the file
  fovea train lm --resume -o model                     go on after an interruption)",
       .settings_from = "defaults, --preset, --config, the environment"});
}

class LanguageModelTraining final : public TrainingOf<LanguageModelSettings, LanguageModelRun> {
 public:
  std::string_view command() const override { return "train lm"; }
  std::string_view unit() const override { return "token"; }
  std::string_view sizes() const override { return "--batch-size, --block, --width or --layers"; }
  std::vector<OptionSpec> options() const override { return train_lm_options(); }
  RunOptions run_options(const Arguments& arguments) const override {
    return run_options_of(arguments);
  }

  std::vector<std::string> description() const override {
    const index updates = run_.training->updates_per_epoch();
    return {fmt::format("text: {} bytes, vocabulary of {} tokens, {} update{} an epoch",
                        run_.text_bytes, run_.tokenizer->vocabulary_size(), updates,
                        updates == 1 ? "" : "s"),
            run_.validation
                ? fmt::format("validation: {} targets, {} batches",
                              run_.validation->sequences().target_count(), run_.validation->size())
                : "validation: none"};
  }

  TrainResult train(const Context& context, const std::filesystem::path& folder, StartAt start,
                    TrainingObserver& observer) const override {
    return train_language_model(context, run_, folder, std::move(start), observer);
  }

 private:
  LanguageModelSettings settings_in(const std::string& config, const std::string& name) override {
    return settings_from_text(config, name);
  }
  LanguageModelSettings changed(LanguageModelSettings settings, const Arguments& arguments,
                                const RunOptions& run) const override {
    return settings_of(std::move(settings), arguments, run);
  }

  LanguageModelRun make_run(const StoredRun* stored) const override {
    return prepare_run(settings_, tokenizer_of(stored));
  }
};

}  // namespace

CommandSpec train_lm_spec() {
  return {.name = "train lm",
          .summary =
              "Trains a language model on text files: a Transformer, an RNN, or a mix of layers.",
          .positionals = {},
          .options = train_lm_options(),
          .epilog = lm_epilog()};
}

int train_lm(const Arguments& arguments) {
  LanguageModelTraining training;
  return run_training(training, arguments);
}

}  // namespace fovea::cli
