// SPDX-License-Identifier: Apache-2.0
// E1, E2, E3, P9: the text classifier of Su 2018 (kexue.fm/4765, its code for Keras) on the
// reviews of IMDB, as Keras trains it: 20,000 words, the last 80 of a review, Adam with learning
// rate 1e-3 and epsilon 1e-7, batches of 32, 5 epochs. Each epoch is measured on the test reviews.
#include "experiments/imdb.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "experiments/experiment.h"
#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/file.h"
#include "fovea/base/words.h"
#include "fovea/config/json.h"
#include "fovea/grad/tape.h"
#include "fovea/report/heat_map.h"
#include "fovea/report/plot.h"
#include "fovea/simd/isa.h"
#include "fovea/task/classify/run.h"
#include "fovea/tensor/checksum.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"
#include "fovea/train/history.h"
#include "fovea/train/model_folder.h"
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

ClassifierRun run_of(const ReviewSets& sets, std::uint64_t seed) {
  ClassifierRun run;
  run.settings.recipe.seed = seed;
  run.settings.text.metric = ClassifierMetric::kAccuracy;
  run.training = std::make_unique<ExampleTraining>(
      sets.train, TargetShape{},
      EpochOrderOptions{
          .size = sets.train.size(), .batch_size = 32, .seed = seed, .by_length = false});
  run.validation.emplace(sets.test, TargetShape{}, 250);
  return run;
}

// Counts right answers in training, over an epoch and with dropout, as Keras does.
class ImdbObjective final : public ClassifierObjective {
 public:
  using ClassifierObjective::ClassifierObjective;

  index begin_update(index update) override {
    if (update % updates_per_epoch() == 0) of_epoch_ = {};
    return ClassifierObjective::begin_update(update);
  }
  double forward(index number) override {
    const double loss = ClassifierObjective::forward(number);
    of_epoch_ += hits_;
    return loss;
  }
  Hits hits() const override { return {}; }  // the metrics have them
  std::optional<Validation> validate(const Interrupted& interrupted) override {
    std::optional<Validation> found = ClassifierObjective::validate(interrupted);
    if (found) {
      found->metrics.push_back({"train_accuracy", static_cast<double>(of_epoch_.right) /
                                                      static_cast<double>(of_epoch_.of)});
    }
    return found;
  }

 private:
  Hits of_epoch_;
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
  ClassifierConfig model = config;
  TrainerSetup setup =
      setup_in(folder, to_json(model),
               fmt::format("imdb {} {}", sets.train.size(), sets.train.stream.size()));
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

class Imdb : Reproduction {
 public:
  Imdb(const Context& context, const ReproduceOptions& options, const ReproduceObserver& observer)
      : Reproduction(context, options, observer) {
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
    const ReproduceRow row{.experiment = std::string(model.experiment),
                           .variant = std::string(model.variant),
                           .seed = seed,
                           .metric = "val_accuracy"};
    tell(fmt::format("{}: {} epochs", run_name(row), kEpochs));
    const fs::path folder = options_.output / run_name(row);
    const bool is_finished = read_history(folder / "metrics.jsonl").metrics.size() >= kEpochs;
    if (!is_finished && !trains(row, [&] { train(model, seed, folder); })) return;
    report(model, row, epochs_of(read_history(folder / "metrics.jsonl")));
    draw_curves(model.experiment);
    if (seed == 1) draw_attention(model, folder);
  }

  void train(const ImdbModel& chosen, index seed, const fs::path& folder) {
    const ReviewSets& sets = chosen.compat ? padded_ : packed_;
    const Classifier model(config_of(chosen), static_cast<std::uint64_t>(seed));
    const ClassifierRun run = run_of(sets, static_cast<std::uint64_t>(seed));
    ImdbObjective objective(context_, model, run);
    StopBetweenUpdates watching(observer_.stop);
    run_trainer(context_, objective, watching, setup_of(model.config(), sets, seed, folder));
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

  void report(const ImdbModel& model, ReproduceRow row, const ImdbEpochs& epochs) {
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

  ReviewSets padded_, packed_;
  ShownReview shown_;
};

}  // namespace

void reproduce_imdb(const Context& context, const ReproduceOptions& options,
                    const ReproduceObserver& observer) {
  create_folders(options.output);
  Imdb(context, options, observer).run();
}

namespace {

constexpr std::string_view kFiltered = "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n";
constexpr token kBeforeFirstWord = 3;  // the id of rank 0, which no word has

struct WordCount {
  std::string_view word;
  index count, first_seen;
};

constexpr std::size_t kFewestWords = 30, kMostWords = 60;

}  // namespace

Reviews read_reviews(const std::filesystem::path& file) {
  const std::string text = read_text_file(file.string());
  Reviews reviews;
  std::string_view rest = text;
  for (index line = 1; !rest.empty(); ++line) {
    const std::string_view row = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(row.size() + 1, rest.size()));
    if (row.size() < 2 || row[1] != '\t' || (row[0] != '0' && row[0] != '1')) {
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}:{}: expected 0 or 1, a TAB and a text", file.string(), line),
                  "each line is a review, after its label");
    }
    reviews.labels.push_back(row[0] - '0');
    reviews.texts.emplace_back(row.substr(2));
  }
  return reviews;
}

