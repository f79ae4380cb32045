// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/merge_table.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <queue>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
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
    : merges_(std::bit_ceil(2 * merges + 2)), hash_{keyed_hash("merges") | 1}, bridges_(0, hash_) {}

MergeTable::Ends MergeTable::ends_of(token id) const {
  const auto found = ends_.find(id);
  return found == ends_.end() ? Ends{id, id} : found->second;
}

// The slot of the pair, or the empty one where it would be.
std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  const std::size_t mask = merges_.size() - 1;
  std::size_t slot = hash_(pair) & mask;
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
  // A text may hold a token that others could have become: <0x41>.
  for (const token last : {left, ends_of(left).last}) {
    for (const token begin : {right, ends_of(right).first}) bridges_.insert(pair_of(last, begin));
  }
  has_order_ = has_order_ && !parts_.contains(joined);
  parts_.insert({left, right});
  ends_.insert_or_assign(joined, Ends{ends_of(left).first, ends_of(right).last});
  return true;
}

void MergeTable::join(std::vector<token>& ids, std::size_t first) const {
  // Runs that no merge reaches across are joined each by itself, at the end of what is done.
  std::size_t done = first;
  std::vector<token> run;
  for (std::size_t begin = first, end = first; begin < ids.size(); begin = end) {
    while (++end < ids.size() && is_bridge(ids[end - 1], ids[end])) continue;
    run.assign(ids.begin() + static_cast<std::ptrdiff_t>(begin),
               ids.begin() + static_cast<std::ptrdiff_t>(end));
    join_run(run);
    std::ranges::copy(run, ids.begin() + static_cast<std::ptrdiff_t>(done));
    done += run.size();
  }
  ids.resize(done);
}

void MergeTable::join_run(std::vector<token>& ids) const {
  if (ids.size() < 2) return;
  constexpr std::size_t kLongRun = std::size_t{1} << 20;
  if (ids.size() >= kLongRun) {
    require_memory(
        "the cut of a text",
        static_cast<double>(2 * sizeof(Candidate) + sizeof(Link)) * static_cast<double>(ids.size()),
        "use shorter texts, or a machine with more memory");
    if (ids.size() > std::numeric_limits<std::int32_t>::max()) {
      fail(ErrorCode::kInputFormat, "a text of {} tokens without a cut", ids.size());
    }
  }
  std::vector<Link> chain;
  chain.reserve(ids.size());
  for (const token id : ids) {
    const auto at = static_cast<std::int32_t>(chain.size());
    chain.push_back({id, at - 1, at + 1});
  }
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
  ids.clear();
  for (std::int32_t at = 0; at >= 0; at = chain[static_cast<std::size_t>(at)].behind) {
    ids.push_back(chain[static_cast<std::size_t>(at)].id);
  }
}

}  // namespace fovea
