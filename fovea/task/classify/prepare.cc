// SPDX-License-Identifier: Apache-2.0
// Prepares a run from its options.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/config/json.h"
#include "fovea/linear/decide.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/model/ngram_ids.h"
#include "fovea/task/classify/linear.h"
#include "fovea/task/classify/notices.h"
#include "fovea/task/classify/read_texts.h"
#include "fovea/task/classify/run.h"
#include "fovea/task/setting_parts.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

namespace {

// The longest text that is read as a whole unless --max-length says more. The scores of attention
// grow with the square of the length.
constexpr index kLongestBag = 4096, kLongestOfEncoder = 512;

constexpr std::string_view kLessText = "use less text, or a machine with more memory";

// A search leaves the choice open until it has found one; a run cannot.
ClassifierModel kind_of(ClassifierSettings settings) {
  settings.search.budget.clear();
  choose_model(settings);
  return settings.model.kind;
}

// Checks the sizes before any file is read.
void check_sizes(const ClassifierSettings& settings) {
  ClassifierConfig probe = settings.model;
  if (!probe.has_base()) probe.vocabulary = kFirstLearnedToken;
  if (settings.text.input == InputKind::kNpz) probe.features = probe.joints = 1;
  probe.classes = 2;
  probe.task = ClassifierTask::kBinary;
  // The vectors, which have not been read yet, set this width.
  if (!settings.text.embeddings.empty() && probe.width == 0) probe.width = ClassifierConfig().width;
  if (settings.text.max_length > 0 && !probe.has_base()) probe.block = settings.text.max_length;
  resolve(probe);
}

std::unique_ptr<Tokenizer> learn_from(const ClassifierTextOptions& options,
                                      const LabelledSet& set) {
  double bytes = 0;
  for (const LabelledText& row : set.table.rows) bytes += static_cast<double>(row.text.size()) + 1;
  require_memory("the texts as one", bytes, kLessText);
  std::string all;
  all.reserve(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < set.table.rows.size(); ++i) {
    if (!set.validates[i]) all.append(set.table.rows[i].text).append(1, '\n');
  }
  if (options.input == InputKind::kPairs) std::replace(all.begin(), all.end(), kBetweenPair, '\n');
  return learn_tokenizer(options.tokenizer, all, "training text",
                         with_subword_model({.lower = options.lower,
                                             .marks = false,
                                             .split = options.words,
                                             .min_count = options.min_count},
                                            options.tokenizer_model));
}

// The examples of one half of the texts, and how long these were before they were cut.
struct LabelledHalf {
  Examples examples = {};
  std::vector<index> lengths = {};
};

struct HalfOf {
  const LabelledSet& set;
  const ClassifierRun& run;  // its tokenizer, or its frames
  const ClassifierTextOptions& options;
  const NumberScale& numbers;
};

TextTokens tokens_of_row(const HalfOf& of, index i) {
  const auto at = static_cast<std::size_t>(i);
  if (of.set.table.has_frames()) {
    const std::vector<index>& starts = of.run.frames.starts;
    return tokens_of_frames(of.options, starts[at], starts[at + 1] - starts[at]);
  }
  if (of.run.pieces.tokenizer) {
    return tokens_of_text(*of.run.pieces.tokenizer, of.options, of.set.table.rows[at].text,
                          place_of(of.set.table, i));
  }
  return tokens_of_text(*of.run.tokenizer, of.options, of.set.table.rows[at].text,
                        place_of(of.set.table, i));
}

void append_truth(const HalfOf& of, const LabelledText& row, Examples& e) {
  if (of.options.regression) {
    e.numbers.push_back(static_cast<float>(of.numbers.to_model(row.numbers[0])));
  } else {
    for (const std::string& label : row.labels) e.labels.push_back(of.set.labels.find(label));
  }
  e.label_starts.push_back(static_cast<index>(e.labels.size()));
}

LabelledHalf make_half(const HalfOf& of, bool validates) {
  LabelledHalf half;
  Examples& e = half.examples;
  for (index i = 0; i < of.set.table.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (of.set.validates[at] != validates) continue;
    const LabelledText& row = of.set.table.rows[at];
    const TextTokens tokens = tokens_of_row(of, i);
    half.lengths.push_back(tokens.length);
    if (tokens.truncated()) ++e.truncated;
    e.stream.insert(e.stream.end(), tokens.ids.begin(), tokens.ids.end());
    e.starts.push_back(static_cast<index>(e.stream.size()));
    append_truth(of, row, e);
  }
  return half;
}

std::vector<double> numbers_to_train(const LabelledSet& set) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < set.table.rows.size(); ++i) {
    if (!set.validates[i]) numbers.push_back(set.table.rows[i].numbers[0]);
  }
  return numbers;
}

