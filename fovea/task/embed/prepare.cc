// SPDX-License-Identifier: Apache-2.0
// Prepares a run from its options.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/config/json.h"
#include "fovea/data/label_set.h"
#include "fovea/task/embed/read_groups.h"
#include "fovea/task/embed/run.h"
#include "fovea/task/embed/sentence_encoder.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

namespace {

// The texts of both sets, as tokens.
struct GroupSets {
  TextGroups trains, validates;
};

GroupSets read_sets(const EmbedSettings& settings, const GroupTokens& how,
                    std::vector<std::string>& notes) {
  const EmbedTextOptions& text = settings.text;
  const TableOptions table = table_options(text.table);
  const GroupRows rows = read_groups(text.train, table, notes);
  const std::size_t n = rows.rows.size();
  if (!text.valid.empty()) {
    const GroupRows others = read_groups(text.valid, table, notes);
    return {groups_of(rows, std::vector<bool>(n, false), false, how),
            groups_of(others, std::vector<bool>(others.rows.size(), true), true, how)};
  }
  const std::vector<bool> validates =
      draw_stratified(std::vector<index>(n), text.valid_fraction, settings.recipe.seed);
  if (text.valid_fraction > 0 && std::ranges::find(validates, true) == validates.end()) {
    notes.push_back(fmt::format("no validation: {} pairs are too few for --valid-fraction {}", n,
                                text.valid_fraction));
  }
  return {groups_of(rows, validates, false, how), groups_of(rows, validates, true, how)};
}

// The objective that fits the texts.
void take_objective(EmbedTextOptions& text, const TextGroups& trains) {
  using enum EmbedObjectiveKind;
  if (text.objective == kAuto) text.objective = trains.scored() ? kCosent : kInfoNce;
  require_together(
      text.objective == kCosent || !trains.scored(), "--objective infonce",
      fmt::format("{} has scores, and a pair of a low one does not belong together", text.train[0]),
      "leave --objective out, or the scores out of the file");
  require_together(text.objective == kInfoNce || trains.scored(), "--objective cosent",
                   fmt::format("{} has no scores", text.train[0]),
                   "leave --objective out, or say the column of the scores: --label-column");
}

// There is nothing to learn from one pair, or from equal scores.
void require_difference(const EmbedTextOptions& text, const TextGroups& trains) {
  const auto refuse = [&](std::string_view what, std::string hint) {
    throw Error(ErrorCode::kInputTooSmall, fmt::format("{}: {}", text.train[0], what),
                std::move(hint));
  };
  if (trains.scored()) {
    const auto [low, high] = std::ranges::minmax(trains.scores);
    if (low == high) {
      refuse(fmt::format("every score to train on is {}: there is no order to learn", low),
             "add pairs with other scores");
    }
  } else if (std::ranges::max(trains.same) < 2) {
    refuse("there are no two texts to train on that do not belong together", "add further pairs");
  }
}

void check_metric(const EmbedTextOptions& text, const TextGroups& validates) {
  if (validates.size() == 0) return;
  const bool fits =
      text.metric != (validates.scored() ? EmbedMetric::kMrr : EmbedMetric::kSpearman);
  require_together(fits, fmt::format("--metric {}", to_string(text.metric)),
                   validates.scored() ? "the texts to validate on have scores, and no ranks"
                                      : "the texts to validate on have no scores",
                   "leave it out");
}

}  // namespace

EmbedRun prepare_run(EmbedSettings settings, std::optional<TokenizerData> known,
                     RunWeights weights) {
  check_options(settings);
  settings.model = resolve(settings.model);
  EmbedTextOptions& text = settings.text;
  require_update({2 * text.batch_size, text.max_length, settings.recipe.accumulate}, "token",
                 "choose smaller sizes: an update holds fewer than 2^31 tokens");
  EmbedRun run;
  run.columns = matryoshka_columns(text.matryoshka, settings.model.width);
  run.kept = known ? std::move(*known) : tokenizer_of_encoder(settings.from.base);
  run.pieces = text_of_kept(run.kept, settings.model, "tokenizer.txt");
  require_length(text.max_length, run.pieces, settings.from.base);
  auto [trains, validates] = read_sets(
      settings, {*run.pieces.tokenizer, settings.model.prompt, text.max_length}, run.notes);
  take_objective(text, trains);
  require_difference(text, trains);
  check_metric(text, validates);
  run.identity = identity_of_run(to_json(settings.model),
                                 xxh3_128({fingerprint(trains), fingerprint(validates)}),
                                 xxh3_128(to_text(run.kept)));
  run.overview.push_back(groups_line("training", trains, text.max_length));
  if (validates.size() > 0) {
    run.overview.push_back(groups_line("validation", validates, text.max_length));
    run.validation.emplace(std::move(validates), text.batch_size);
  }
  if (settings.recipe.evaluate_training) run.trained.emplace(trains, text.batch_size);
  run.training = std::make_unique<GroupTraining>(
      std::move(trains), EpochOrderOptions{.batch_size = text.batch_size,
                                           .accumulate = settings.recipe.accumulate,
                                           .seed = settings.recipe.seed,
                                           .by_length = false});
  resolve_encoder_recipe(settings.recipe, run.training->updates_per_epoch(), settings.from.warmup);
  run.settings = std::move(settings);
  const SentenceEncoder shapes(run.settings.model,
                               ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
  begin_from_base(run, shapes.parameters(), weights, run.kept, BertHead::kNone);
  note_no_validation(run, "--patience has");
  return run;
}

}  // namespace fovea
