// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/text_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/machine.h"
#include "fovea/config/field.h"
#include "fovea/grad/tape.h"
#include "fovea/linear/decide.h"
#include "fovea/model/pass_plan.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr double kCostOfText = 20000;       // to read it: about that of so many flops
constexpr index kSmallestTextBatch = 1024;  // tokens

// The limits of the table of tokens: most bytes, and the share of the memory that batches leave.
// Filling it needs a batch beside it.
constexpr double kMostTableBytes = 256 << 20;
constexpr double kTableShareOfMemory = 0.25;

// A word and the space behind it seldom have more bytes.
constexpr std::size_t kBytesOfToken = 6;

TextTokens tokens_of_pieces(const LoadedClassifier& model, const NamedText& text) {
  const ClassifierTextOptions& options = model.settings.text;
  if (options.truncate == Truncate::kFront || model.reads_pairs()) {
    return tokens_of_text(*model.pieces.tokenizer, options, text.text, text.name);
  }
  require_utf8(text.text, text.name);
  MarkedTokens read = marked_tokens(*model.pieces.tokenizer, text.text, options.max_length);
  TextTokens tokens{.ids = std::move(read.ids)};
  tokens.length = static_cast<index>(tokens.ids.size()) + (read.truncated ? 1 : 0);
  return tokens;
}

// tokens_of_text(), but if the end of a text is dropped, only so much is read as is needed: a text
// that ends before a space has the same tokens as the whole has there.
TextTokens read_tokens(const LoadedClassifier& model, const NamedText& text) {
  if (model.reads_pieces()) return tokens_of_pieces(model, text);
  const ClassifierTextOptions& options = model.settings.text;
  const auto read = [&](std::string_view part) {
    return tokens_of_text(*model.tokenizer, options, part, text.name);
  };
  if (options.truncate != Truncate::kEnd || model.reads_pairs()) return read(text.text);
  for (auto bytes = kBytesOfToken * static_cast<std::size_t>(options.max_length);
       bytes < text.text.size(); bytes *= 2) {
    const std::size_t space = text.text.find(' ', bytes);
    if (space == std::string_view::npos) break;
    TextTokens tokens = read(text.text.substr(0, space));
    if (tokens.truncated()) return tokens;
  }
  return read(text.text);
}

index length_of(const TextTokens& text) { return static_cast<index>(text.ids.size()); }

}  // namespace

TextPredictor::TextPredictor(const Context& context, const LoadedClassifier& model,
                             index batch_tokens)
    : context_(context), model_(model), batch_tokens_(batch_tokens), tapes_(context) {
  check(batch_tokens >= 1, "predictions: {} tokens a batch; expected at least 1", batch_tokens);
  if (model.linear) return;
  const ClassifierConfig& config = model.config();
  const index longest =
      std::max(batch_tokens, std::min(config.block, model.settings.text.max_length));
  const index rows = longest * std::max<index>(config.joints, 1);
  const TapeLoad load{.tokens = rows, .mode = TapeMode::kInference, .sequences = rows};
  batch_bytes_ =
      plan_passes_apart(context, config, TextLoad{.texts = longest, .tape = load}).bytes();
  require_memory("the predictions", batch_bytes_,
                 "use fewer threads (--threads), or a machine with more memory");
}

Rows<const float> TextPredictor::predict(std::span<const NamedText> texts) {
  const auto name = [&](std::size_t n) { return std::string(texts[n].name); };
  if (model_.linear) {
    predict_linear(texts);
    require_finite(name);
    return {values_.data(), static_cast<index>(texts.size()), model_.config().classes};
  }
  make_tokens(texts);
  if (!table_.defined() && model_.model) make_table();
  return predict_read(name);
}

Tensor TextPredictor::predict_all(std::span<const std::string> texts) {
  std::vector<std::string> names;
  std::vector<NamedText> named;
  names.reserve(texts.size());
  for (std::size_t n = 0; n < texts.size(); ++n) {
    named.push_back({texts[n], names.emplace_back(fmt::format("texts[{}]", n))});
  }
  const index classes = model_.config().classes;
  Tensor all = Tensor::empty({std::ssize(texts), classes});
  for (std::size_t begin = 0; begin < texts.size(); begin += kTextsAtOnce) {
    const std::size_t count = std::min(kTextsAtOnce, texts.size() - begin);
    const Rows<const float> found =
        predict(std::span<const NamedText>(named).subspan(begin, count));
    for (index n = 0; n < found.rows; ++n) {
      std::copy_n(found[n], classes, all.rows<float>()[static_cast<index>(begin) + n]);
    }
  }
  return all;
}

