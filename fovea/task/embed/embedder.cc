// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/embed/embedder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/grad/ops.h"
#include "fovea/model/pass_plan.h"

namespace fovea {

namespace {

constexpr double kCostOfEmbedded = 20000;  // to read it: about that of so many flops
constexpr index kEmbeddedTokens = 1024;    // a longer text is a batch of its own
constexpr index kSmallestBatch = 256;      // tokens

// A word and the blank behind it seldom have more bytes.
constexpr std::size_t kBytesOfPiece = 6;

PoolingKind pooling_of(EmbedPooling said, PoolingKind own) {
  switch (said) {
    case EmbedPooling::kMean:
      return PoolingKind::kMean;
    case EmbedPooling::kCls:
      return PoolingKind::kFirst;
    case EmbedPooling::kMax:
      return PoolingKind::kMax;
    case EmbedPooling::kModel:
      break;
  }
  return own;
}

Variable pooled(Tape& tape, PoolingKind kind, const BertRows& from) {
  if (kind == PoolingKind::kFirst) return first_over_time(tape, from.rows, from.sequences);
  if (kind == PoolingKind::kMax) return max_over_time(tape, from.rows, from.sequences);
  return mean_over_time(tape, from.rows, from.sequences);
}

// As torch.nn.functional.normalize does.
void normalize(Vec<float> x) {
  constexpr double kLeast = 1e-12;
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  const double scale = 1 / std::max(std::sqrt(sum), kLeast);
  for (float& value : x) value = static_cast<float>(value * scale);
}

}  // namespace

std::string EmbedRules::text() const {
  return fmt::format("{} {} {} {} {}", to_string(pooling), normalizes, normalizes_again, columns,
                     prompt);
}

EmbedRules embed_rules(const SentenceModel& model, const EmbedOptions& options,
                       std::span<const std::string> said) {
  const auto is_said = [&](std::string_view name) {
    return std::find(said.begin(), said.end(), name) != said.end();
  };
  const SentenceSettings& own = model.settings;
  require_option(options.truncate_dim <= model.width(), "truncate_dim", options.truncate_dim,
                 "at most {}, the columns of the model's vectors", model.width());
  const bool says_normalize = is_said("normalize");
  return {.pooling = pooling_of(options.pooling, own.pooling),
          .normalizes = says_normalize ? options.normalize : own.normalizes,
          .normalizes_again = says_normalize && options.normalize && options.truncate_dim > 0,
          .prompt = is_said("prompt") ? options.prompt : own.prompt,
          .columns = options.truncate_dim > 0 ? options.truncate_dim : model.width()};
}

Embedder::Embedder(const Context& context, const SentenceModel& model, EmbedRules rules)
    : context_(context), model_(model), rules_(std::move(rules)), tapes_(context) {
  const index longest = std::max(kEmbeddedTokens, model.settings.max_length);
  const TapeLoad load{.tokens = longest,
                      .mode = TapeMode::kInference,
                      .sequences = longest,
                      .precision = context.precision()};
  require_memory("the vectors", plan_passes_apart(context, model.model.config(), load).bytes(),
                 "use fewer threads (--threads), or a machine with more memory");
}

// Of a long text only so much is read as is needed: up to a blank it has the tokens that the whole
// has there, unless a token has a blank in it.
Embedder::Tokens Embedder::tokens_of(std::string_view text) const {
  const WordPiece& tokenizer = *model_.tokenizer;
  const WordPieceModel& words = tokenizer.model();
  const std::size_t most = static_cast<std::size_t>(model_.settings.max_length) -
                           words.before.size() - words.after.size();
  const bool has_blank = std::any_of(words.added.begin(), words.added.end(), [](const auto& added) {
    return added.text.find(' ') != std::string::npos || added.takes_left;
  });
  Tokens result;
  const auto read = [&](std::string_view part) {
    result.ids = words.before;
    tokenizer.encode(result.ids, part);
    result.truncated = result.ids.size() > words.before.size() + most;
    if (result.truncated) result.ids.resize(words.before.size() + most);
  };
  bool done = false;
  for (std::size_t bytes = kBytesOfPiece * (most + 1); !has_blank && !done && bytes < text.size();
       bytes *= 2) {
    const std::size_t blank = text.find(' ', bytes);
    if (blank == text.npos) break;
    read(text.substr(0, blank));
    done = result.truncated;
  }
  if (!done) read(text);
  result.ids.insert(result.ids.end(), words.after.begin(), words.after.end());
  return result;
}

Rows<const float> Embedder::embed(std::span<const std::string_view> texts) {
  const auto count = static_cast<index>(texts.size());
  read_.resize(texts.size());
  context_.for_ranges(count, kCostOfEmbedded, [&](index begin, index end) {
    for (auto n = static_cast<std::size_t>(begin); n < static_cast<std::size_t>(end); ++n) {
      read_[n] = rules_.prompt.empty() ? tokens_of(texts[n])
                                       : tokens_of(rules_.prompt + std::string(texts[n]));
    }
  });
  std::vector<index> lengths;
  lengths.reserve(texts.size());
  for (const Tokens& text : read_) {
    lengths.push_back(static_cast<index>(text.ids.size()));
    tokens_ += lengths.back();
    truncated_ += text.truncated ? 1 : 0;
  }
  texts_ += count;
  values_.resize(texts.size() * static_cast<std::size_t>(rules_.columns));
  const BatchSizes sizes{.fewest = kSmallestBatch, .most = kEmbeddedTokens};
  tapes_.for_each(LengthBatches(lengths, sizes, context_.threads()),
                  [&](Tape& tape, std::span<const index> batch) { embed_batch(tape, batch); });
  return {values_.data(), count, rules_.columns};
}

void Embedder::embed_batch(Tape& tape, std::span<const index> batch) {
  tape.reset(TapeMode::kInference);
  const auto text_at = [&](index n) -> const Tokens& {
    return read_[static_cast<std::size_t>(batch[static_cast<std::size_t>(n)])];
  };
  const auto count = static_cast<index>(batch.size());
  auto* const offsets = tape.saved<std::int32_t>(count + 1);
  offsets[0] = 0;
  for (index n = 0; n < count; ++n) {
    offsets[n + 1] = offsets[n] + static_cast<std::int32_t>(text_at(n).ids.size());
  }
  auto* const ids = tape.saved<std::int32_t>(offsets[count]);
  for (index n = 0; n < count; ++n) {
    std::copy(text_at(n).ids.begin(), text_at(n).ids.end(), ids + offsets[n]);
  }
  const TextRows rows{.ids = {ids, offsets[count]}, .offsets = {offsets, count + 1}};
  const Variable found = pooled(tape, rules_.pooling, model_.model.forward(tape, {.texts = rows}));
  for (index n = 0; n < count; ++n) {
    float* const to = values_.data() + batch[static_cast<std::size_t>(n)] * rules_.columns;
    finish({found.value<float>()[n], model_.width()}, {to, rules_.columns});
  }
}

void Embedder::finish(Vec<const float> pooled_row, Vec<float> to) const {
  std::vector<float> x(pooled_row.begin(), pooled_row.end());
  if (rules_.normalizes) normalize(x);
  std::copy_n(x.begin(), to.size, to.begin());
  if (rules_.normalizes_again) normalize(to);
  if (std::all_of(to.begin(), to.end(), [](float value) { return std::isfinite(value); })) return;
  throw Error(ErrorCode::kModelDamaged, "a vector of the model is not finite",
              "get the model again");
}

}  // namespace fovea
