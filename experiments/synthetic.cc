// SPDX-License-Identifier: Apache-2.0
#include "experiments/synthetic.h"

#include <algorithm>

#include "experiments/stop_when_asked.h"
#include "fovea/base/file.h"
#include "fovea/base/version.h"
#include "fovea/config/json.h"
#include "fovea/simd/isa.h"
#include "fovea/tensor/checksum.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/run_lock.h"
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
  TrainerSetup setup;
  setup.folder = folder;
  setup.identity = {.model = xxh3_128(to_json(run.model)),
                    .data = xxh3_128(fmt::format("{} {}", task.name, run.batch)),
                    .tokenizer = "",
                    .isa = std::string(isa_name(current_isa())),
                    .version = FOVEA_VERSION};
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

}  // namespace

double accuracy_after_training(const Context& context, const SyntheticTask& task,
                               const SyntheticRun& asked, const std::filesystem::path& folder,
                               const ReproduceObserver& observer) {
  SyntheticRun run = asked;
  run.model.vocabulary = task.vocabulary;
  run.model.block = task.length;
  const LanguageModel model(run.model, static_cast<std::uint64_t>(run.seed));
  run.model = model.config();
  create_folders(folder);
  const RunLock lock(folder);
  const bool began = run_began(folder);
  if (!began) write_model_files(folder, {});
  SyntheticObjective objective(context, task, run, model);
  StopWhenAsked watching(observer.stop);
  Trainer trainer(context, objective, watching, setup_of(task, run, folder));
  if (began) trainer.resume();
  if (trainer.run().stopped) throw ReproduceStopped();
  return accuracy(context, task, run, model);
}

}  // namespace fovea
