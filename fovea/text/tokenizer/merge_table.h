// SPDX-License-Identifier: Apache-2.0
// The merges of byte-pair encoding (Sennrich, Haddow, Birch 2016): pairs of tokens that are joined
// wherever they stand side by side.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/text/vocabulary.h"

namespace fovea {

class MergeTable {
 public:
  /// Room for so many merges.
  explicit MergeTable(std::size_t merges = 0);

  /// A pair that becomes the token `joined`, behind all that were added before. False, and nothing
  /// is added, if the pair is there already. No token is negative.
  bool add(token left, token right, token joined);
  /// Call it behind the last one.
  void finish();

  /// Joins neighbours among the tokens from `first` on: the pair that was added first before all
  /// others, of equal ones the leftmost. n tokens that no merge separates take n log n time. Throws
  /// kOutOfMemory.
  void join(std::vector<token>& ids, std::size_t first) const;

 private:
  static constexpr std::uint64_t kNoPair = ~std::uint64_t{0};
  static constexpr std::uint32_t kNoRank = ~std::uint32_t{0};
  static constexpr std::size_t kShortRun = 64;  // tokens

  struct Merge {
    std::uint64_t pair = kNoPair;
    std::uint32_t rank = kNoRank;
    token joined = kNoToken;
  };
  // The two that a token is made of, in one of the ways to make it.
  struct Parts {
    token left = kNoToken, right = kNoToken;
  };

  static std::uint64_t pair_of(token left, token right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::size_t hash(std::uint64_t pair) const { return (pair * factor_) >> 32; }
  // The slot of the pair, or the empty one where it would be.
  std::size_t slot_of(std::uint64_t pair) const;
  // The merge of two tokens; without a rank if they are not joined.
  const Merge& merge_of(token left, token right) const {
    return merges_[slot_of(pair_of(left, right))];
  }
  // Of the tokens that no merge makes, of which each token is made, the first or the last: `part`
  // of its parts, of that one's, and so on.
  std::vector<token> ends_along(token Parts::*part) const;
  // Whether a merge may join what stands on both sides. Some pairs that none joins are among them.
  bool is_bridge(token left, token right) const;
  // Joins the tokens at the front of this span; returns how many are left.
  std::size_t join_short(std::span<token> ids) const;
  void join_long(std::vector<token>& ids) const;

  std::vector<Merge> merges_;  // a hash table: as many as a power of two
  std::uint64_t factor_;       // of the hash; drawn by each process
  std::uint32_t count_ = 0;
  std::vector<Parts> parts_;            // of those that are joined, by id
  std::vector<std::uint64_t> bridges_;  // a bit for each hash of tokens between which a merge joins
  bool has_ends_ = true;                // whichever way a token is made, its ends are the same
};

}  // namespace fovea
