// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/text_predictor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/machine.h"
#include "fovea/grad/tape.h"
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

// As tokens_of_text. If the end of a text is dropped, only so much is read as is needed: a text
// that ends before a space has the same tokens as the whole has there.
TextTokens read_tokens(const LoadedClassifier& model, const NamedText& text) {
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
  const TextLoad load{.texts = longest,
                      .tape = {.tokens = rows, .mode = TapeMode::kInference, .sequences = rows}};
  batch_bytes_ = plan_passes_apart(context, config, load).bytes();
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
  if (!table_.defined()) make_table();
  return predict_read(name);
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
  const Classifier& model = *model_.model;
  const Variable y =
      table_.defined() ? model.predictions(tape, rows, table_) : model.predictions(tape, rows);
  const Rows<const float> found = y.value<float>();
  for (index i = 0; i < count; ++i) {
    std::copy_n(found[i], found.columns,
                values_.data() + text_at(i) * static_cast<std::size_t>(found.columns));
  }
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

}  // namespace fovea
