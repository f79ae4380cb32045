// SPDX-License-Identifier: Apache-2.0
// The order in which the items of a training set are seen, and how their texts are cut anew in
// each epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/base/types.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

struct EpochOrderOptions {
  index size = 0;        ///< items
  index batch_size = 0;  ///< items of a batch
  index accumulate = 1;  ///< batches of an update
  std::uint64_t seed = 0;
  bool by_length = true;  ///< a batch holds items of about the same length

  EpochOrderOptions of(index items) const {
    EpochOrderOptions sized = *this;
    sized.size = items;
    return sized;
  }
};

/// The sum of the n largest of `lengths`: the most tokens that n items can have together.
index sum_of_largest(std::vector<index> lengths, index n);

/// Shuffles by numbers of `random`.
void shuffle(std::span<index> values, Random& random);

/// Each epoch shuffles the items; then those of 64 updates at a time are sorted by length, unless
/// told otherwise, and cut into updates; then the updates are shuffled.
/// A batch depends only on the seed and on its number. Only one thread at a time may call it.
class EpochOrder {
 public:
  explicit EpochOrder(const EpochOrderOptions& options);

  /// The items of batch number `number`, in [0, accumulate), of an update, both from 0. At the end
  /// of an epoch a batch may have fewer, or none. The span lives until the next call.
  std::span<const index> batch(index update, index number,
                               const std::function<index(index)>& length);
  index updates_per_epoch() const { return static_cast<index>(updates_.size()); }

 private:
  void arrange(index epoch, const std::function<index(index)>& length);

  EpochOrderOptions options_;
  index per_update_;
  index epoch_ = -1;            // the epoch of the two below
  std::vector<index> order_;    // items
  std::vector<index> updates_;  // groups of per_update_ in order_
};

/// How training texts are cut anew in each epoch: subword regularization (Kudo 2018) and
/// BPE-dropout (Provilkov, Emelianenko, Voita 2020), see text/sentencepiece/cutter.h. A cut depends
/// on the seed, the epoch and the text's number alone.
struct CutAnew {
  const Tokenizer* tokenizer = nullptr;  ///< must outlive its use
  double alpha = 0;                      ///< 0: texts keep their usual cut
  std::uint64_t seed = 0;
};

/// A drawn cut that has more tokens than so many times the usual one is not taken, so that the
/// memory of a batch is known beforehand.
inline constexpr index kMostOfUsualCut = 2;

/// The tokens of a text, without marks. Its lines, if it has several, have the numbers that follow.
std::vector<token> drawn_cut(const CutAnew& how, std::string_view text, index epoch, index number);

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
