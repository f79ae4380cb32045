// SPDX-License-Identifier: Apache-2.0
// P8 and E12: what positions and attention are needed for.
#include "experiments/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "experiments/experiment.h"
#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/config/json.h"
#include "fovea/report/plot.h"
#include "fovea/train/trainer.h"

namespace fovea {

namespace {

// Problems, one after another. Only the last token of each has a target.
struct Problems {
  Problems(const SyntheticTask& task, index count, Random random) {
    std::vector<token> ids(static_cast<std::size_t>(task.length));
    for (index n = 0; n < count; ++n) {
      answers.push_back(task.make(random, ids));
      all.insert(all.end(), ids.begin(), ids.end());
      targets.insert(targets.end(), ids.size() - 1, token{-1});
      targets.push_back(answers.back());
      offsets.push_back(static_cast<std::int32_t>(all.size()));
    }
  }

  TokenBatch batch() const {
    return {.ids = all, .targets = targets, .offsets = offsets, .samples = {}};
  }

  std::vector<token> all, targets, answers;
  std::vector<std::int32_t> offsets{0};
};

// Streams of random numbers: those of an update, and those of the test.
Random random_of(const SyntheticRun& run, std::uint64_t stream) {
  return Random(static_cast<std::uint64_t>(run.seed), RandomUse::kBatches, stream);
}

class SyntheticObjective final : public Objective {
 public:
  SyntheticObjective(const Context& context, const SyntheticTask& task, const SyntheticRun& run,
                     const LanguageModel& model)
      : task_(task), run_(run), model_(model), tape_(context) {}

  std::span<Parameter* const> parameters() override { return model_.parameters(); }
  index updates_per_epoch() const override { return run_.updates; }
  index begin_update(index update) override {
    problems_.emplace(task_, run_.batch, random_of(run_, static_cast<std::uint64_t>(update)));
    return run_.batch;
  }
  double forward(index) override {
    tape_.reset(TapeMode::kTrain);
    loss_ = model_.loss(tape_, problems_->batch(), {.scale = 1 / static_cast<double>(run_.batch)});
    return double{loss_.value<float>()[0][0]};
  }
  void backward() override { tape_.backward(loss_); }
  bool has_validation() const override { return false; }
  std::optional<Validation> validate(const std::function<bool()>&) override { return std::nullopt; }

 private:
  const SyntheticTask& task_;
  const SyntheticRun& run_;
  const LanguageModel& model_;
  Tape tape_;
  std::optional<Problems> problems_;
  Variable loss_;
};

TrainerSetup setup_of(const SyntheticTask& task, const SyntheticRun& run,
                      const std::filesystem::path& folder) {
  TrainerSetup setup =
      setup_in(folder, to_json(run.model), fmt::format("{} {}", task.name, run.batch));
  TrainOptions& options = setup.options;
  options.lr = run.lr;
  options.min_lr = run.lr / 10;
  options.warmup = std::min<index>(100, run.updates);
  options.beta2 = 0.99;
  options.weight_decay = 0;
  options.stop_after = fmt::format("{}u", run.updates);
  options.eval_every = options.save_every = "100u";
  options.keep = 1;
  options.seed = static_cast<std::uint64_t>(run.seed);
  return setup;
}

double accuracy(const Context& context, const SyntheticTask& task, const SyntheticRun& run,
                const LanguageModel& model) {
  constexpr index kProblems = 1000, kAtOnce = 50;
  constexpr std::uint64_t kTest = std::uint64_t{1} << 40;  // no update has this number
  index right = 0;
  Tape tape(context, TapeMode::kInference);
  for (index begin = 0; begin < kProblems; begin += kAtOnce) {
    const Problems problems(task, kAtOnce,
                            random_of(run, kTest + static_cast<std::uint64_t>(begin)));
    tape.reset();
    const Rows<const float> logits = model.logits(tape, problems.batch()).value<float>();
    for (index n = 0; n < kAtOnce; ++n) {
      const float* const row = logits[(n + 1) * task.length - 1];
      const auto best = std::max_element(row, row + logits.columns) - row;
      right += best == problems.answers[static_cast<std::size_t>(n)] ? 1 : 0;
    }
  }
  return static_cast<double>(right) / kProblems;
}

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
  const std::string name = run_name(row);
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

double accuracy_after_training(const Context& context, const SyntheticTask& task,
                               const SyntheticRun& asked, const std::filesystem::path& folder,
                               const ReproduceObserver& observer) {
  SyntheticRun run = asked;
  run.model.vocabulary = task.vocabulary;
  run.model.block = task.length;
  const LanguageModel model(run.model, static_cast<std::uint64_t>(run.seed));
  run.model = model.config();
  SyntheticObjective objective(context, task, run, model);
  StopWhenAsked watching(observer.stop);
  run_trainer(context, objective, watching, setup_of(task, run, folder));
  return accuracy(context, task, run, model);
}

void reproduce_order(const Context& context, const ReproduceOptions& options,
                     const ReproduceObserver& observer) {
  create_folders(options.output);
  const SyntheticTask task = order_task();
  for (const auto& [position, name] : enum_names(PositionKind())) {
    for (index seed = 1; seed <= options.seeds; ++seed) {
      const SyntheticRun run{.model = small_model(LanguageModelKind::kTransformer, position),
                             .batch = 64,
                             .updates = options.share_of(1500),
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
                               .updates = options.share_of(2000),
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
