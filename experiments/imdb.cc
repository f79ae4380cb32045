// SPDX-License-Identifier: Apache-2.0
// E1, E2, E3, P9: the text classifier of Su 2018 (kexue.fm/4765, its code for Keras) on the
// reviews of IMDB, as Keras trains it: 20,000 words, the last 80 of a review, Adam with learning
// rate 1e-3 and epsilon 1e-7, batches of 32, 5 epochs. Each epoch is measured on the test reviews.
#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/experiment.h"
#include "experiments/imdb_text.h"
#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/file.h"
#include "fovea/base/version.h"
#include "fovea/config/json.h"
#include "fovea/report/plot.h"
#include "fovea/simd/isa.h"
#include "fovea/task/classify/objective.h"
#include "fovea/tensor/checksum.h"
#include "fovea/train/history.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/run_lock.h"
#include "fovea/train/trainer.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOrigin =
    "the Large Movie Review Dataset v1.0 (Maas et al. 2011), a review a line: label (1: positive), "
    "TAB, text; negative ones first, each by its number; packed by zstd";
constexpr DataFile kTrain{"imdb/train.tsv.zst", "0c0aa0bd06b84349889eb7e69f029d80",
                          "35c9437ca8223a4cb96a962624d937cc568d748a67d3293bc500f7860a33ac4d",
                          kOrigin};
constexpr DataFile kTest{"imdb/test.tsv.zst", "c2a66e6cee40a509294d115ebda8c484",
                         "087864b7d15466303dd03d32031471f45ff9eacb80d3e8749d1fbb6a6e31625e",
                         kOrigin};

constexpr index kWords = 20000, kLength = 80, kEpochs = 5;

constexpr std::string_view kUnscaled = "attention:heads=8:head-dim=16:scale=1:no-output:plain";
constexpr std::string_view kScaled = "attention:heads=8:head-dim=16:no-output:plain";

// By the source, after the last epoch, but for the best accuracy and that after each.
struct Published {
  double best_accuracy, accuracy, loss, train_accuracy, train_loss;
  std::array<double, kEpochs> by_epoch;
};
constexpr Published kE1{.8430, .7925, .9310, .9730, .0750, {.8430, .8284, .8137, .8009, .7925}};
constexpr Published kE2{.8447, .8178, .8095, .9947, .0182, {.8413, .8447, .8313, .8243, .8178}};

struct ImdbModel {
  std::string_view experiment;
  std::string_view variant;
  bool compat;  // padding is a token like any other
  std::string_view encoder;
  PositionKind position;
  const Published* published;
};

constexpr std::array kImdbModels = {
    ImdbModel{"E1", "compat-unscaled", true, kUnscaled, PositionKind::kNone, &kE1},
    ImdbModel{"E1", "compat-scaled", true, kScaled, PositionKind::kNone, &kE1},
    ImdbModel{"E1", "fixed", false, kScaled, PositionKind::kNone, &kE1},
    ImdbModel{"E2", "compat-unscaled", true, kUnscaled, PositionKind::kSinusoidal, &kE2},
    ImdbModel{"E2", "compat-scaled", true, kScaled, PositionKind::kSinusoidal, &kE2},
    ImdbModel{"E2", "fixed", false, kScaled, PositionKind::kSinusoidal, &kE2},
    ImdbModel{"E3", "compat-lstm", true, "lstm", PositionKind::kNone, nullptr},
    ImdbModel{"E3", "fixed-lstm", false, "lstm", PositionKind::kNone, nullptr},
    ImdbModel{"P9", "compat-learned", true, kUnscaled, PositionKind::kLearned, nullptr},
    ImdbModel{"P9", "fixed-learned", false, kScaled, PositionKind::kLearned, nullptr},
};

ClassifierConfig config_of(const ImdbModel& model) {
  ClassifierConfig c;
  c.task = ClassifierTask::kBinary;
  c.classes = 2;
  c.encoder = model.encoder;
  c.init = InitScheme::kKeras;
  c.forget_bias = 0;  // as docs/REPRODUCE.md was measured
  c.width = 128;
  c.block = kLength;
  c.position = model.position;
  c.sinusoid = SinusoidOrder::kSinCos;
  c.embedding_scale = 1;
  // The last state, which Keras' LSTM gives.
  if (c.encoder == "lstm") c.pooling = PoolingKind::kLast;
  c.output_dropout = .5;
  c.vocabulary = kWords;
  return resolve(c);
}

