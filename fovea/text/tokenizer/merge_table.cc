// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/merge_table.h"

#include <bit>
#include <queue>

#include "fovea/text/keyed_hash.h"

namespace fovea {

namespace {

// A part of a text is a chain of tokens, of which neighbours are joined.
struct Link {
  token id;
  std::int32_t before, behind;  // -1: none
};

// Two neighbours that could be joined: the pair of lowest rank first, of equal ones the leftmost.
struct Candidate {
  std::uint32_t rank;
  std::int32_t left;
  token left_id, right_id, joined;
};
struct IsLater {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }
};

}  // namespace

MergeTable::MergeTable(std::size_t merges)
    : merges_(std::bit_ceil(2 * merges + 2)), factor_(keyed_hash("merges") | 1) {}

// The slot of the pair, or the empty one where it would be.
std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  const std::size_t mask = merges_.size() - 1;
  std::size_t slot = (pair * factor_) >> 32 & mask;
  while (merges_[slot].pair != pair && merges_[slot].pair != kNoPair) slot = (slot + 1) & mask;
  return slot;
}

const MergeTable::Merge* MergeTable::merge_of(token left, token right) const {
  const Merge& merge = merges_[slot_of(pair_of(left, right))];
  return merge.pair == kNoPair ? nullptr : &merge;
}

bool MergeTable::add(token left, token right, token joined) {
  Merge& slot = merges_[slot_of(pair_of(left, right))];
  if (slot.pair != kNoPair) return false;
  slot = {pair_of(left, right), count_++, joined};
  return true;
}

void MergeTable::join(std::vector<token>& ids, std::size_t first) const {
  std::vector<Link> chain;
  chain.reserve(ids.size() - first);
  for (std::size_t n = first; n < ids.size(); ++n) {
    const auto at = static_cast<std::int32_t>(chain.size());
    chain.push_back({ids[n], at - 1, at + 1});
  }
  if (chain.empty()) return;
  chain.back().behind = -1;
  std::priority_queue<Candidate, std::vector<Candidate>, IsLater> candidates;
  const auto offer = [&](std::int32_t left) {
    if (left < 0 || chain[static_cast<std::size_t>(left)].behind < 0) return;
    const Link& l = chain[static_cast<std::size_t>(left)];
    const Link& r = chain[static_cast<std::size_t>(l.behind)];
    const Merge* const merge = merge_of(l.id, r.id);
    if (merge != nullptr) candidates.push({merge->rank, left, l.id, r.id, merge->joined});
  };
  for (std::size_t n = 0; n + 1 < chain.size(); ++n) offer(static_cast<std::int32_t>(n));
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Link& left = chain[static_cast<std::size_t>(best.left)];
    if (left.id != best.left_id || left.behind < 0) continue;  // joined meanwhile
    Link& right = chain[static_cast<std::size_t>(left.behind)];
    if (right.id != best.right_id) continue;
    left.id = best.joined;
    left.behind = right.behind;
    right.id = kNoToken;
    if (left.behind >= 0) chain[static_cast<std::size_t>(left.behind)].before = best.left;
    offer(left.before);
    offer(best.left);
  }
  ids.resize(first);
  for (std::int32_t at = 0; at >= 0; at = chain[static_cast<std::size_t>(at)].behind) {
    ids.push_back(chain[static_cast<std::size_t>(at)].id);
  }
}

}  // namespace fovea
