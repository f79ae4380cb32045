// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/merge_table.h"

#include <algorithm>
#include <array>
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

namespace {

constexpr std::size_t kBridgesOfMerge = 4, kBitsOfBridge = 8, kBitsOfWord = 64;

}  // namespace

MergeTable::MergeTable(std::size_t merges)
    : merges_(std::bit_ceil(2 * merges + 2)),
      factor_(keyed_hash("merges") | 1),
      bridges_(std::bit_ceil(kBridgesOfMerge * kBitsOfBridge * (merges + 2)) / kBitsOfWord + 1) {}

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  const std::size_t mask = merges_.size() - 1;
  std::size_t slot = hash(pair) & mask;
  while (merges_[slot].pair != pair && merges_[slot].pair != kNoPair) slot = (slot + 1) & mask;
  return slot;
}

bool MergeTable::is_bridge(token left, token right) const {
  if (!has_ends_) return true;
  const std::size_t bit = hash(pair_of(left, right)) % ((bridges_.size() - 1) * kBitsOfWord);
  return (bridges_[bit / kBitsOfWord] >> (bit % kBitsOfWord) & 1) != 0;
}

bool MergeTable::add(token left, token right, token joined) {
  Merge& slot = merges_[slot_of(pair_of(left, right))];
  if (slot.pair != kNoPair) return false;
  slot = {pair_of(left, right), count_++, joined};
  const auto room = static_cast<std::size_t>(std::max({left, right, joined})) + 1;
  if (parts_.size() < room) parts_.resize(2 * room);
  parts_[static_cast<std::size_t>(joined)] = {left, right};
  return true;
}

std::vector<token> MergeTable::ends_along(token Parts::*part) const {
  std::vector<token> ends(parts_.size(), kNoToken);
  std::vector<std::size_t> path;
  for (std::size_t n = 0; n < parts_.size(); ++n) {
    std::size_t at = n;
    // A token that is made of itself ends nowhere.
    while (ends[at] == kNoToken && parts_[at].*part != kNoToken && path.size() < parts_.size()) {
      path.push_back(at);
      at = static_cast<std::size_t>(parts_[at].*part);
    }
    const token end = ends[at] == kNoToken ? static_cast<token>(at) : ends[at];
    ends[at] = end;
    for (const std::size_t one : path) ends[one] = end;
    path.clear();
  }
  return ends;
}

void MergeTable::finish() {
  const std::vector<token> firsts = ends_along(&Parts::left), lasts = ends_along(&Parts::right);
  const auto of = [](const std::vector<token>& ends, token id) {
    return ends[static_cast<std::size_t>(id)];
  };
  const std::size_t bits = (bridges_.size() - 1) * kBitsOfWord;
  for (const Merge& merge : merges_) {
    if (merge.rank == kNoRank) continue;
    const auto left = static_cast<token>(merge.pair >> 32);
    const auto right = static_cast<token>(merge.pair & 0xffffffff);
    has_ends_ = has_ends_ && of(firsts, left) == of(firsts, merge.joined) &&
                of(lasts, right) == of(lasts, merge.joined);
    // A text may hold a token that others could have become: <0x41>.
    for (const token last : {left, of(lasts, left)}) {
      for (const token begin : {right, of(firsts, right)}) {
        const std::size_t bit = hash(pair_of(last, begin)) % bits;
        bridges_[bit / kBitsOfWord] |= std::uint64_t{1} << (bit % kBitsOfWord);
      }
    }
  }
}

void MergeTable::join(std::vector<token>& ids, std::size_t first) const {
  const std::span<token> all = std::span(ids).subspan(first);
  if (all.size() <= kShortRun) return ids.resize(first + join_short(all));
  // Runs that no merge reaches across are joined each by itself, at the end of what is done.
  std::size_t done = first;
  std::vector<token> run;
  for (std::size_t begin = first, end = first; begin < ids.size(); begin = end) {
    while (++end < ids.size() && is_bridge(ids[end - 1], ids[end])) continue;
    const std::span<token> part = std::span(ids).subspan(begin, end - begin);
    std::size_t count = 0;
    if (part.size() <= kShortRun) {
      count = join_short(part);
      std::copy_n(part.begin(), count, ids.begin() + static_cast<std::ptrdiff_t>(done));
    } else {
      run.assign(part.begin(), part.end());
      join_long(run);
      count = run.size();
      std::ranges::copy(run, ids.begin() + static_cast<std::ptrdiff_t>(done));
    }
    done += count;
  }
  ids.resize(done);
}

// For so few tokens, to look at all of them for each merge is faster than a heap.
std::size_t MergeTable::join_short(std::span<token> ids) const {
  std::size_t count = ids.size();
  if (count < 2) return count;
  // What becomes of each token and the one behind it.
  std::array<std::uint32_t, kShortRun> ranks;
  std::array<token, kShortRun> joined;
  const auto look = [&](std::size_t n) {
    const Merge& merge = merge_of(ids[n], ids[n + 1]);
    ranks[n] = merge.rank;
    joined[n] = merge.joined;
  };
  for (std::size_t n = 0; n + 1 < count; ++n) look(n);
  for (; count > 1; --count) {
    const std::size_t pairs = count - 1;
    const std::uint32_t least = *std::min_element(ranks.begin(), ranks.begin() + pairs);
    if (least == kNoRank) break;
    const auto best = static_cast<std::size_t>(
        std::find(ranks.begin(), ranks.begin() + pairs, least) - ranks.begin());
    ids[best] = joined[best];
    for (std::size_t n = best + 1; n < pairs; ++n) {
      ids[n] = ids[n + 1];
      ranks[n - 1] = ranks[n];
      joined[n - 1] = joined[n];
    }
    if (best + 1 < pairs) look(best);
    if (best > 0) look(best - 1);
  }
  return count;
}

void MergeTable::join_long(std::vector<token>& ids) const {
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
    const Merge& merge = merge_of(l.id, r.id);
    if (merge.rank != kNoRank) candidates.push({merge.rank, left, l.id, r.id, merge.joined});
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
