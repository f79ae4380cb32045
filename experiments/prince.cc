// SPDX-License-Identifier: Apache-2.0
// E4, E5, E6, E9: the language models of chapter 6 of Hands-on NLP, in its setting: The Little
// Prince, a sentence a line of at most 40 words, Adam with learning rate 1e-3, gradients clipped
// at 1. Its losses are of training; there is no held-out text.
#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/experiment.h"
#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/file.h"
#include "fovea/report/plot.h"
#include "fovea/task/language_model/evaluate.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/train/history.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr DataFile kSentences{
    "little_prince/sentences.tok.txt", "a8d5ad39711cebb567d7b624a432bd0f",
    "73158b350786dbf553b4986877bfc789e01c247b3a5a89df82094cb5be69b722",
    "Hands-on NLP (github boyu-ai/Hands-on-NLP, commit 3a511b8), split into sentences and words "
    "by NLTK 3.8"};

constexpr index kRnnBatch = 16;  // sentences; the Transformer of the source reads one at a time

// A model in one of its variants.
struct PrinceModel {
  std::string_view experiment;
  std::string_view variant;  // "" for one that has no defects: it is run once
  LanguageModelKind kind;
  index heads, layers, batch, epochs;
  std::optional<double> published;  // the loss of the last step
};

constexpr std::array kPrinceModels = {
    PrinceModel{"E4", "", LanguageModelKind::kAttentionRnn, 1, 1, kRnnBatch, 200, 1.1505},
    PrinceModel{"E5", "", LanguageModelKind::kAttentionRnn, 4, 1, kRnnBatch, 200, 1.3427},
    PrinceModel{"E6", "rnn", LanguageModelKind::kRnn, 1, 1, kRnnBatch, 200, 0.3491},
    PrinceModel{"E6", "lstm", LanguageModelKind::kLstm, 1, 1, kRnnBatch, 200, 0.2949},
    PrinceModel{"E6", "gru", LanguageModelKind::kGru, 1, 1, kRnnBatch, 200, 0.2947},
    PrinceModel{"E6", "rnn-2-layers", LanguageModelKind::kRnn, 1, 2, kRnnBatch, 200, 0.4688},
    PrinceModel{"E6", "sru", LanguageModelKind::kSru, 1, 1, kRnnBatch, 200, {}},
    PrinceModel{"E9", "", LanguageModelKind::kTransformer, 4, 1, 1, 50, 0.3176},
};

struct PrinceRun {
  const PrinceModel& model;
  std::string variant;
  bool compat;
  index seed;
  index epochs;
};

LanguageModelSettings settings_of(const PrinceRun& run, const fs::path& text) {
  LanguageModelSettings s;
  apply_preset("source", s);
  s.text.train = {fs::absolute(text).string()};
  s.text.valid_fraction = 0;
  s.text.batch_size = run.model.batch;
  s.text.by_length = false;  // the source's batches hold sentences of any length
  s.model.kind = run.model.kind;
  s.model.heads = run.model.heads;
  s.model.layers = run.model.layers;
  s.model.init = InitScheme::kSource;
  s.model.ln_variant = LayerNormVariant::kStandard;
  if (run.model.kind != LanguageModelKind::kTransformer) s.model.position = PositionKind::kNone;
  if (run.compat) s.model.compat = "all";
  s.recipe.stop_after = fmt::format("{}e", run.epochs);
  s.recipe.eval_every = "1e";
  s.recipe.save_every = "10e";
  s.recipe.log_every = 1;
  s.recipe.seed = static_cast<std::uint64_t>(run.seed);
  return s;
}

// The losses of a run after each epoch: the mean over its updates, the mean of the last 16 and the
// last one, as the source has them.
struct EpochLosses {
  std::vector<double> mean, last16, last, seconds;
};

EpochLosses losses_of(const fs::path& folder, index updates_per_epoch) {
  EpochLosses losses;
  double sum = 0, began = 0;
  for (const UpdateRecord& update : read_history(folder / "metrics.jsonl").updates) {
    sum += update.loss;
    if (update.step % updates_per_epoch != 0) continue;
    losses.mean.push_back(sum / static_cast<double>(updates_per_epoch));
    losses.last16.push_back(update.mean16_loss);
    losses.last.push_back(update.loss);
    losses.seconds.push_back(update.seconds - began);
    began = update.seconds;
    sum = 0;
  }
  return losses;
}