std::vector<std::string> texts_to_train(LabelledSet& set) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < set.table.rows.size(); ++i) {
    if (!set.validates[i]) texts.push_back(std::move(set.table.rows[i].text));
  }
  return texts;
}

void cut_anew(ClassifierRun& run, const ClassifierSettings& settings, LabelledSet& set) {
  const ClassifierTextOptions& text = settings.text;
  run.training->cut_anew({.texts = texts_to_train(set),
                          .how = {run.tokenizer.get(), text.subword_sampling, settings.recipe.seed},
                          .most = text.max_length,
                          .drops_front = text.truncate == Truncate::kFront});
}

// Mean and standard deviation, so that a model of any numbers begins near them.
NumberScale scale_of(const std::vector<double>& numbers) {
  const auto n = static_cast<double>(numbers.size());
  double sum = 0, largest = 0, squares = 0;
  for (const double number : numbers) sum += number;
  const double mean = sum / n;
  for (const double number : numbers) largest = std::max(largest, std::abs(number - mean));
  // In units of the largest, no square is too small for a double.
  for (const double number : numbers) squares += std::pow((number - mean) / largest, 2);
  const double deviation = largest * std::sqrt(squares / n);
  if (deviation >= std::numeric_limits<float>::min()) return {mean, deviation};
  throw Error(
      ErrorCode::kInputFormat,
      fmt::format("the numbers differ too little for float32: they have a standard deviation of {}",
                  deviation),
      "write them in a smaller unit");
}

std::string fingerprint(const Examples& e) {
  return xxh3_128({bytes_of(e.stream), bytes_of(e.starts), bytes_of(e.labels),
                   bytes_of(e.label_starts), bytes_of(e.numbers)});
}

// The samples as the model sees them; those to train on say how they are normalised.
void take_frames(ClassifierRun& run, ClassifierSettings& settings, LabelledSet& set) {
  run.outputs.frames = scale_of(set.frames, set.validates);
  settings.model.features = set.frames[0].features;
  settings.model.joints = set.frames[0].joints;
  for (FrameFile& file : set.frames) {
    append(run.frames, file, run.outputs.frames);
    file.x = {};
  }
}

// The tokenizer of a base, or of a run that began from one.
void take_pieces(ClassifierRun& run, const ClassifierSettings& settings,
                 std::optional<TokenizerData> known) {
  run.kept = known ? std::move(*known) : tokenizer_of_encoder(settings.from.base);
  run.pieces =
      text_of_kept(run.kept, settings.model, "tokenizer.txt", texts_of(settings.text.input));
}

// Prepares the input: the tokenizer, which is learned unless it is known, or frames.
void take_input(ClassifierRun& run, ClassifierSettings& settings, LabelledSet& set,
                std::optional<TokenizerData> known) {
  ClassifierTextOptions& text = settings.text;
  if (set.table.has_frames()) return take_frames(run, settings, set);
  if (settings.model.has_base()) return take_pieces(run, settings, std::move(known));
  if (text.tokenizer == "auto") text.tokenizer = choose_tokenizer(set, run.overview);
  if (!tokenizer_kind(text.tokenizer).has_lower) text.lower = false;
  run.tokenizer = known ? make_tokenizer(*known) : learn_from(text, set);
  settings.model.vocabulary = vocabulary_of(*run.tokenizer, text.input);
}

std::string data_fingerprint(const Examples& training, const Examples& validation,
                             const FrameSet& frames) {
  const std::string of_examples = xxh3_128({fingerprint(training), fingerprint(validation)});
  return frames.values.empty() ? of_examples : xxh3_128({of_examples, bytes_of(frames.values)});
}

LabelCounts count_labels(const Examples& e, const ClassifierTextOptions& options, index labels) {
  LabelCounts found{.counts = std::vector<index>(static_cast<std::size_t>(labels)),
                    .texts = e.size(),
                    .multi_label = options.multi_label};
  for (const std::int32_t label : e.labels) ++found.counts[static_cast<std::size_t>(label)];
  return found;
}

