// SPDX-License-Identifier: Apache-2.0
// P8 and E12: what positions and attention are needed for.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "experiments/synthetic.h"
#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/report/plot.h"

namespace fovea {

namespace {

constexpr token kQuestion = 0;

// Tokens 1 and 2 stand somewhere among others; the answer is the one that came first.
SyntheticTask order_task() {
  constexpr index kLength = 17, kOthers = 12;
  SyntheticTask task{.name = "order", .vocabulary = 3 + kOthers, .length = kLength, .make = {}};
  task.make = [](Random& random, std::vector<token>& ids) {
    for (token& id : ids) id = static_cast<token>(3 + random.below(kOthers));
    const index first = random.below(kLength - 1), gap = 1 + random.below(kLength - 2);
    const index second = (first + gap) % (kLength - 1);
    ids[static_cast<std::size_t>(first)] = 1;
    ids[static_cast<std::size_t>(second)] = 2;
    ids.back() = kQuestion;
    return first < second ? token{1} : token{2};
  };
  return task;
}

// A symbol, then others, then the question; the answer is the symbol.
SyntheticTask recall_task(index distance) {
  constexpr index kSymbols = 16, kOthers = 16;
  SyntheticTask task{.name = fmt::format("recall {}", distance),
                     .vocabulary = 1 + kSymbols + kOthers,
                     .length = distance + 1,
                     .make = {}};
  task.make = [](Random& random, std::vector<token>& ids) {
    for (token& id : ids) id = static_cast<token>(1 + kSymbols + random.below(kOthers));
    const auto symbol = static_cast<token>(1 + random.below(kSymbols));
    ids.front() = symbol;
    ids.back() = kQuestion;
    return symbol;
  };
  return task;
}

// At 1, the usual start, an LSTM still forgets over some tens of tokens.
constexpr double kForgetBias = 3;

LanguageModelConfig small_model(LanguageModelKind kind, PositionKind position) {
  LanguageModelConfig c;
  c.kind = kind;
  c.layers = 1;
  c.heads = kind == LanguageModelKind::kAttentionRnn ? 1 : 4;
  c.width = 64;
  c.position = position;
  c.bias = true;
  c.tie = false;
  c.t5_max_distance = 64;
  c.forget_bias = kForgetBias;
  return c;
}

index updates_of(const ReproduceOptions& options, index all) {
  return std::max<index>(1, std::lround(options.share * static_cast<double>(all)));
}

ReproduceRow accuracy_row(std::string experiment, std::string variant, index seed) {
  return {.experiment = std::move(experiment),
          .variant = std::move(variant),
          .seed = seed,
          .metric = "accuracy"};
}

// Runs a model, reports it, and returns its accuracy.
double measure(const Context& context, const ReproduceOptions& options,
               const ReproduceObserver& observer, const SyntheticTask& task,
               const SyntheticRun& run, ReproduceRow row) {
  const std::string name = fmt::format("{}-{}-seed{}", row.experiment, row.variant, row.seed);
  if (observer.begins) observer.begins(fmt::format("{}: {} updates", name, run.updates));
  row.ours = accuracy_after_training(context, task, run, options.output / name, observer);
  observer.measured(row);
  return *row.ours;
}

// With the better of two learning rates, 1e-3 and 3e-3 (docs/REPRODUCE.md).
struct RecallModel {
  std::string_view name;
  LanguageModelKind kind;
  double lr;
  Ink ink;
  Stroke stroke = Stroke::kSolid;
};

constexpr std::array kRecallModels = {
    RecallModel{"attention", LanguageModelKind::kTransformer, 1e-3, Ink::kBlue},
    RecallModel{"attention-rnn", LanguageModelKind::kAttentionRnn, 3e-3, Ink::kBlue,
                Stroke::kDashed},
    RecallModel{"lstm", LanguageModelKind::kLstm, 3e-3, Ink::kShade3},
    RecallModel{"gru", LanguageModelKind::kGru, 3e-3, Ink::kShade3, Stroke::kDashed},
    RecallModel{"rnn", LanguageModelKind::kRnn, 3e-3, Ink::kOrange},
};

}  // namespace

void reproduce_order(const Context& context, const ReproduceOptions& options,
                     const ReproduceObserver& observer) {
  create_folders(options.output);
  const SyntheticTask task = order_task();
  for (const auto& [position, name] : enum_names(PositionKind())) {
    for (index seed = 1; seed <= options.seeds; ++seed) {
      const SyntheticRun run{.model = small_model(LanguageModelKind::kTransformer, position),
                             .batch = 64,
                             .updates = updates_of(options, 1500),
                             .seed = seed};
      measure(context, options, observer, task, run, accuracy_row("P8", std::string(name), seed));
    }
  }
}

void reproduce_recall(const Context& context, const ReproduceOptions& options,
                      const ReproduceObserver& observer) {
  create_folders(options.output);
  Plot plot{.title = "E12: recall of a token",
            .x_label = "distance in tokens",
            .y_label = "share of right answers, mean over seeds",
            .cuts_peaks = false};
  for (const RecallModel& model : kRecallModels) {
    Curve curve{.name = std::string(model.name), .ink = model.ink, .stroke = model.stroke};
    for (const index distance : {10, 30, 100, 200, 500}) {
      double sum = 0;
      for (index seed = 1; seed <= options.seeds; ++seed) {
        const SyntheticRun run{.model = small_model(model.kind, PositionKind::kNone),
                               .updates = updates_of(options, 2000),
                               .lr = model.lr,
                               .seed = seed};
        sum += measure(context, options, observer, recall_task(distance), run,
                       accuracy_row("E12", fmt::format("{}-{}", model.name, distance), seed));
      }
      curve.points.push_back(
          {static_cast<double>(distance), sum / static_cast<double>(options.seeds)});
    }
    plot.curves.push_back(std::move(curve));
    write_file_atomically(options.output / "E12.svg", draw_svg(plot));
  }
}

}  // namespace fovea
