// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding (Sennrich, Haddow, Birch 2016, "Neural machine translation of rare words with
// subword units"): of all neighbours whose text is a piece, those with the highest score are joined
// first, the leftmost of equal ones.
#include <algorithm>
#include <queue>

#include "fovea/base/check.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/sentencepiece/cutter.h"

namespace fovea {

namespace {

struct Symbol {
  std::string_view text;        // empty: joined to the one before
  std::int64_t before, behind;  // -1: none
  std::uint32_t node;           // where the text leads to in the trie of pieces
  bool is_fixed;                // user-defined: never joined
};

// Two neighbours that could be joined.
struct Merge {
  std::size_t left, right, bytes;
  std::uint32_t node;  // of both
  float score;
};

struct IsWorse {
  bool operator()(const Merge& a, const Merge& b) const {
    return a.score != b.score ? a.score < b.score : a.left > b.left;
  }
};

class BpeCutter final : public PieceCutter {
 public:
  BpeCutter(const PieceModel& model, const PieceNormalizer& normalizer)
      : model_(model), normalizer_(normalizer), trie_(trie_of(model, is_text)) {
    for (std::size_t id = 0; id < model.pieces.size(); ++id) {
      const ModelPiece& piece = model.pieces[id];
      if (!is_text(piece.type)) marks_.emplace(piece.text, static_cast<token>(id));
    }
  }

  std::vector<CutPiece> cut(std::string_view text) const override {
    return cut(text, [] { return false; });
  }

  std::vector<CutPiece> sample(std::string_view text, const CutSampling& sampling,
                               Random& random) const override {
    return cut(text, [&] { return random.uniform() < sampling.alpha; });
  }

  std::vector<ScoredCut> best(std::string_view, index) const override {
    fail(ErrorCode::kOptionValue, Hint{"only unigram models have several best cuts"},
         "a BPE model cuts a text in one way");
  }

 private:
  // Texts of pieces that are not used, and the two texts that were joined.
  using Joined = KeyedMap<std::string_view, std::pair<std::string_view, std::string_view>>;

  std::vector<Symbol> symbols_of(std::string_view text) const {
    std::vector<Symbol> symbols;
    while (!text.empty()) {
      const std::size_t own = normalizer_.user_defined_prefix(text);
      const std::size_t length =
          own > 0 ? own : std::min(announced_length(text.front()), text.size());
      const std::int64_t at = std::ssize(symbols);
      const std::string_view own_text = text.substr(0, length);
      symbols.push_back({own_text, at - 1, at + 1, trie_.walk(0, own_text), own > 0});
      text.remove_prefix(length);
    }
    if (!symbols.empty()) symbols.back().behind = -1;
    return symbols;
  }

  template <class Skips>
  std::vector<CutPiece> cut(std::string_view text, Skips&& skips) const;

  token id_of(std::string_view text) const {
    const auto mark = marks_.find(text);
    if (mark != marks_.end()) return mark->second;
    const token id = trie_.id_at(trie_.walk(0, text));
    return id == kNoToken ? model_.unknown : id;
  }

  bool is_unused(token id) const {
    return model_.pieces[static_cast<std::size_t>(id)].type == PieceType::kUnused;
  }

  // A piece that is not used is cut as it was joined.
  void append(std::vector<CutPiece>& pieces, std::string_view text, const Joined& joined) const {
    std::vector<std::string_view> open{text};
    while (!open.empty()) {
      const std::string_view next = open.back();
      open.pop_back();
      const token id = id_of(next);
      const auto parts = is_unused(id) ? joined.find(next) : joined.end();
      if (parts == joined.end()) {
        pieces.push_back({next, id});
      } else {
        open.push_back(parts->second.second);
        open.push_back(parts->second.first);
      }
    }
  }

  const PieceModel& model_;
  const PieceNormalizer& normalizer_;
  const PieceTrie trie_;  // of what can be joined
  KeyedMap<std::string_view, token> marks_;
};

template <class Skips>
std::vector<CutPiece> BpeCutter::cut(std::string_view text, Skips&& skips) const {
  std::vector<Symbol> symbols = symbols_of(text);
  std::priority_queue<Merge, std::vector<Merge>, IsWorse> merges;
  Joined joined;
  const auto offer = [&](std::int64_t l, std::int64_t r) {
    if (l < 0 || r < 0) return;
    const auto left = static_cast<std::size_t>(l), right = static_cast<std::size_t>(r);
    if (symbols[left].is_fixed || symbols[right].is_fixed) return;
    const std::uint32_t node = trie_.walk(symbols[left].node, symbols[right].text);
    const token id = trie_.id_at(node);
    if (id == kNoToken) return;
    const std::string_view both(symbols[left].text.data(),
                                symbols[left].text.size() + symbols[right].text.size());
    merges.push(
        {left, right, both.size(), node, model_.pieces[static_cast<std::size_t>(id)].score});
    if (is_unused(id)) joined[both] = {symbols[left].text, symbols[right].text};
  };
  for (std::int64_t i = 1; i < std::ssize(symbols); ++i) offer(i - 1, i);
  while (!merges.empty()) {
    const Merge merge = merges.top();
    merges.pop();
    Symbol &left = symbols[merge.left], &right = symbols[merge.right];
    const bool still_there = !left.text.empty() && !right.text.empty() &&
                             left.text.size() + right.text.size() == merge.bytes;
    if (!still_there || skips()) continue;
    left.text = {left.text.data(), merge.bytes};
    left.node = merge.node;
    left.behind = right.behind;
    if (right.behind >= 0) {
      symbols[static_cast<std::size_t>(right.behind)].before =
          static_cast<std::int64_t>(merge.left);
    }
    right.text = {};
    offer(left.before, static_cast<std::int64_t>(merge.left));
    offer(static_cast<std::int64_t>(merge.left), left.behind);
  }
  std::vector<CutPiece> pieces;
  for (std::int64_t i = symbols.empty() ? -1 : 0; i >= 0;
       i = symbols[static_cast<std::size_t>(i)].behind) {
    append(pieces, symbols[static_cast<std::size_t>(i)].text, joined);
  }
  return pieces;
}

}  // namespace

std::unique_ptr<PieceCutter> make_bpe_cutter(const PieceModel& model,
                                             const PieceNormalizer& normalizer) {
  return std::make_unique<BpeCutter>(model, normalizer);
}

}  // namespace fovea