// Each text by itself: there is nothing to gain by batches.
void TextPredictor::predict_linear(std::span<const NamedText> texts) {
  const LinearModel& model = *model_.linear;
  values_.resize(texts.size() * static_cast<std::size_t>(model.weights().classes));
  std::vector<std::string_view> read;
  for (const NamedText& text : texts) read.push_back(text.text);
  const double begin = monotonic_seconds();
  context_.for_ranges(static_cast<index>(texts.size()), kCostOfText, [&](index first, index end) {
    for (const NamedText& text :
         texts.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first))) {
      require_utf8(text.text, text.name);
    }
  });
  tokens_ += predict_texts(context_, model, read, values_.data());
  texts_ += static_cast<index>(texts.size());
  linear_seconds_ += monotonic_seconds() - begin;
}

Rows<const float> TextPredictor::predict(const FrameSet& set, index begin, index end,
                                         const std::string& file) {
  frames_ = set.rows();
  read_.clear();
  for (index i = begin; i < end; ++i) {
    const index first = set.starts[static_cast<std::size_t>(i)];
    const index length = set.starts[static_cast<std::size_t>(i) + 1] - first;
    read_.push_back(tokens_of_frames(model_.settings.text, first, length));
  }
  count_read();
  return predict_read(
      [&](std::size_t n) { return place_of_sample(file, begin + static_cast<index>(n)); });
}

// Predicts all texts that have been read.
Rows<const float> TextPredictor::predict_read(const std::function<std::string(std::size_t)>& name) {
  const index classes = model_.config().classes;
  const auto count = static_cast<index>(read_.size());
  values_.resize(read_.size() * static_cast<std::size_t>(classes));
  std::vector<index> lengths;
  for (const TextTokens& text : read_) lengths.push_back(length_of(text));
  const BatchSizes sizes{.fewest = kSmallestTextBatch, .most = batch_tokens_};
  tapes_.for_each(LengthBatches(lengths, sizes, context_.threads()),
                  [&](Tape& tape, std::span<const index> batch) { predict_batch(tape, batch); });
  require_finite(name);
  return {values_.data(), count, classes};
}

void TextPredictor::make_tokens(std::span<const NamedText> texts) {
  const auto count = static_cast<index>(texts.size());
  read_.resize(texts.size());
  context_.for_ranges(count, kCostOfText, [&](index begin, index end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      read_[i] = read_tokens(model_, texts[i]);
    }
  });
  count_read();
}

void TextPredictor::count_read() {
  texts_ += static_cast<index>(read_.size());
  for (const TextTokens& text : read_) {
    truncated_ += text.truncated() ? 1 : 0;
    tokens_ += length_of(text);
  }
}

bool has_room_for_table(double table, double batches, double memory) {
  return table <= kMostTableBytes && table <= kTableShareOfMemory * (memory - batches);
}

// It pays from as many tokens on as it has rows. Batches go before it.
void TextPredictor::make_table() {
  const Classifier& model = *model_.model;
  const index rows = model.config().vocabulary, columns = model.token_table_columns();
  const double bytes = static_cast<double>(rows) * static_cast<double>(columns) * sizeof(float);
  if (columns == 0 || tokens_ < rows) return;
  const auto memory = static_cast<double>(available_memory().bytes);
  if (!has_room_for_table(bytes, batch_bytes_, memory)) return;
  table_ = model.token_table(context_);
}