std::vector<PlotPoint> points_of(const std::vector<double>& by_epoch) {
  std::vector<PlotPoint> points;
  for (const double loss : by_epoch) {
    points.push_back({static_cast<double>(points.size() + 1), loss});
  }
  return points;
}

class Prince : Reproduction {
 public:
  Prince(const Context& context, const ReproduceOptions& options, const ReproduceObserver& observer)
      : Reproduction(context, options, observer), text_(require_data(options.data, kSentences)) {}

  void run() {
    for (const PrinceModel& model : kPrinceModels) {
      if (!model.variant.empty()) {
        run_seeds(model, std::string(model.variant), false);
        continue;
      }
      for (const ReproduceVariant variant : options_.variants) {
        run_seeds(model, std::string(variant_name(variant)), variant == ReproduceVariant::kCompat);
      }
    }
  }

 private:
  void run_seeds(const PrinceModel& model, const std::string& variant, bool compat) {
    for (index seed = 1; seed <= options_.seeds; ++seed) {
      run_one({model, variant, compat, seed, options_.share_of(model.epochs)});
    }
  }

  void run_one(const PrinceRun& run) {
    const ReproduceRow row{.experiment = std::string(run.model.experiment),
                           .variant = run.variant,
                           .seed = run.seed,
                           .metric = "epoch_mean_loss"};
    tell(fmt::format("{}: {} epochs", run_name(row), run.epochs));
    const fs::path folder = options_.output / run_name(row);
    const LanguageModelRun prepared = prepare_run(settings_of(run, text_));
    const bool trained = trains(row, [&] {
      train_in(folder, observer_, cost_of(prepared).updates,
               [&](StartAt start, TrainingObserver& watching) {
                 return train_language_model(context_, prepared, folder, std::move(start),
                                             watching);
               });
    });
    if (trained)
      report(run, row, losses_of(folder, prepared.training->updates_per_epoch()), folder);
  }

  void report(const PrinceRun& run, ReproduceRow row, const EpochLosses& losses,
              const fs::path& folder) {
    if (losses.mean.empty()) return;
    const auto measured = [&](std::string metric, const std::vector<double>& by_epoch,
                              std::optional<double> published) {
      row.metric = std::move(metric);
      if (options_.share == 1) row.published = published;
      row.ours = by_epoch.back();
      row.by_epoch = by_epoch;
      observer_.measured(row);
    };
    row.seconds_per_epoch = median(losses.seconds);
    if (options_.pytorch) row.pytorch_seconds_per_epoch = options_.pytorch(run.model.experiment);
    measured("epoch_mean_loss", losses.mean, {});
    measured("last16_mean_loss", losses.last16, {});
    measured("last_step_loss", losses.last, run.model.published);
    const std::string text = text_.string();
    const TextScore score = evaluate_text(context_, load_language_model(folder), {&text, 1});
    row.seconds_per_epoch = row.pytorch_seconds_per_epoch = std::nullopt;
    row.by_epoch.clear();
    row.metric = "frozen_token_loss";
    row.published = std::nullopt;
    row.ours = score.loss;
    observer_.measured(row);
    draw(run, losses);
  }

  // One picture an experiment, with the first seed of every variant.
  void draw(const PrinceRun& run, const EpochLosses& losses) {
    if (run.seed != 1) return;
    if (plot_.title != run.model.experiment) plot_ = {.title = std::string(run.model.experiment)};
    constexpr std::array kInks = {Ink::kBlue, Ink::kOrange, Ink::kShade3};
    const std::size_t n = plot_.curves.size();
    const Stroke stroke = n < kInks.size() ? Stroke::kSolid : Stroke::kDashed;
    plot_.x_label = "training epoch";
    plot_.y_label = "mean loss of the epoch, nats per word";
    plot_.curves.push_back({.name = run.variant,
                            .points = points_of(losses.mean),
                            .ink = kInks[n % kInks.size()],
                            .stroke = stroke});
    write_file_atomically(options_.output / fmt::format("{}.svg", run.model.experiment),
                          draw_svg(plot_));
  }

  const fs::path text_;
  Plot plot_;
};

}  // namespace

void reproduce_prince(const Context& context, const ReproduceOptions& options,
                      const ReproduceObserver& observer) {
  create_folders(options.output);
  Prince(context, options, observer).run();
}

}  // namespace fovea
