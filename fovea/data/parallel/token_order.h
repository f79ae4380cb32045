// SPDX-License-Identifier: Apache-2.0
// The order in which the items of a training set are seen, in batches of about as many tokens each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

/// An item's size decides which batch it is in, its lengths beside which others.
struct TokenItem {
  index tokens = 0;  ///< the tokens that batches count
  index other = 0;   ///< of items with as many, those with about as many of these lie together
};

struct TokenOrderOptions {
  std::vector<TokenItem> items = {};
  index batch_tokens = 0;  ///< of a batch, in the mean
  index accumulate = 1;    ///< batches of an update
  std::uint64_t seed = 0;
};

/// Each epoch shuffles the items; then those of 64 updates at a time are sorted by length, and cut
/// where the sum of their tokens passes the next multiple of what a batch has; then the updates are
/// shuffled. An epoch has as many updates as every other: a batch has `batch_tokens` or a little
/// more in the mean, and at most that and the longest item. A batch depends only on the seed and on
/// its number. Only one thread at a time may call it.
class TokenOrder {
 public:
  /// Throws kInternal without items.
  explicit TokenOrder(TokenOrderOptions options);

  /// The items of batch number `number`, in [0, accumulate), of an update, both from 0. No batch is
  /// empty, unless an epoch has a single update. The span lives until the next
  /// call.
  std::span<const index> batch(index update, index number);
  index updates_per_epoch() const { return updates_per_epoch_; }
  /// No batch has more tokens.
  index largest_batch() const;

 private:
  void arrange(index epoch);
  double batch_size() const { return total_ / static_cast<double>(batches()); }
  index batches() const { return updates_per_epoch_ * options_.accumulate; }

  TokenOrderOptions options_;
  double total_ = 0;
  index longest_ = 0;
  index updates_per_epoch_ = 1;
  index epoch_ = -1;            // the epoch of the three below
  std::vector<index> order_;    // items
  std::vector<index> begins_;   // [batches + 1] of batches in order_
  std::vector<index> updates_;  // groups of batches
};

}  // namespace fovea