void TextPredictor::predict_batch(Tape& tape, std::span<const index> batch) {
  tape.reset(TapeMode::kInference);
  const auto count = static_cast<index>(batch.size());
  const auto offsets = tape.saved<std::int32_t>(count + 1);
  const auto text_at = [&](index i) {
    return static_cast<std::size_t>(batch[static_cast<std::size_t>(i)]);
  };
  offsets[0] = 0;
  for (index i = 0; i < count; ++i) {
    offsets[i + 1] = offsets[i] + static_cast<std::int32_t>(read_[text_at(i)].ids.size());
  }
  const auto ids = tape.saved<std::int32_t>(offsets[count]);
  for (index i = 0; i < count; ++i) {
    std::copy(read_[text_at(i)].ids.begin(), read_[text_at(i)].ids.end(), ids + offsets[i]);
  }
  const TextRows rows{
      .ids = {ids, offsets[count]}, .offsets = {offsets, count + 1}, .frames = frames_};
  const Rows<const float> found = predictions(tape, rows).value<float>();
  for (index i = 0; i < count; ++i) {
    std::copy_n(found[i], found.columns,
                values_.data() + text_at(i) * static_cast<std::size_t>(found.columns));
  }
}

Variable TextPredictor::predictions(Tape& tape, const TextRows& rows) const {
  const Classifier& model = *model_.model;
  return table_.defined() ? model.predictions(tape, rows, table_) : model.predictions(tape, rows);
}

void TextPredictor::require_finite(const std::function<std::string(std::size_t)>& name) const {
  const auto classes = static_cast<std::size_t>(model_.config().classes);
  const auto bad = std::find_if_not(values_.begin(), values_.end(),
                                    [](float value) { return std::isfinite(value); });
  if (bad == values_.end()) return;
  throw Error(ErrorCode::kModelDamaged,
              fmt::format("{}: the prediction is {}: expected a finite number",
                          name(static_cast<std::size_t>(bad - values_.begin()) / classes),
                          std::isnan(*bad) ? "NaN" : "infinite"),
              "train the model again, or use an earlier checkpoint");
}

namespace {

bool tells_one_label(ClassifierTask task) {
  return task == ClassifierTask::kBinary || task == ClassifierTask::kSingleLabel;
}

// Whether any number of labels is told: those above the threshold.
bool tells_any_number(const ClassifierAnswers& answers, const PredictionChoice& choice) {
  return answers.task == ClassifierTask::kMultiLabel && choice.top == 0;
}

}  // namespace

void check_options(const PredictionChoice& choice) { check_ranges(choice); }

std::vector<index> chosen_labels(const ClassifierAnswers& answers, Vec<const float> probabilities,
                                 const PredictionChoice& choice) {
  const std::vector<float> decided =
      answers.thresholds.empty()
          ? std::vector<float>()
          : decisive(answers.task, {probabilities.begin(), probabilities.end()},
                     answers.thresholds);
  if (!decided.empty()) probabilities = decided;
  std::vector<index> order(static_cast<std::size_t>(probabilities.size));
  std::iota(order.begin(), order.end(), index{0});
  const auto above = [&](index a, index b) { return probabilities[a] > probabilities[b]; };
  const bool any_number = tells_any_number(answers, choice);
  if (!any_number && choice.top <= 1) {
    return {std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin()};
  }
  std::stable_sort(order.begin(), order.end(), above);
  if (any_number) {
    std::erase_if(order, [&](index k) { return !(probabilities[k] >= choice.threshold); });
  } else {
    order.resize(std::min(order.size(), static_cast<std::size_t>(choice.top)));
  }
  return order;
}

bool abstains(const ClassifierAnswers& answers, Vec<const float> values,
              const PredictionChoice& choice) {
  if (choice.min_probability == 0 || !tells_one_label(answers.task)) return false;
  return !(values[chosen_labels(answers, values, {})[0]] >= choice.min_probability);
}

float certainty(const ClassifierAnswers& answers, Vec<const float> values,
                const PredictionChoice& choice) {
  if (answers.task != ClassifierTask::kMultiLabel) {
    return *std::max_element(values.begin(), values.end());
  }
  const std::vector<float> decided =
      decisive_rows(answers.task, {values.begin(), values.end()}, answers.thresholds);
  float nearest = 1;
  for (const float value : decided) {
    nearest = std::min(nearest, std::abs(value - static_cast<float>(choice.threshold)));
  }
  return nearest;
}