std::vector<std::string> keras_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  while (!text.empty()) {
    const TakenCharacter c = take_character(text);
    if (c.bytes == " " || (c.bytes.size() == 1 && kFiltered.find(c.bytes[0]) != kFiltered.npos)) {
      end_word();
    } else {
      append_utf8(word, lower_character(c.value));
    }
  }
  end_word();
  return words;
}

KerasVocabulary::KerasVocabulary(std::span<const std::string> texts, index size) : size_(size) {
  KeyedMap<std::string, std::size_t> places;
  std::vector<index> counts;
  for (const std::string& text : texts) {
    for (std::string& word : keras_words(text)) {
      const auto [entry, is_new] = places.try_emplace(std::move(word), counts.size());
      if (is_new) counts.push_back(0);
      ++counts[entry->second];
      ++words_;
    }
  }
  std::vector<WordCount> order;
  for (const auto& [word, place] : places) {
    order.push_back({word, counts[place], static_cast<index>(place)});
  }
  std::sort(order.begin(), order.end(), [](const WordCount& a, const WordCount& b) {
    return a.count != b.count ? a.count > b.count : a.first_seen < b.first_seen;
  });
  for (const WordCount& one : order) {
    const index rank = distinct_words() + 1;
    if (rank + kBeforeFirstWord < size) rarest_kept_ = one.count;
    ranks_.emplace(one.word, rank);
  }
}

std::vector<token> KerasVocabulary::encode(std::string_view text) const {
  std::vector<token> ids{kKerasStart};
  for (const std::string& word : keras_words(text)) {
    const auto found = ranks_.find(word);
    const index id = found == ranks_.end() ? size_ : found->second + kBeforeFirstWord;
    ids.push_back(id < size_ ? static_cast<token>(id) : kKerasUnknown);
  }
  return ids;
}

std::vector<token> last_ids(std::span<const token> ids, index length, bool pad) {
  const auto asked = static_cast<std::size_t>(length);
  const std::span<const token> last = ids.last(std::min(ids.size(), asked));
  std::vector<token> window(pad ? asked - last.size() : 0, kKerasPad);
  window.insert(window.end(), last.begin(), last.end());
  return window;
}

ShownReview choose_review(const Reviews& reviews, const KerasVocabulary& vocabulary) {
  check(!reviews.texts.empty(), "reviews: there are none to show");
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < reviews.texts.size(); ++i) {
    const std::size_t words = keras_words(reviews.texts[i]).size();
    if (reviews.labels[i] != 1 || words < kFewestWords || words > kMostWords) continue;
    chosen = i;
    break;
  }
  ShownReview review{vocabulary.encode(reviews.texts[chosen]), keras_words(reviews.texts[chosen])};
  review.words.insert(review.words.begin(), "(start)");
  return review;
}

ShownReview window_of(const ShownReview& review, index length, bool pad) {
  ShownReview window{.ids = last_ids(review.ids, length, pad), .words = review.words};
  const auto kept = static_cast<std::ptrdiff_t>(std::min(review.ids.size(), window.ids.size()));
  window.words.erase(window.words.begin(), window.words.end() - kept);
  window.padding = static_cast<index>(window.ids.size()) - kept;
  return window;
}

std::string draw_review_attention(const Context& context, const Classifier& model,
                                  const ShownReview& review, std::string_view title) {
  const auto M = static_cast<index>(review.ids.size());
  const index P = review.padding, words = M - P;
  check(model.attentions() == 1 && static_cast<index>(review.words.size()) == words,
        "a heat map of a review: expected one attention and a word for each of {} ids; got {}, {}",
        words, model.attentions(), review.words.size());
  const std::array<std::int32_t, 2> offsets{0, static_cast<std::int32_t>(M)};
  HeadStatistics seen{.sees_keys = true};
  Tape tape(context, TapeMode::kInference);
  model.logits(tape, {.ids = {review.ids.data(), M}, .offsets = {offsets.data(), 2}},
               {.attention = {&seen, 1}});
  HeatMap map{.title = std::string(title),
              .subtitle = "mean weight of each word over the queries of a review, for each head",
              .columns = review.words,
              .values = {}};
  if (P > 0) map.columns.insert(map.columns.begin(), "(padding)");
  const auto heads = static_cast<index>(seen.received.size()) / M;
  for (index head = 0; head < heads; ++head) {
    map.rows.push_back(fmt::format("head {}", head + 1));
    const double* const weights = seen.received.data() + head * M;
    if (P > 0) map.values.push_back(std::accumulate(weights, weights + P, 0.0));
    map.values.insert(map.values.end(), weights + P, weights + M);
  }
  for (double& weight : map.values) weight /= static_cast<double>(M);
  return draw_heat_map(map);
}

}  // namespace fovea