// The examples; for a trial, every n-th review, so that both labels are among them.
Examples examples_of(const Reviews& reviews, const KerasVocabulary& vocabulary, bool pad,
                     double share) {
  Examples examples;
  const auto all = static_cast<double>(reviews.texts.size());
  const auto count = static_cast<std::size_t>(std::max(2.0, std::round(share * all)));
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t i = n * reviews.texts.size() / count;
    const std::vector<token> ids = last_ids(vocabulary.encode(reviews.texts[i]), kLength, pad);
    examples.stream.insert(examples.stream.end(), ids.begin(), ids.end());
    examples.starts.push_back(static_cast<index>(examples.stream.size()));
    examples.labels.push_back(reviews.labels[i]);
    examples.label_starts.push_back(static_cast<index>(examples.labels.size()));
  }
  return examples;
}

// Reviews for training and for validation.
struct ReviewSets {
  Examples train, test;
};

// As ClassifierObjective, and counts right answers in training, with dropout, as Keras does.
class ImdbObjective final : public Objective {
 public:
  ImdbObjective(const Context& context, const Classifier& model, const ReviewSets& sets,
                std::uint64_t seed)
      : model_(model),
        seed_(seed),
        tape_(context),
        training_(sets.train, {},
                  {.size = sets.train.size(), .batch_size = 32, .seed = seed, .by_length = false}),
        test_(sets.test, {}, 250) {}

  std::span<Parameter* const> parameters() override { return model_.parameters(); }
  index updates_per_epoch() const override { return training_.updates_per_epoch(); }
  index begin_update(index update) override {
    if (update % updates_per_epoch() == 0) right_ = seen_ = 0;
    batch_ = training_.batch(update, 0);
    update_ = static_cast<std::uint64_t>(update);
    return batch_.size();
  }
  double forward(index) override {
    const ClassifierLossOptions options{.scale = 1 / static_cast<double>(batch_.size()),
                                        .dropout = {.seed = seed_, .step = update_}};
    const LabelledTexts texts = view_of(batch_, model_.config());
    tape_.reset(TapeMode::kTrain);
    const Variable logits = model_.logits(tape_, texts.texts, options);
    for (index n = 0; n < batch_.size(); ++n) {
      right_ += (logits.value<float>()[n][0] > 0) == (texts.labels[n] == 1) ? 1 : 0;
    }
    seen_ += batch_.size();
    loss_ = model_.loss_of(tape_, logits, texts, options);
    return double{loss_.value<float>()[0][0]};
  }
  void backward() override { tape_.backward(loss_); }
  bool has_validation() const override { return true; }
  std::optional<Validation> validate(const std::function<bool()>& interrupted) override {
    const auto found = predict_set(tape_, model_, test_, {}, interrupted);
    if (!found) return std::nullopt;
    Validation validation =
        measure(*found, test_.examples(), model_.config(), {}, ClassifierMetric::kAccuracy);
    validation.metrics.push_back(
        {"train_accuracy", static_cast<double>(right_) / static_cast<double>(seen_)});
    return validation;
  }

 private:
  const Classifier& model_;
  const std::uint64_t seed_;
  Tape tape_;
  ExampleTraining training_;
  ExampleEvaluation test_;
  ExampleBatch batch_;
  std::uint64_t update_ = 0;
  index right_ = 0, seen_ = 0;
  Variable loss_;
};

// Stops without a checkpoint: a run goes on from the end of an epoch, so means over an epoch are
// always whole.
class StopBetweenUpdates final : public TrainingObserver {
 public:
  explicit StopBetweenUpdates(const std::function<bool()>& stop) : stop_(stop) {}
  void updated(const UpdateRecord&, double) override {
    if (stop_ && stop_()) throw ReproduceStopped();
  }

 private:
  const std::function<bool()>& stop_;
};