std::vector<std::string> prediction_columns(const ClassifierAnswers& answers,
                                            const PredictionChoice& choice) {
  if (answers.task == ClassifierTask::kRegression) return {"value"};
  if (tells_any_number(answers, choice)) return {"labels", "probabilities"};
  std::vector<std::string> columns;
  const auto count = std::min(static_cast<index>(answers.labels.size()), choice.top);
  for (index n = 1; n <= std::max<index>(count, 1); ++n) {
    const std::string number = n == 1 ? "" : fmt::format("_{}", n);
    columns.push_back("label" + number);
    columns.push_back("probability" + number);
  }
  return columns;
}

std::vector<std::string> prediction_fields(const ClassifierAnswers& answers,
                                           Vec<const float> values, const PredictionChoice& choice,
                                           std::string_view between) {
  if (answers.task == ClassifierTask::kRegression) {
    return {number_text(values[0], answers.numbers)};
  }
  std::vector<std::string> fields, labels, probabilities;
  for (const index k : chosen_labels(answers, values, choice)) {
    labels.push_back(answers.labels[static_cast<std::size_t>(k)]);
    probabilities.push_back(fmt::format("{}", values[k]));
  }
  if (tells_any_number(answers, choice)) {
    return {fmt::format("{}", fmt::join(labels, between)),
            fmt::format("{}", fmt::join(probabilities, between))};
  }
  if (abstains(answers, values, choice)) labels[0].clear();
  for (std::size_t n = 0; n < labels.size(); ++n) {
    fields.push_back(std::move(labels[n]));
    fields.push_back(std::move(probabilities[n]));
  }
  return fields;
}

std::string number_text(float value, const NumberScale& numbers) {
  const double number = numbers.from_model(value);
  return fmt::format("{:.{}g}", number, numbers.digits(number));
}

std::string prediction_text(const ClassifierAnswers& answers, Vec<const float> values,
                            const PredictionChoice& choice) {
  std::string line;
  const auto add = [&](const std::string& text) { line += (line.empty() ? "" : "\t") + text; };
  if (answers.task == ClassifierTask::kRegression) {
    for (const float value : values) add(number_text(value, answers.numbers));
    return line;
  }
  bool hides = abstains(answers, values, choice);
  for (const index k : chosen_labels(answers, values, choice)) {
    const std::string& label = answers.labels[static_cast<std::size_t>(k)];
    add(fmt::format("{}\t{}", std::exchange(hides, false) ? "" : escape_text(label), values[k]));
  }
  return line;
}

std::vector<std::string> prediction_keys(const ClassifierAnswers& answers) {
  if (answers.task == ClassifierTask::kRegression) return {"value"};
  if (answers.task == ClassifierTask::kMultiLabel) return {"labels", "probabilities"};
  return {"label", "probability", "probabilities"};
}

std::string prediction_json(const ClassifierAnswers& answers, Vec<const float> values,
                            const PredictionChoice& choice) {
  return Json(prediction_object(answers, values, choice)).line();
}

Json::Object prediction_object(const ClassifierAnswers& answers, Vec<const float> values,
                               const PredictionChoice& choice) {
  Json::Object object;
  if (answers.task == ClassifierTask::kRegression) {
    // Numbers have the same digits as in the text.
    Json::Array numbers;
    for (const float value : values) {
      numbers.emplace_back(std::stod(number_text(value, answers.numbers)));
    }
    if (numbers.size() == 1) {
      object.emplace_back("value", std::move(numbers[0]));
    } else {
      object.emplace_back("values", std::move(numbers));
    }
    return object;
  }
  const std::vector<index> chosen = chosen_labels(answers, values, choice);
  Json::Array names;
  Json::Object probabilities;
  for (const index k : chosen) {
    names.emplace_back(answers.labels[static_cast<std::size_t>(k)]);
    probabilities.emplace_back(answers.labels[static_cast<std::size_t>(k)], values[k]);
  }
  if (answers.task == ClassifierTask::kMultiLabel) {
    object.emplace_back("labels", std::move(names));
  } else {
    object.emplace_back("label", abstains(answers, values, choice) ? Json() : std::move(names[0]));
    object.emplace_back("probability", values[chosen[0]]);
  }
  object.emplace_back("probabilities", std::move(probabilities));
  return object;
}

}  // namespace fovea
