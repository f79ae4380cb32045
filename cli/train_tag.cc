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
#include "fovea/task/tag/run.h"

namespace fovea::cli {

namespace {

std::string tag_epilog() {
  return epilog_of(
      {.examples =
           R"(  fovea train tag --train train.conll --valid dev.conll -o model   names: a word and its tag a line
  fovea train tag --train train.conllu --column upos -o model      parts of speech
  fovea train tag --train train.conll --tag-column 2,3 -o model    two tags of each word, a head each
  fovea train tag --task segment --train words.seg -o model        Chinese: words between blanks
  fovea train tag --train train.conll --encoder conv3,attention --head softmax -o model
  fovea train tag --train train.conll --tokenizer sentencepiece --tokenizer-model text.model -o model
  fovea train tag --base minilm --train train.conll -o model       a pretrained encoder, on your tags
  fovea train tag --resume -o model                                go on after an interruption)",
       .data = "The sentences come as CoNLL columns, CoNLL-U or segmented lines, packed by gzip or "
               "zstd or not. The tags are those of the sentences to train on.",
       .when = "With --task segment",
       .defaults = other_defaults(TaggerSettings(), TaggerSettings(TagTask::kSegment), "task")});
}

class TaggerTraining final : public TrainingWithVectors<TaggerSettings, TaggerRun> {
 public:
  std::string_view command() const override { return "train tag"; }
  std::string_view unit() const override { return word(); }
  std::string_view row() const override { return word(); }
  std::string_view sizes() const override { return "--batch-size, --width or --buckets"; }

  std::vector<std::string> description() const override {
    return {fmt::format("sentences: {} to train on, {} to validate on, {} tags",
                        run_.training->words().size(),
                        run_.validation ? run_.validation->words().size() : 0,
                        tag_count(run_.settings.model)),
            fmt::format("vocabulary of {} {}s, {}", run_.settings.model.vocabulary,
                        run_.vocabulary.reads_pieces() ? "token" : word(), updates())};
  }

  TrainResult train(const Context& context, const std::filesystem::path& folder, StartAt start,
                    TrainingObserver& observer) const override {
    return train_tagger(context, run_, folder, std::move(start), observer);
  }

 private:
  TaggerSettings settings_in(const std::string& config, const std::string& name) override {
    TaggerConfigFile file = tagger_config_from_text(config, name);
    tag_sets(file, name);  // throws unless tags, schemes and columns fit
    return settings_of_file(std::move(file));
  }
  TaggerSettings usual(const TaggerSettings& given) const override {
    TaggerSettings settings(given.text.task);
    settings.from.lora = given.from.lora;
    if (!given.from.base.empty()) apply_base_recipe(settings);
    return settings;
  }
  void complete(TaggerSettings& settings, const Said& said) const override {
    if (!said.resumes && !settings.from.base.empty()) return take_base(settings, said.set);
    const bool sized = said.has("model.word_width") || said.resumes;
    if (!settings.text.embeddings.empty() && !sized) {
      settings.model.word_width = 0;  // that of the vectors
    }
  }

  std::string_view word() const {
    return settings_.text.task == TagTask::kSegment ? "character" : "word";
  }

  TaggerRun run_with(const StoredRun* stored, RunWeights weights) const override {
    std::optional<TaggerVocabulary> known;
    if (stored != nullptr) {
      known.emplace();
      if (settings_.model.has_base()) {
        known->kept = *tokenizer_data_of(stored);
        known->pieces = text_of_kept(known->kept, settings_.model, stored->path("tokenizer.txt"));
        return prepare_run(settings_, std::move(known), weights);
      }
      known->words = tokenizer_of(stored);
      if (reads_characters(settings_)) {
        known->characters = tokenizer_of(stored, kCharactersName);
      }
      if (settings_.text.task == TagTask::kSegment) {
        known->known = tokenizer_of(stored, kKnownWordsName);
      }
    }
    return prepare_run(settings_, std::move(known), weights);
  }
};

}  // namespace

Command train_tag_command() {
  return training_command<TaggerTraining>(
      "Trains a tagger of words, or a segmenter, on tagged sentences.", tag_epilog());
}

}  // namespace fovea::cli
