// SPDX-License-Identifier: Apache-2.0
// Prepares a run from its options.
#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/config/json.h"
#include "fovea/data/corpus.h"
#include "fovea/simd/isa.h"
#include "fovea/task/language_model.h"
#include "fovea/task/memory.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

namespace {

RunIdentity identity_of(const LanguageModelSettings& s, const Corpus& corpus,
                        const Tokenizer& tokenizer) {
  const std::string cut = fmt::format("{} {}", s.text.data, corpus.train.size());
  return {.model = xxh3_128(to_json(s.model)),
          .data = xxh3_128({cut, corpus.train, corpus.valid}),
          .tokenizer = xxh3_128(to_text(tokenizer.data())),
          .isa = std::string(isa_name(current_isa())),
          .version = FOVEA_VERSION};
}

void note_warmup(LanguageModelRun& run) {
  const TrainOptions& recipe = run.settings.recipe;
  const index updates =
      Horizon(parse_length(recipe.stop_after, "--stop-after"), run.training->updates_per_epoch())
          .updates();
  if (updates == 0 || recipe.warmup <= updates) return;
  run.notes.push_back(
      fmt::format("the run ends at update {}, before the learning rate has risen to --lr (--warmup "
                  "{}): it learns little",
                  updates, recipe.warmup));
}

}  // namespace

LanguageModelRun prepare_run(LanguageModelSettings settings, std::unique_ptr<Tokenizer> known) {
  check_options(settings);
  // Checks the sizes before any file is read.
  LanguageModelConfig probe = settings.model;
  probe.vocabulary = kFirstLearnedToken;
  resolve(probe);

  const DataKind& data = data_kind(settings.text.data);
  const TokenizerKind& kind = tokenizer_kind(settings.text.tokenizer);
  const Corpus corpus =
      read_corpus({.train = settings.text.train,
                   .valid = settings.text.valid,
                   .valid_fraction = settings.text.valid_fraction,
                   .encoding = settings.text.tokenizer == "byte" ? TextEncoding::kAnyBytes
                                                                 : TextEncoding::kUtf8,
                   .split_at = data.split_at});

  LanguageModelRun run;
  run.tokenizer = known ? std::move(known) : kind.make(kind.learn(corpus.train, "training text"));
  settings.model.vocabulary = run.tokenizer->vocabulary_size();
  settings.model = resolve(settings.model);
  require_token_memory(corpus.train, *run.tokenizer, settings.model.block);
  run.training = data.training(corpus.train, *run.tokenizer,
                               {.block = settings.model.block,
                                .batch_size = settings.text.batch_size,
                                .accumulate = settings.recipe.accumulate,
                                .seed = settings.recipe.seed});
  if (!corpus.valid.empty()) {
    require_token_memory(corpus.valid, *run.tokenizer, settings.model.block);
    run.validation.emplace(
        data.evaluation(corpus.valid, *run.tokenizer, settings.model.block, "validation text"),
        settings.text.batch_size);
  }
  run.identity = identity_of(settings, corpus, *run.tokenizer);
  run.text_bytes = corpus.train.size() + corpus.valid.size();
  run.notes = corpus.notes;
  run.settings = std::move(settings);
  note_warmup(run);
  return run;
}

RunCost cost_of(const LanguageModelRun& run) {
  const TrainOptions& recipe = run.settings.recipe;
  const Horizon horizon(parse_length(recipe.stop_after, "--stop-after"),
                        run.training->updates_per_epoch());
  RunCost cost;
  cost.parameters = parameter_count(run.settings.model);
  cost.updates = horizon.updates();
  cost.tokens_per_update = run.training->largest_batch() * recipe.accumulate;
  cost.flops_per_update =
      flops_per_token(run.settings.model) * static_cast<double>(cost.tokens_per_update);
  return cost;
}

}  // namespace fovea
