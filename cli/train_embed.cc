// SPDX-License-Identifier: Apache-2.0
// fovea train embed: fine-tunes a sentence encoder on texts that belong together, or have scores.
#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/run_training.h"
#include "fovea/task/embed/run.h"
#include "fovea/task/embed/sentence_encoder.h"

namespace fovea::cli {

namespace {

std::string embed_epilog() {
  return epilog_of(
      {.examples =
           R"(  fovea train embed --base all-MiniLM-L6-v2 --train pairs.tsv -o model     a text and one that belongs to it
  fovea train embed --base all-MiniLM-L6-v2 --train triplets.tsv -o model  and one that does not
  fovea train embed --base all-MiniLM-L6-v2 --train scored.tsv -o model    two texts and how alike they are
  fovea train embed --base all-MiniLM-L6-v2 --train pairs.tsv --batch-size 1024 --micro-batch 64 -o model
  fovea train embed --resume -o model                                      go on after an interruption)",
       .data =
           "The texts come as TSV, CSV or JSON lines, packed by gzip or zstd or not. Equal texts "
           "of a batch are never held against each other."});
}

class EmbedTraining final : public TrainingOf<EmbedSettings, EmbedRun> {
 public:
  std::string_view command() const override { return "train embed"; }
  std::string_view unit() const override { return "pair"; }
  std::string_view sizes() const override { return "--micro-batch, --batch-size or --max-length"; }

  std::vector<std::string> overview() const override { return run_.overview; }
  std::vector<std::string> description() const override {
    return {fmt::format("pairs: {} to train on, {} to validate on, at most {} tokens a text",
                        run_.training->groups().size(),
                        run_.validation ? run_.validation->groups().size() : 0,
                        run_.settings.text.max_length),
            fmt::format("vocabulary of {} tokens, vectors of {} numbers",
                        run_.settings.model.vocabulary, run_.settings.model.width)};
  }

  TrainResult train(const Context& context, const std::filesystem::path& folder, StartAt start,
                    TrainingObserver& observer) const override {
    return train_sentence_encoder(context, run_, folder, std::move(start), observer);
  }

 private:
  EmbedSettings settings_in(const std::string& config, const std::string& name) override {
    return embed_settings_from_text(config, name);
  }
  EmbedSettings usual(const EmbedSettings& given) const override {
    EmbedSettings settings;
    apply_adapter_rate(settings.recipe, given.from);
    return settings;
  }
  void complete(EmbedSettings& settings, const Said& said) const override {
    if (!said.resumes) take_base(settings, said.set);
  }
  EmbedRun make_run(const StoredRun* stored) const override {
    return prepare_run(settings_, tokenizer_data_of(stored), weights_of(stored));
  }
};

}  // namespace

Command train_embed_command() {
  return training_command<EmbedTraining>(
      "Fine-tunes a sentence encoder on texts that belong together, or have scores.",
      embed_epilog());
}

}  // namespace fovea::cli
