// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/epoch_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fovea/base/check.h"

namespace fovea {

namespace {

// Items of similar length share an update. Sorting within windows of shuffled items, and not over
// the whole epoch, gives each epoch other updates.
constexpr index kUpdatesPerWindow = 64;

}  // namespace

index sum_of_largest(std::vector<index> lengths, index n) {
  const auto middle = lengths.begin() + std::clamp<index>(n, 0, std::ssize(lengths));
  std::partial_sort(lengths.begin(), middle, lengths.end(), std::greater<>());
  return std::accumulate(lengths.begin(), middle, index{0});
}

void shuffle(std::span<index> values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<std::size_t>(random.below(static_cast<index>(i)))]);
  }
}

EpochOrder::EpochOrder(const EpochOrderOptions& options)
    : options_(options),
      per_update_(options.batch_size * options.accumulate),
      order_(static_cast<std::size_t>(options.size)),
      updates_(static_cast<std::size_t>((options.size + per_update_ - 1) / per_update_)) {}

std::span<const index> EpochOrder::batch(index update, index number,
                                         const std::function<index(index)>& length) {
  check(update >= 0 && number >= 0 && number < options_.accumulate,
        "there is no batch {} of {} in update {}", number, options_.accumulate, update);
  arrange(update / updates_per_epoch(), length);
  const index group = updates_[static_cast<std::size_t>(update % updates_per_epoch())];
  const index last = std::min(options_.size, (group + 1) * per_update_);
  const index begin = std::min(last, group * per_update_ + number * options_.batch_size);
  const index end = std::min(last, begin + options_.batch_size);
  return std::span(order_).subspan(static_cast<std::size_t>(begin),
                                   static_cast<std::size_t>(end - begin));
}

// Sets order_ and updates_ to those of an epoch. They depend on the seed and the epoch alone.
void EpochOrder::arrange(index epoch, const std::function<index(index)>& length) {
  if (epoch == epoch_) return;
  Random random(options_.seed, RandomUse::kBatches, static_cast<std::uint64_t>(epoch));
  std::iota(order_.begin(), order_.end(), index{0});
  shuffle(order_, random);
  const index window = kUpdatesPerWindow * per_update_;
  for (index begin = 0; options_.by_length && begin < options_.size; begin += window) {
    std::stable_sort(order_.begin() + begin,
                     order_.begin() + std::min(begin + window, options_.size),
                     [&](index a, index b) { return length(a) < length(b); });
  }
  std::iota(updates_.begin(), updates_.end(), index{0});
  shuffle(updates_, random);
  epoch_ = epoch;
}

std::vector<token> drawn_cut(const CutAnew& how, std::string_view text, index epoch, index number) {
  std::vector<token> ids;
  how.tokenizer->append_drawn(ids, text, "training text",
                              {.alpha = how.alpha,
                               .seed = how.seed,
                               .epoch = static_cast<std::uint64_t>(epoch),
                               .number = static_cast<std::uint64_t>(number)});
  return ids;
}

TokenOrder::TokenOrder(TokenOrderOptions options) : options_(std::move(options)) {
  if (options_.items.empty() || options_.batch_tokens < 1 || options_.accumulate < 1) {
    fail(ErrorCode::kInternal, "token order: {} items, {} tokens a batch, {} batches an update",
         options_.items.size(), options_.batch_tokens, options_.accumulate);
  }
  for (const TokenItem& item : options_.items) {
    total_ += static_cast<double>(item.tokens);
    longest_ = std::max(longest_, item.tokens);
  }
  // Not more batches than there is text for: then each is at least as long as the longest item, so
  // in each one begins.
  const double of_batch = static_cast<double>(std::max(options_.batch_tokens, longest_));
  const double of_update = of_batch * static_cast<double>(options_.accumulate);
  updates_per_epoch_ = std::max<index>(1, static_cast<index>(total_ / of_update));
}

index TokenOrder::largest_batch() const {
  return static_cast<index>(
      std::ceil(std::min(batch_size() + static_cast<double>(longest_), total_)));
}

std::span<const index> TokenOrder::batch(index update, index number) {
  check(update >= 0 && number >= 0 && number < options_.accumulate,
        "there is no batch {} of {} in update {}", number, options_.accumulate, update);
  arrange(update / updates_per_epoch_);
  const index group = updates_[static_cast<std::size_t>(update % updates_per_epoch_)];
  const auto batch = static_cast<std::size_t>(group * options_.accumulate + number);
  return std::span(order_).subspan(static_cast<std::size_t>(begins_[batch]),
                                   static_cast<std::size_t>(begins_[batch + 1] - begins_[batch]));
}

void TokenOrder::arrange(index epoch) {
  if (epoch == epoch_) return;
  Random random(options_.seed, RandomUse::kBatches, static_cast<std::uint64_t>(epoch));
  order_.resize(options_.items.size());
  std::iota(order_.begin(), order_.end(), index{0});
  shuffle(order_, random);
  const auto item = [&](index i) { return options_.items[static_cast<std::size_t>(i)]; };
  const double windows =
      std::ceil(static_cast<double>(updates_per_epoch_) / static_cast<double>(kUpdatesPerWindow));
  const auto window =
      static_cast<std::size_t>(std::ceil(static_cast<double>(order_.size()) / windows));
  for (std::size_t begin = 0; begin < order_.size(); begin += window) {
    std::stable_sort(
        order_.begin() + static_cast<std::ptrdiff_t>(begin),
        order_.begin() + static_cast<std::ptrdiff_t>(std::min(begin + window, order_.size())),
        [&](index a, index b) {
          const TokenItem &x = item(a), &y = item(b);
          return std::pair(x.tokens, x.other) < std::pair(y.tokens, y.other);
        });
  }
  begins_.assign(1, 0);
  double sum = 0;
  for (std::size_t n = 0; n < order_.size(); ++n) {
    while (static_cast<index>(begins_.size()) < batches() &&
           sum >= batch_size() * static_cast<double>(begins_.size())) {
      begins_.push_back(static_cast<index>(n));
    }
    sum += static_cast<double>(item(order_[n]).tokens);
  }
  begins_.resize(static_cast<std::size_t>(batches()) + 1, static_cast<index>(order_.size()));
  updates_.resize(static_cast<std::size_t>(updates_per_epoch_));
  std::iota(updates_.begin(), updates_.end(), index{0});
  shuffle(updates_, random);
  epoch_ = epoch;
}

}  // namespace fovea
