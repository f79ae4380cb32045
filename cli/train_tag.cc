// SPDX-License-Identifier: Apache-2.0
// fovea train tag: trains a tagger or a segmenter on tagged sentences.
#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/run_training.h"
#include "cli/tag_options.h"
#include "fovea/task/tag/run.h"

namespace fovea::cli {

namespace {

constexpr std::string_view kExamples = R"(Examples:
  fovea train tag --train train.conll --valid dev.conll -o model   names: a word and its tag a line
  fovea train tag --train train.conllu --column upos -o model      parts of speech
  fovea train tag --task segment --train words.seg -o model        Chinese: words between blanks
  fovea train tag --train train.conll --encoder conv3,attention --head softmax -o model
  fovea train tag --resume -o model                                go on after an interruption

The sentences come as CoNLL columns, CoNLL-U or segmented lines, packed by gzip or zstd or not. The tags
are those of the sentences to train on.

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
  std::string text(kExamples), line = "With --task segment other defaults hold:";
  text += "\n\n";
  for (const std::string& option : defaults_of_segment()) {
    if (line.size() + 1 + option.size() > kColumns) {
      text += line + "\n";
      line = " ";
    }
    line += " " + option;
  }
  return text + line;
}

std::unique_ptr<Tokenizer> tokenizer_in(const StoredRun& stored, std::string_view file) {
  const std::string name(file);
  return make_tokenizer(tokenizer_data_from_text(stored.file(name), stored.path(name)));
}

class TaggerTraining final : public TrainingOf<TaggerSettings, TaggerRun> {
 public:
  std::string_view command() const override { return "train tag"; }
  std::string_view unit() const override { return word(); }
  std::string_view row() const override { return word(); }
  std::string_view sizes() const override { return "--batch-size, --width or --buckets"; }
  std::vector<OptionSpec> options() const override { return train_tag_options(); }
  RunOptions run_options(const Arguments& arguments) const override {
    return tag_run_options(arguments);
  }

  std::vector<std::string> settle(const Arguments& arguments, const RunOptions&,
                                  const StoredRun* stored) override {
    if (stored == nullptr) {
      settings_ = tag_settings(tag_defaults(arguments), arguments);
      return {};
    }
    const TaggerConfigFile file =
        tagger_config_from_text(stored->file("config.json"), stored->path("config.json"));
    began_ = file.settings;
    vectors_ = file.outputs.vectors;
    settings_ = tag_settings(began_, arguments);
    if (settings_.text.scheme == SchemeChoice::kAuto) settings_.text.scheme = began_.text.scheme;
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
    return {fmt::format("sentences: {} to train on, {} to validate on, {} tags",
                        run_.training->words().size(),
                        run_.validation ? run_.validation->words().size() : 0, run_.tags.size()),
            fmt::format("vocabulary of {} {}s, {} update{} an epoch",
                        run_.settings.model.vocabulary, word(), updates, updates == 1 ? "" : "s")};
  }

  TrainResult train(const Context& context, const std::filesystem::path& folder, StartAt start,
                    TrainingObserver& observer) const override {
    return train_tagger(context, run_, folder, std::move(start), observer);
  }

 private:
  std::string_view word() const {
    return settings_.text.task == TagTask::kSegment ? "character" : "word";
  }

  // Weights that are stored need no vectors of a file.
  TaggerRun make_run(const StoredRun* stored) const override {
    std::optional<TaggerVocabulary> known;
    if (stored != nullptr) {
      known.emplace();
      known->words = tokenizer_of(stored);
      if (settings_.model.character_reader != CharacterReader::kNone) {
        known->characters = tokenizer_in(*stored, kCharactersName);
      }
      if (settings_.text.task == TagTask::kSegment) {
        known->known = tokenizer_in(*stored, kKnownWordsName);
      }
    }
    const bool saved = stored != nullptr && stored->checkpoint;
    TaggerRun run = prepare_run(settings_, std::move(known),
                                saved ? TaggerWeights::kStored : TaggerWeights::kNew);
    if (saved) run.outputs.vectors = vectors_;
    return run;
  }

  VectorCounts vectors_;  // of the stored run
};

}  // namespace

CommandSpec train_tag_spec() {
  return {.name = "train tag",
          .summary = "Trains a tagger of words, or a segmenter, on tagged sentences.",
          .positionals = {},
          .options = train_tag_options(),
          .epilog = epilog()};
}

int train_tag(const Arguments& arguments) {
  TaggerTraining training;
  return run_training(training, arguments);
}

}  // namespace fovea::cli
