// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/text/sentencepiece/piece_model.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// Finds all pieces that a text begins with, byte by byte.
class PieceTrie {
 public:
  PieceTrie() : PieceTrie(std::vector<std::pair<std::string_view, token>>{}) {}
  /// Pieces that are not empty, none twice, with their ids.
  explicit PieceTrie(std::vector<std::pair<std::string_view, token>> pieces);

  /// Calls f(length, id) for each piece at the front of the text, shortest first.
  template <class F>
  void visit_prefixes(std::string_view text, F&& f) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = child(node, text[i]);
      if (node == 0) return;
      if (nodes_[node].id != kNoToken) f(i + 1, nodes_[node].id);
    }
  }

  /// Where a text leads to from a node, of which 0 is the root; kNowhere if no piece goes on so.
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
  std::uint32_t walk(std::uint32_t node, std::string_view text) const {
    for (const char label : text) {
      if (node == kNowhere) break;
      const std::uint32_t next = child(node, label);
      node = next == 0 ? kNowhere : next;
    }
    return node;
  }
  /// The piece that ends at a node; kNoToken if none does, or at kNowhere.
  token id_at(std::uint32_t node) const { return node == kNowhere ? kNoToken : nodes_[node].id; }

  /// Bytes of the longest piece at the front of the text; 0: none.
  std::size_t longest_prefix(std::string_view text) const;

 private:
  struct Node {
    std::uint32_t first = 0;  // its children are nodes first, first + 1, ... by label
    std::uint32_t count = 0;
    token id = kNoToken;
  };

  // 0 (the root) if there is none.
  std::uint32_t child(std::uint32_t node, char label) const;

  std::vector<Node> nodes_;
  std::vector<unsigned char> labels_;          // [nodes]
  std::array<std::uint32_t, 256> roots_ = {};  // the children of the root
};

/// The trie of the pieces whose type `takes` says yes to.
PieceTrie trie_of(const PieceModel& model, bool (*takes)(PieceType));
/// The trie of these pieces written backward.
PieceTrie trie_of_reversed(const PieceModel& model, bool (*takes)(PieceType));

}  // namespace fovea
