// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/parallel/pair_batch.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/random.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr index kMost = std::numeric_limits<std::int32_t>::max();

index at(const std::vector<index>& values, index i) { return values[static_cast<std::size_t>(i)]; }

// Pairs draw from streams that no epoch has.
constexpr std::uint64_t kFirstOfPairs = std::uint64_t{1} << 62;

// Each pair draws from a stream of its own in each update, whatever batch it is in. The end of a
// source and the beginning of a target stay.
void drop_tokens(PairBatch& batch, const TokenDropout& dropout, index update) {
  if (dropout.probability == 0) return;
  for (std::size_t s = 0; s < batch.samples.size(); ++s) {
    Random random(dropout.seed, RandomUse::kBatches,
                  kFirstOfPairs + (static_cast<std::uint64_t>(update) << 31) + batch.samples[s]);
    const auto drop = [&](std::vector<token>& tokens, index first, index behind, token by) {
      for (index n = first; n < behind; ++n) {
        if (random.uniform() < dropout.probability) tokens[static_cast<std::size_t>(n)] = by;
      }
    };
    drop(batch.source, batch.source_offsets[s], batch.source_offsets[s + 1] - 1, dropout.source);
    drop(batch.target, batch.target_offsets[s] + 1, batch.target_offsets[s + 1], dropout.target);
  }
}

// Sources of a batch are about as long as those of its targets say, but not always: the most is
// that of the pairs with the longest sources, as many as a batch has at most.
index largest_source_of(const PairTokens& pairs, index target_tokens) {
  std::vector<std::pair<index, index>> lengths;  // source, target
  for (index i = 0; i < pairs.size(); ++i) {
    lengths.emplace_back(pairs.source_length(i), pairs.target_length(i));
  }
  // The pairs with the most source tokens for a target token come first.
  std::sort(lengths.begin(), lengths.end(),
            [](const auto& a, const auto& b) { return a.first * b.second > b.first * a.second; });
  index source = 0, target = 0;
  for (const auto& [from, to] : lengths) {
    if (target >= target_tokens) break;
    source += from;
    target += to;
  }
  return source;
}

std::vector<TokenItem> items_of(const PairTokens& pairs) {
  std::vector<TokenItem> items;
  for (index i = 0; i < pairs.size(); ++i) {
    items.push_back({pairs.target_length(i), pairs.source_length(i)});
  }
  return items;
}

}  // namespace

index PairTokens::source_length(index i) const {
  return at(source_starts, i + 1) - at(source_starts, i);
}

index PairTokens::target_length(index i) const {
  return at(target_starts, i + 1) - at(target_starts, i) - 1;
}

PairFit append(PairTokens& all, const PairTokenizers& tokenizers, std::string_view source,
               std::string_view target, index block) {
  if (is_blank(source) || is_blank(target)) return PairFit::kEmpty;
  const std::size_t from = all.source.size(), to = all.target.size();
  tokenizers.source.append_tokens(all.source, source, "source");
  all.target.push_back(tokenizers.target.special().begin);
  tokenizers.target.append_tokens(all.target, target, "target");
  const auto read = static_cast<index>(all.source.size() - from),
             written = static_cast<index>(all.target.size() - to) - 1;
  const bool empty = read == 0 || written == 0;
  if (empty || read >= block || written >= block) {
    all.source.resize(from);
    all.target.resize(to);
    return empty ? PairFit::kEmpty : PairFit::kTooLong;
  }
  all.source.push_back(tokenizers.source.special().end);
  all.target.push_back(tokenizers.target.special().end);
  all.source_starts.push_back(static_cast<index>(all.source.size()));
  all.target_starts.push_back(static_cast<index>(all.target.size()));
  return PairFit::kTaken;
}

void append(PairBatch& batch, const PairTokens& all, index i) {
  check(i >= 0 && i < all.size(), "batch: there is no pair {} of {}", i, all.size());
  const index source_end = static_cast<index>(batch.source.size()) + all.source_length(i),
              target_end = batch.target_count() + all.target_length(i);
  if (source_end > kMost || target_end > kMost) {
    fail(ErrorCode::kOptionValue, "batch: {} tokens are more than a batch can hold",
         std::max(source_end, target_end));
  }
  const auto from = all.source.begin() + at(all.source_starts, i);
  const auto to = all.target.begin() + at(all.target_starts, i);
  const index length = all.target_length(i);
  batch.source.insert(batch.source.end(), from, from + all.source_length(i));
  batch.target.insert(batch.target.end(), to, to + length);
  batch.targets.insert(batch.targets.end(), to + 1, to + 1 + length);
  batch.source_offsets.push_back(static_cast<std::int32_t>(source_end));
  batch.target_offsets.push_back(static_cast<std::int32_t>(target_end));
  batch.samples.push_back(static_cast<std::uint64_t>(i));
}

