// SPDX-License-Identifier: Apache-2.0
// The merges of byte-pair encoding (Sennrich, Haddow, Birch 2016): pairs of tokens that are joined
// wherever they stand side by side.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fovea/text/vocabulary.h"

namespace fovea {

class MergeTable {
 public:
  /// Room for so many merges.
  explicit MergeTable(std::size_t merges = 0);

  /// A pair that becomes the token `joined`, behind all that were added before. False, and nothing
  /// is added, if the pair is there already.
  bool add(token left, token right, token joined);

  /// Joins neighbours among the tokens from `first` on: the pair that was added first before all
  /// others, of equal ones the leftmost. n tokens that no merge separates take n log n time. Throws
  /// kOutOfMemory.
  void join(std::vector<token>& ids, std::size_t first) const;

 private:
  struct Merge {
    std::uint64_t pair = kNoPair;
    std::uint32_t rank = 0;
    token joined = kNoToken;
  };
  static constexpr std::uint64_t kNoPair = ~std::uint64_t{0};

  static std::uint64_t pair_of(token left, token right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t pair) const;
  /// The merge of two tokens; null: they are not joined.
  const Merge* merge_of(token left, token right) const;

  struct PairHash {
    std::uint64_t factor;  // drawn by each process
    std::size_t operator()(std::uint64_t pair) const { return (pair * factor) >> 32; }
  };
  // Of the tokens that a token was made of, the first and the last.
  struct Ends {
    token first, last;
  };
  Ends ends_of(token id) const;
  // Whether a merge can ever join what stands on both sides.
  bool is_bridge(token left, token right) const {
    return !has_order_ || bridges_.contains(pair_of(left, right));
  }
  void join_run(std::vector<token>& ids) const;

  std::vector<Merge> merges_;  // a hash table: as many as a power of two
  PairHash hash_;
  std::uint32_t count_ = 0;
  std::unordered_map<token, Ends> ends_;                 // of those that are joined
  std::unordered_set<token> parts_;                      // of merges
  std::unordered_set<std::uint64_t, PairHash> bridges_;  // tokens between which a merge joins
  bool has_order_ = true;                                // what is joined was made before
};

}  // namespace fovea