TrainerSetup setup_of(const ClassifierConfig& config, const ReviewSets& sets, index seed,
                      const fs::path& folder) {
  TrainerSetup setup;
  setup.folder = folder;
  ClassifierConfig model = config;
  setup.identity = {
      .model = xxh3_128(to_json(model)),
      .data = xxh3_128(fmt::format("imdb {} {}", sets.train.size(), sets.train.stream.size())),
      .tokenizer = "",
      .isa = std::string(isa_name(current_isa())),
      .version = FOVEA_VERSION};
  TrainOptions& options = setup.options;
  options.lr = 1e-3;
  options.schedule = ScheduleKind::kConstant;
  options.warmup = 0;
  options.beta2 = 0.999;
  options.epsilon = 1e-7;
  options.weight_decay = 0;
  options.clip = 0;
  options.stop_after = fmt::format("{}e", kEpochs);
  options.eval_every = options.save_every = "1e";
  options.log_every = 1;
  options.keep = 1;
  options.seed = static_cast<std::uint64_t>(seed);
  return setup;
}

// The numbers of a run after each epoch.
struct ImdbEpochs {
  std::vector<double> accuracy, loss, train_accuracy, train_loss, seconds;
};

ImdbEpochs epochs_of(const HistoryRecords& history) {
  ImdbEpochs epochs;
  for (const MetricsRecord& record : history.metrics) {
    for (const MetricValue& metric : record.values) {
      if (metric.name == "accuracy") epochs.accuracy.push_back(metric.value);
      if (metric.name == "train_accuracy") epochs.train_accuracy.push_back(metric.value);
    }
  }
  for (const EvaluationRecord& record : history.evaluations) {
    epochs.loss.push_back(record.valid_loss);
    epochs.train_loss.push_back(record.train_loss);
  }
  // The time of updates alone: the first of an epoch is left out, as it follows an evaluation.
  const std::size_t updates = history.updates.size() / std::max<std::size_t>(kEpochs, 1);
  for (std::size_t end = updates; updates > 1 && end <= history.updates.size(); end += updates) {
    const double took = history.updates[end - 1].seconds - history.updates[end - updates].seconds;
    epochs.seconds.push_back(took * static_cast<double>(updates) /
                             static_cast<double>(updates - 1));
  }
  return epochs;
}

class Imdb {
 public:
  Imdb(const Context& context, const ReproduceOptions& options, const ReproduceObserver& observer)
      : context_(context), options_(options), observer_(observer) {
    const Reviews train = read_reviews(require_data(options.data, kTrain));
    const Reviews test = read_reviews(require_data(options.data, kTest));
    const KerasVocabulary vocabulary(train.texts, kWords);
    const auto sets = [&](bool pad) {
      return ReviewSets{examples_of(train, vocabulary, pad, options.share),
                        examples_of(test, vocabulary, pad, options.share)};
    };
    padded_ = sets(true);
    packed_ = sets(false);
    shown_ = choose_review(test, vocabulary);
  }

  void run() {
    for (index seed = 1; seed <= options_.seeds; ++seed) {
      for (const ImdbModel& model : kImdbModels) {
        const ReproduceVariant variant =
            model.compat ? ReproduceVariant::kCompat : ReproduceVariant::kFixed;
        const auto& asked = options_.variants;
        if (std::find(asked.begin(), asked.end(), variant) != asked.end()) run_one(model, seed);
      }
    }
  }

