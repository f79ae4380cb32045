// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/evaluate_preferences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/data/batcher.h"
#include "fovea/data/corpus.h"
#include "fovea/task/language_model/chat_data.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/task/language_model/preference.h"
#include "fovea/task/score_json.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

bool was_trained_by_dpo(const fs::path& model) {
  return !is_pretrained(model) && load_settings(model).text.objective == LanguageObjective::kDpo;
}

}  // namespace

bool measures_preferences(const PreferenceEvaluation& options, std::span<const std::string> said,
                          const fs::path& model) {
  const bool measures =
      contains(said, "preferences") ? options.preferences : was_trained_by_dpo(model);
  for (const std::string_view name : {"reference_model", "dpo_beta"}) {
    if (measures || !contains(said, name)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("eval: {} has no effect without --preferences", option_name(name)),
                "leave it out");
  }
  return measures;
}

Json json_of(const PreferenceScore& score) {
  Json::Object object;
  add(object, "task", std::string(kPreferenceTask));
  add(object, "pairs", score.pairs);
  add(object, "left_out", score.left_out);
  add(object, "equal", score.equal);
  add(object, "beta", score.beta);
  add(object, "reference", score.reference);
  add(object, "confidence", score.confidence);
  score.visit_numbers([&](std::string_view name, const Interval& interval) {
    add(object, name, json_of_interval(interval));
  });
  return Json(std::move(object));
}

PreferenceScore score_preferences(const Context& context, std::span<const double> losses,
                                  std::span<const double> reference, double beta,
                                  const BootstrapOptions& options) {
  check(losses.size() == reference.size() && losses.size() % 2 == 0 && !losses.empty(),
        "preferences: {} losses, and {} of the reference", losses.size(), reference.size());
  std::vector<double> rewards[2], margins, preferred, pair_losses;
  for (std::size_t n = 0; n < losses.size(); n += 2) {
    for (const std::size_t side : {0, 1}) {
      rewards[side].push_back(beta * (reference[n + side] - losses[n + side]));
    }
    const double margin = rewards[0].back() - rewards[1].back();
    if (!std::isfinite(margin)) {
      throw Error(ErrorCode::kModelDamaged,
                  fmt::format("the reward of an answer of pair {} is not finite", n / 2 + 1),
                  "train the model again, or give a smaller --dpo-beta");
    }
    margins.push_back(margin);
    preferred.push_back(margin > 0 ? 1 : 0);
    pair_losses.push_back(negative_log_sigmoid(margin));
  }
  const auto mean_of = [&](const std::vector<double>& values) {
    return bootstrap_mean(context, values, options);
  };
  return {.pairs = std::ssize(margins),
          .beta = beta,
          .reference = {},
          .confidence = options.confidence,
          .accuracy = mean_of(preferred),
          .margin = mean_of(margins),
          .loss = mean_of(pair_losses),
          .chosen_reward = mean_of(rewards[0]),
          .rejected_reward = mean_of(rewards[1])};
}

namespace {

// The texts of all files, and what messages call them.
struct PairTexts {
  std::string text, name;
};

// What a model makes of the answers.
struct AnswerLosses {
  ChatSequences pairs;         // as it reads them
  std::vector<double> losses;  // of each answer
};

AnswerLosses losses_of_answers(const Context& context, const LoadedLanguageModel& loaded,
                               const fs::path& path, const PairTexts& texts, index block) {
  if (!loaded.pretrained) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("--preferences: {}: the model has no chat template", path.string()),
                "name a model that is, or began, from elsewhere, and holds conversations");
  }
  require_token_memory(texts.text, *loaded.tokenizer, block);
  AnswerLosses found{
      .pairs = read_preferences(texts.text, *loaded.pretrained, {.block = block}, texts.name),
      .losses = {}};
  const LanguageModel& model = *loaded.model;
  const EvaluationBatches set(found.pairs.sequences, loaded.settings.text.batch_size);
  require_memory("the evaluation", evaluation_memory(context, model, set),
                 "free some memory, or use a machine that has more");
  Tape tape(context, TapeMode::kInference);
  for (index i = 0; i < set.size(); ++i) {
    tape.reset(TapeMode::kInference);
    const Batch batch = set[i];
    const TokenBatch read = token_batch(batch);
    const std::vector<double> losses = model.losses_of_rows(tape, model.rows(tape, read), read);
    found.losses.insert(found.losses.end(), losses.begin(), losses.end());
  }
  if (!std::ranges::all_of(found.losses, [](double x) { return std::isfinite(x); })) {
    throw Error(ErrorCode::kModelDamaged,
                fmt::format("{}: the log-probability of an answer is not finite", path.string()),
                "train the model or its adapters again, or take an earlier checkpoint");
  }
  return found;
}

// The model that rewards are held to.
std::string reference_of(const fs::path& model, const std::vector<std::string>& adapters,
                         const PreferenceEvaluation& options, std::span<const std::string> said) {
  if (contains(said, "reference_model")) return options.reference_model;
  if (!adapters.empty()) return model.string();
  std::string base = is_pretrained(model) ? "" : load_settings(model).from.base;
  if (!base.empty()) return base;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("--preferences: {}: no model that its training began with", model.string()),
      "name the model that rewards are held to: --reference-model MODEL");
}

bool reads_the_same(const Sequences& a, const Sequences& b) {
  return a.stream == b.stream && a.counted == b.counted &&
         std::ranges::equal(a.slices, b.slices, [](const Slice& x, const Slice& y) {
           return x.start == y.start && x.targets == y.targets;
         });
}

}  // namespace

PreferenceScore evaluate_preferences(const Context& context, const fs::path& model,
                                     const PretrainedOptions& loading,
                                     std::span<const std::string> files,
                                     const PreferenceEvaluation& options,
                                     std::span<const std::string> said) {
  const std::string reference = reference_of(model, loading.adapter, options, said);
  const PairTexts texts{.text = read_text(files, TextEncoding::kUtf8),
                        .name = files.size() == 1 ? name_of_input(files[0]) : "test text"};
  double beta = options.dpo_beta;
  index block = 0;
  AnswerLosses of_model, of_reference;
  {
    const LoadedLanguageModel loaded = load_language_model(model, loading);
    if (!contains(said, "dpo_beta") && !is_pretrained(model)) beta = loaded.settings.text.dpo_beta;
    block = loaded.settings.model.block;
    of_model = losses_of_answers(context, loaded, model, texts, block);
  }
  {
    PretrainedOptions other{.weights = loading.weights};
    if (is_pretrained(reference)) other.max_context = loading.max_context;
    const LoadedLanguageModel loaded = load_language_model(reference, other);
    if (loaded.settings.model.block < block) {
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("{}: sees {} tokens, and {} sees {}", reference,
                              loaded.settings.model.block, model.string(), block),
                  is_pretrained(model)
                      ? fmt::format("name a reference that sees as much, or say --max-context {}",
                                    loaded.settings.model.block)
                      : "name a reference that sees as much");
    }
    of_reference = losses_of_answers(context, loaded, reference, texts, block);
  }
  if (!reads_the_same(of_model.pairs.sequences, of_reference.pairs.sequences)) {
    throw Error(
        ErrorCode::kModelWrongKind,
        fmt::format("{}: reads the pairs as other tokens than {}", reference, model.string()),
        "rewards are held to a model with the same tokenizer and chat template");
  }
  PreferenceScore score = score_preferences(context, of_model.losses, of_reference.losses, beta);
  score.left_out = of_model.pairs.left_out;
  score.equal = of_model.pairs.equal;
  score.reference = reference;
  return score;
}

}  // namespace fovea