PairTraining::PairTraining(PairTokens pairs, TokenDropout dropout, index batch_tokens,
                           index accumulate, std::uint64_t seed)
    : pairs_(std::move(pairs)),
      dropout_(dropout),
      order_({.items = items_of(pairs_),
              .batch_tokens = batch_tokens,
              .accumulate = accumulate,
              .seed = seed}),
      largest_source_(largest_source_of(pairs_, order_.largest_batch())) {}

void PairTraining::cut_anew(PairTexts texts) {
  check(std::ssize(texts.source) == pairs_.size() && std::ssize(texts.target) == pairs_.size(),
        "pairs: there are {} and {} texts for {} pairs", texts.source.size(), texts.target.size(),
        pairs_.size());
  texts_ = std::move(texts);
  if (std::max(largest_source(), largest_target()) <= kMost) return;
  fail(ErrorCode::kOptionValue, "subwords: a batch may have {} of a side, at most {} are possible",
       std::max(largest_source(), largest_target()), kMost);
}

// Pair i, cut as in this epoch; a side whose cut is too long as usual.
PairTokens PairTraining::drawn_pair(index i, index epoch) const {
  const auto n = static_cast<std::size_t>(i);
  PairTokens pair;
  const auto take = [&](const CutAnew& how, const std::string& text, index side,
                        std::vector<token>& out, std::span<const token> usual) {
    const auto middle = static_cast<index>(usual.size());  // without marks
    std::vector<token> drawn;
    if (how.alpha > 0) drawn = drawn_cut(how, text, epoch, 2 * i + side);
    const auto length = static_cast<index>(drawn.size());
    if (length == 0 || length >= texts_.block || length > kMostOfUsualCut * middle) {
      out.insert(out.end(), usual.begin(), usual.end());
    } else {
      out.insert(out.end(), drawn.begin(), drawn.end());
    }
  };
  const auto source = at(pairs_.source_starts, i), target = at(pairs_.target_starts, i);
  const std::span all_source(pairs_.source), all_target(pairs_.target);
  const auto part = [](std::span<const token> all, index first, index length) {
    return all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(length));
  };
  const index read = pairs_.source_length(i) - 1, written = pairs_.target_length(i) - 1;
  take(texts_.of_source, texts_.source[n], 0, pair.source, part(all_source, source, read));
  pair.source.push_back(all_source[static_cast<std::size_t>(source + read)]);
  pair.target.push_back(all_target[static_cast<std::size_t>(target)]);
  take(texts_.of_target, texts_.target[n], 1, pair.target, part(all_target, target + 1, written));
  pair.target.push_back(all_target[static_cast<std::size_t>(target + 1 + written)]);
  pair.source_starts.push_back(static_cast<index>(pair.source.size()));
  pair.target_starts.push_back(static_cast<index>(pair.target.size()));
  return pair;
}

PairBatch PairTraining::batch(index update, index number) {
  PairBatch batch;
  for (const index i : order_.batch(update, number)) {
    if (texts_.block == 0) {
      append(batch, pairs_, i);
      continue;
    }
    append(batch, drawn_pair(i, update / updates_per_epoch()), 0);
    batch.samples.back() = static_cast<std::uint64_t>(i);
  }
  drop_tokens(batch, dropout_, update);
  return batch;
}

PairEvaluation::PairEvaluation(PairTokens pairs, index batch_tokens) : pairs_(std::move(pairs)) {
  std::vector<index> order(static_cast<std::size_t>(pairs_.size()));
  std::iota(order.begin(), order.end(), index{0});
  std::stable_sort(order.begin(), order.end(), [&](index a, index b) {
    return std::pair(pairs_.target_length(a), pairs_.source_length(a)) >
           std::pair(pairs_.target_length(b), pairs_.source_length(b));
  });
  index source = 0, target = 0;
  for (const index i : order) {
    source += pairs_.source_length(i);
    target += pairs_.target_length(i);
    if (batches_.empty() || source > batch_tokens || target > batch_tokens) {
      batches_.emplace_back();
      source = pairs_.source_length(i);
      target = pairs_.target_length(i);
    }
    batches_.back().push_back(i);
    largest_source_ = std::max(largest_source_, source);
    largest_target_ = std::max(largest_target_, target);
  }
}

PairBatch PairEvaluation::operator[](index i) const {
  check(i >= 0 && i < size(), "evaluation: there is no batch {} of {}", i, size());
  PairBatch batch;
  for (const index pair : batches_[static_cast<std::size_t>(i)]) append(batch, pairs_, pair);
  return batch;
}

}  // namespace fovea