 private:
  void run_one(const ImdbModel& model, index seed) {
    const std::string name = fmt::format("{}-{}-seed{}", model.experiment, model.variant, seed);
    if (observer_.begins) observer_.begins(fmt::format("{}: {} epochs", name, kEpochs));
    const fs::path folder = options_.output / name;
    if (read_history(folder / "metrics.jsonl").metrics.size() < kEpochs) {
      try {
        train(model, seed, folder);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kDiverged) throw;
        if (observer_.begins) observer_.begins(error.what());
        observer_.measured({.experiment = std::string(model.experiment),
                            .variant = std::string(model.variant),
                            .seed = seed,
                            .metric = "val_accuracy"});
        return;  // and go on with the other runs
      }
    }
    report(model, seed, epochs_of(read_history(folder / "metrics.jsonl")));
    draw_curves(model.experiment);
    if (seed == 1) draw_attention(model, folder);
  }

  void train(const ImdbModel& chosen, index seed, const fs::path& folder) {
    create_folders(folder);
    const RunLock lock(folder);
    const bool began = run_began(folder);
    if (!began) write_model_files(folder, {});
    const ReviewSets& sets = chosen.compat ? padded_ : packed_;
    const Classifier model(config_of(chosen), static_cast<std::uint64_t>(seed));
    ImdbObjective objective(context_, model, sets, static_cast<std::uint64_t>(seed));
    StopBetweenUpdates watching(observer_.stop);
    Trainer trainer(context_, objective, watching, setup_of(model.config(), sets, seed, folder));
    if (began) trainer.resume();
    if (trainer.run().stopped) throw ReproduceStopped();
  }

  // Draws where the weights with the best accuracy attend in a review. An existing picture stays.
  void draw_attention(const ImdbModel& chosen, const fs::path& folder) {
    const std::string name = fmt::format("{}-{}", chosen.experiment, chosen.variant);
    const fs::path picture = options_.output / (name + "-attention.svg");
    const Classifier model(config_of(chosen), 1);
    if (model.attentions() != 1 || fs::exists(picture)) return;
    restore_parameters(model.parameters(), read_model_weights(folder), folder.string());
    const ShownReview window = window_of(shown_, kLength, chosen.compat);
    write_file_atomically(picture, draw_review_attention(context_, model, window, name));
  }

  void report(const ImdbModel& model, index seed, const ImdbEpochs& epochs) {
    ReproduceRow row{.experiment = std::string(model.experiment),
                     .variant = std::string(model.variant),
                     .seed = seed,
                     .metric = {}};
    if (!epochs.seconds.empty()) row.seconds_per_epoch = median(epochs.seconds);
    if (options_.pytorch) row.pytorch_seconds_per_epoch = options_.pytorch(row.experiment);
    const bool compares = model.published != nullptr && options_.share == 1;
    const auto measured = [&](std::string metric, const std::vector<double>& by_epoch, double ours,
                              double Published::*published) {
      row.metric = std::move(metric);
      row.ours = ours;
      row.by_epoch = by_epoch;
      if (compares) row.published = model.published->*published;
      observer_.measured(row);
    };
    const double best = *std::max_element(epochs.accuracy.begin(), epochs.accuracy.end());
    measured("best_val_accuracy", epochs.accuracy, best, &Published::best_accuracy);
    measured("val_accuracy", epochs.accuracy, epochs.accuracy.back(), &Published::accuracy);
    measured("val_loss", epochs.loss, epochs.loss.back(), &Published::loss);
    measured("train_accuracy", epochs.train_accuracy, epochs.train_accuracy.back(),
             &Published::train_accuracy);
    measured("train_loss", epochs.train_loss, epochs.train_loss.back(), &Published::train_loss);
  }

  // One picture for each experiment, anew after each run: of all runs in the folder, also those of
  // earlier calls.
  void draw_curves(std::string_view experiment) const {
    SeedCurves curves("accuracy on the test set");
    const std::vector<std::string> names = names_in(options_.output);
    for (const ImdbModel& model : kImdbModels) {
      if (model.experiment != experiment) continue;
      if (model.published != nullptr && options_.share == 1) {
        const auto& published = model.published->by_epoch;
        curves.publish(experiment, {published.begin(), published.end()});
      }
      const std::string begin = fmt::format("{}-{}-seed", experiment, model.variant);
      for (const std::string& name : names) {
        if (!name.starts_with(begin)) continue;
        const ImdbEpochs epochs = epochs_of(read_history(options_.output / name / "metrics.jsonl"));
        if (epochs.accuracy.size() != kEpochs) continue;  // not finished, or diverged
        curves.add(experiment, model.variant, epochs.accuracy);
      }
    }
    write_file_atomically(options_.output / fmt::format("{}.svg", experiment),
                          draw_svg(curves.plot(experiment)));
  }

  const Context& context_;
  const ReproduceOptions& options_;
  const ReproduceObserver& observer_;
  ReviewSets padded_, packed_;
  ShownReview shown_;
};

}  // namespace

void reproduce_imdb(const Context& context, const ReproduceOptions& options,
                    const ReproduceObserver& observer) {
  create_folders(options.output);
  Imdb(context, options, observer).run();
}

}  // namespace fovea
