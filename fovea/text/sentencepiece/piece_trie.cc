// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/sentencepiece/piece_trie.h"

#include <algorithm>
#include <deque>
#include <string>

#include "fovea/base/machine.h"

namespace fovea {

namespace {

// The sorted pieces [begin, end) begin with the `depth` bytes that lead to the node.
struct Range {
  std::uint32_t node;
  std::size_t begin, end, depth;
};

}  // namespace

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, token>> pieces) {
  std::sort(pieces.begin(), pieces.end());
  double bytes = 0;
  for (const auto& [text, id] : pieces) bytes += static_cast<double>(text.size());
  // Vectors double; pieces without a common beginning have a node for each byte.
  require_memory("the pieces", 2 * bytes * (sizeof(Node) + 1),
                 "take a model with fewer or shorter pieces");
  nodes_.emplace_back();
  labels_.push_back(0);
  std::deque<Range> open{{0, 0, pieces.size(), 0}};
  for (; !open.empty(); open.pop_front()) {  // breadth first
    Range range = open.front();
    if (range.depth > 0 && pieces[range.begin].first.size() == range.depth) {
      nodes_[range.node].id = pieces[range.begin++].second;
    }
    nodes_[range.node].first = static_cast<std::uint32_t>(nodes_.size());
    while (range.begin < range.end) {
      const char label = pieces[range.begin].first[range.depth];
      std::size_t end = range.begin + 1;
      while (end < range.end && pieces[end].first[range.depth] == label) ++end;
      open.push_back(
          {static_cast<std::uint32_t>(nodes_.size()), range.begin, end, range.depth + 1});
      nodes_.emplace_back();
      labels_.push_back(static_cast<unsigned char>(label));
      ++nodes_[range.node].count;
      range.begin = end;
    }
  }
  for (std::uint32_t i = 0; i < nodes_[0].count; ++i) roots_[labels_[1 + i]] = 1 + i;
}

PieceTrie trie_of(const PieceModel& model, bool (*takes)(PieceType)) {
  std::vector<std::pair<std::string_view, token>> pieces;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const ModelPiece& piece = model.pieces[id];
    if (takes(piece.type)) pieces.emplace_back(piece.text, static_cast<token>(id));
  }
  return PieceTrie(std::move(pieces));
}

PieceTrie trie_of_reversed(const PieceModel& model, bool (*takes)(PieceType)) {
  std::vector<std::string> reversed;
  std::vector<std::pair<std::string_view, token>> pieces;
  reversed.reserve(model.pieces.size());  // its texts are viewed
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const ModelPiece& piece = model.pieces[id];
    if (!takes(piece.type)) continue;
    reversed.emplace_back(piece.text.rbegin(), piece.text.rend());
    pieces.emplace_back(reversed.back(), static_cast<token>(id));
  }
  return PieceTrie(std::move(pieces));
}

std::uint32_t PieceTrie::child(std::uint32_t node, char label) const {
  const auto wanted = static_cast<unsigned char>(label);
  if (node == 0) return roots_[wanted];
  const Node& at = nodes_[node];
  const unsigned char* const begin = labels_.data() + at.first;
  const unsigned char* const end = begin + at.count;
  constexpr std::uint32_t kFew = 8;  // no slower one by one
  const unsigned char* const found =
      at.count <= kFew ? std::find(begin, end, wanted) : std::lower_bound(begin, end, wanted);
  return found == end || *found != wanted ? 0
                                          : at.first + static_cast<std::uint32_t>(found - begin);
}

std::size_t PieceTrie::longest_prefix(std::string_view text) const {
  std::size_t longest = 0;
  visit_prefixes(text, [&](std::size_t length, token) { longest = length; });
  return longest;
}

}  // namespace fovea
