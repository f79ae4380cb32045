// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/parallel/token_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/data/epoch_order.h"

namespace fovea {

namespace {

// As in EpochOrder: sorting within windows gives each epoch other updates.
constexpr index kUpdatesPerWindow = 64;

}  // namespace

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