// No more rows for n-grams than there can be of them: few texts make a small model.
ClassifierConfig with_buckets(ClassifierConfig config, const Examples& training) {
  const ClassifierConfig usual = resolve(config);
  if (usual.ngrams == 1 || config.buckets != 0) return config;
  index count = 0;
  for (index i = 0; i < training.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    count += ngram_count(training.starts[at + 1] - training.starts[at], usual.ngrams);
  }
  config.buckets = std::clamp<index>(count, 1, usual.buckets);
  return config;
}

void note_many_classes(ClassifierRun& run) {
  const index classes = run.outputs.labels.empty() ? 0 : run.settings.model.classes;
  const index texts = run.texts_to_train();
  if (classes <= 20 || 4 * classes <= texts) return;
  run.notes.push_back(
      fmt::format("{} classes for {} {}s: if the labels are numbers, say --regression{}", classes,
                  texts, words_of(run.settings.text.input).entry,
                  run.settings.text.input != InputKind::kNpz
                      ? "; if another column has the labels, --label-column"
                      : ""));
}

void note_rest(ClassifierRun& run, index max_length, std::vector<index> trained,
               std::vector<index> validated) {
  const Examples& training = run.training->examples();
  const Examples* validation = run.validation ? &run.validation->examples() : nullptr;
  const InputWords words = words_of(run.settings.text.input);
  run.overview.push_back(
      length_line("training", {training, std::move(trained)}, max_length, words));
  if (validation != nullptr) {
    run.overview.push_back(
        length_line("validation", {*validation, std::move(validated)}, max_length, words));
  }
  note_no_validation(run, "--patience has");
  const token unknown = run.tokenizer ? run.tokenizer->special().unknown : kNoToken;
  const std::string line = unknown == kNoToken ? "" : unknown_line(training, validation, unknown);
  if (!line.empty()) run.overview.push_back(line);
  note_many_classes(run);
}

// The labels and their weights, and the kind of answer that follows from them.
void take_labels(ClassifierRun& run, ClassifierSettings& settings, const LabelledSet& set,
                 const Examples& trains) {
  const ClassifierTextOptions& text = settings.text;
  const LabelCounts counts = count_labels(trains, text, set.labels.size());
  run.class_weights = class_weights(text.class_weights, set.labels, counts);
  run.overview.push_back(text.regression ? number_line(numbers_to_train(set), run.outputs.numbers)
                                         : balance_line(set.labels, counts));
  settings.model.task = task_of(text, set.labels.size());
  settings.model.classes = text.regression ? 1 : set.labels.size();
}

RunIdentity identity_of(const ClassifierRun& run, const ClassifierConfig& model, std::string data) {
  return identity_of_run(to_json(model), std::move(data),
                         run.tokenizer          ? xxh3_128(to_text(run.tokenizer->data()))
                         : run.pieces.tokenizer ? xxh3_128(to_text(run.kept))
                                                : "");
}

// The texts of one half with what is true of them, for a model that reads texts itself.
KnownTexts known_texts(const HalfOf& of, LabelledSet& set, bool validates) {
  KnownTexts half;
  for (std::size_t i = 0; i < set.table.rows.size(); ++i) {
    if (set.validates[i] != validates) continue;
    append_truth(of, set.table.rows[i], half.truth);
    half.texts.push_back(std::move(set.table.rows[i].text));
    half.truth.starts.push_back(0);
  }
  return half;
}

std::string fingerprint(const KnownTexts& known) {
  std::vector<std::string> texts;
  for (const std::string& text : known.texts) texts.push_back(xxh3_128(text));
  return xxh3_128(fmt::format("{}{}", fmt::join(texts, ""), fingerprint(known.truth)));
}

// A precision is one of a label, and which of many classes is meant is no matter of one threshold.
void require_rule(const ClassifierSettings& s) {
  const bool is_of_many = s.model.task == ClassifierTask::kSingleLabel;
  require_together(
      !is_of_many || parse_threshold(s.linear.threshold).goal == ThresholdGoal::kF1,
      fmt::format("--threshold {}", s.linear.threshold),
      fmt::format("it is for two classes or for --multi-label, and there are {} classes",
                  s.model.classes),
      "leave it out, or name one class against the rest in the labels");
}

ClassifierRun prepare_linear(ClassifierRun run, ClassifierSettings settings, LabelledSet& set) {
  const HalfOf of{set, run, settings.text, run.outputs.numbers};
  KnownTexts trains = known_texts(of, set, false), validates = known_texts(of, set, true);
  take_labels(run, settings, set, trains.truth);
  require_rule(settings);
  settings.model = resolve(settings.model);
  run.identity =
      identity_of(run, settings.model, xxh3_128({fingerprint(trains), fingerprint(validates)}));
  run.linear = std::make_unique<LinearTexts>(
      LinearTexts{.training = std::move(trains), .validation = std::move(validates)});
  run.settings = std::move(settings);
  note_many_classes(run);
  learn_ngrams(run);
  return run;
}

}  // namespace

ClassifierRun prepare_run(ClassifierSettings settings, std::optional<TokenizerData> known,
                          RunWeights weights) {
  check_options(settings);
  check_sizes(settings);
  LabelledSet set = read_labelled_set(settings.text, settings.recipe.seed);
  return prepare_run(std::move(settings), std::move(set), std::move(known), weights);
}

ClassifierRun prepare_run(ClassifierSettings settings, LabelledSet set,
                          std::optional<TokenizerData> known, RunWeights weights) {
  ClassifierTextOptions& text = settings.text;
  ClassifierRun run;
  run.notes = std::move(set.notes);
  run.overview = std::move(set.overview);
  run.outputs.labels = set.labels.names();
  run.outputs.columns = set.form;
  if (set.label_of_two) run.outputs.label_of_two = static_cast<index>(*set.label_of_two) + 1;
  if (text.regression) run.outputs.numbers = scale_of(numbers_to_train(set));
  settings.model.kind = kind_of(settings);
  if (settings.model.kind == ClassifierModel::kLinear) {
    return prepare_linear(std::move(run), std::move(settings), set);
  }
  take_input(run, settings, set, std::move(known));
  if (!text.embeddings.empty() && weights == RunWeights::kNew) {
    read_vectors(run, *run.tokenizer, text.embeddings, settings.model.width);
  }

  // The longest text that is trained, cut to the default, says what the model can see; of short
  // texts it is what the layers need.
  const bool follows = text.max_length == 0;
  const index most = run.pieces.tokenizer             ? run.pieces.max_length
                     : settings.model.encoder.empty() ? kLongestBag
                                                      : kLongestOfEncoder;
  if (follows) text.max_length = most;
  const HalfOf of{set, run, text, run.outputs.numbers};
  LabelledHalf trains = make_half(of, false);
  if (follows) {
    text.max_length =
        std::max(trains.examples.largest(1), std::min(reach_of(settings.model.encoder), most));
  }
  require_update({text.batch_size, text.max_length, settings.recipe.accumulate,
                  std::max<index>(settings.model.joints, 1)},
                 words_of(text.input).row,
                 "choose smaller sizes: an update holds fewer than 2^31 tokens, or rows of joints");
  LabelledHalf validates = make_half(of, true);

  take_labels(run, settings, set, trains.examples);
  if (!settings.model.has_base()) settings.model.block = text.max_length;
  settings.model = resolve(with_buckets(settings.model, trains.examples));
  run.identity = identity_of(run, settings.model,
                             data_fingerprint(trains.examples, validates.examples, run.frames));
  const TargetShape target{text.regression    ? TargetKind::kNumber
                           : text.multi_label ? TargetKind::kLabels
                                              : TargetKind::kClass,
                           settings.model.classes};
  run.training =
      std::make_unique<ExampleTraining>(std::move(trains.examples), target,
                                        EpochOrderOptions{.batch_size = text.batch_size,
                                                          .accumulate = settings.recipe.accumulate,
                                                          .seed = settings.recipe.seed});
  if (text.subword_sampling > 0) cut_anew(run, settings, set);
  if (validates.examples.size() > 0) {
    run.validation.emplace(std::move(validates.examples), target, text.batch_size);
  }
  if (settings.model.has_base()) {
    resolve_encoder_recipe(settings.recipe, run.training->updates_per_epoch(),
                           settings.from.warmup);
  } else {
    resolve_lengths(settings.recipe, run.training->updates_per_epoch(),
                    {.epochs = kClassifierEpochs});
  }
  run.settings = std::move(settings);
  if (run.settings.model.has_base()) {
    const Classifier shapes(run.settings.model,
                            ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
    begin_from_base(run, shapes.parameters(), weights, run.kept, BertHead::kText);
  }
  note_rest(run, run.settings.text.max_length, std::move(trains.lengths),
            std::move(validates.lengths));
  return run;
}

}  // namespace fovea
