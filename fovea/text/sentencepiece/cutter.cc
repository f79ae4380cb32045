// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/sentencepiece/cutter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <queue>
#include <span>
#include <string>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/text/keyed_hash.h"

namespace fovea {

namespace {

// Byte-pair encoding (Sennrich, Haddow, Birch 2016, "Neural machine translation of rare words with
// subword units"): of all neighbours whose text is a piece, those with the highest score are joined
// first, the leftmost of equal ones.

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

namespace {

// The unigram language model of pieces (Kudo 2018, section 3): the text's probability is the
// product of those of its pieces, and scores are their logarithms.

constexpr float kUnknownPenalty = 10;
constexpr index kMostBest = 512;

class UnigramCutter final : public PieceCutter {
 public:
  explicit UnigramCutter(const PieceModel& model) : model_(model), trie_(trie_of(model, cuts)) {
    // SentencePiece begins the largest score at the smallest positive float: scores are negative.
    float smallest = std::numeric_limits<float>::max();
    for (const ModelPiece& piece : model.pieces) {
      if (piece.type != PieceType::kNormal) continue;
      smallest = std::min(smallest, piece.score);
      largest_ = std::max(largest_, piece.score);
    }
    unknown_score_ = smallest - kUnknownPenalty;
    for (const ModelPiece& piece : model.pieces) scores_.push_back(score_of(piece));
  }

  std::vector<CutPiece> cut(std::string_view text) const override;
  std::vector<CutPiece> sample(std::string_view text, const CutSampling& sampling,
                               Random& random) const override;
  std::vector<ScoredCut> best(std::string_view text, index n) const override;

 private:
  // A user-defined piece is hardly worse than the best one: it wins over all that cut it further.
  double score_of(const ModelPiece& piece) const {
    if (piece.type != PieceType::kUserDefined) return piece.score;
    return static_cast<float>(piece.text.size()) * largest_ - 0.1;
  }

  // Calls f(begin, length, id, score) for each piece of the text, by where it begins, then by
  // length; a character that is no piece is the unknown one.
  template <class F>
  void visit_arcs(std::string_view text, F&& f) const {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::string_view rest = text.substr(begin);
      const std::size_t character = std::min(announced_length(rest.front()), rest.size());
      bool has_character = false;
      trie_.visit_prefixes(rest, [&](std::size_t length, token id) {
        f(begin, length, id, scores_[static_cast<std::size_t>(id)]);
        has_character |= length == character;
      });
      if (!has_character) f(begin, character, model_.unknown, double{unknown_score_});
      begin += character;
    }
  }

  class Ends;

  static bool cuts(PieceType type) { return is_text(type) && type != PieceType::kUnused; }

  // The pieces from their last byte to their first. Only the first use of several cuts makes it.
  const PieceTrie& backward() const {
    std::call_once(backward_once_, [&] { backward_ = trie_of_reversed(model_, cuts); });
    return backward_;
  }

  std::vector<CutPiece> sample_path(std::string_view text, double alpha, Random& random) const;

  const PieceModel& model_;
  const PieceTrie trie_;
  mutable std::once_flag backward_once_;
  mutable PieceTrie backward_;
  std::vector<double> scores_;  // by id
  float largest_ = std::numeric_limits<float>::min();
  float unknown_score_ = 0;
};

// A piece that the text may be cut into, and where it begins.
struct Arc {
  std::size_t begin;
  token id;
  double score;
};

// The pieces that end at a byte of a text. All of them at once would take memory for each pair of
// bytes, of a model whose pieces begin one another.
class UnigramCutter::Ends {
 public:
  Ends(const UnigramCutter& cutter, std::string_view text)
      : cutter_(cutter),
        trie_(cutter.backward()),
        reversed_(text.rbegin(), text.rend()),
        character_(text.size() + 1) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t length = std::min(announced_length(text[begin]), text.size() - begin);
      character_[begin] = static_cast<char>(length);
      begin += length;
    }
  }

  // By where they begin, as visit_arcs gives them. Valid until the next call.
  std::span<const Arc> at(std::size_t end) {
    arcs_.clear();
    const std::string_view behind = std::string_view(reversed_).substr(reversed_.size() - end);
    trie_.visit_prefixes(behind, [&](std::size_t length, token id) {
      const std::size_t begin = end - length;
      if (character_[begin] == 0) return;
      arcs_.push_back({begin, id, cutter_.scores_[static_cast<std::size_t>(id)]});
    });
    std::reverse(arcs_.begin(), arcs_.end());
    std::size_t last = end - 1;  // where the last character before the end begins
    while (character_[last] == 0) --last;
    const bool is_whole = last + static_cast<std::size_t>(character_[last]) == end;
    if (is_whole && (arcs_.empty() || arcs_.back().begin != last)) {
      arcs_.push_back({last, cutter_.model_.unknown, double{cutter_.unknown_score_}});
    }
    return arcs_;
  }

 private:
  const UnigramCutter& cutter_;
  const PieceTrie& trie_;
  const std::string reversed_;
  std::vector<char> character_;  // [text + 1]: bytes of the one that begins here; 0: none does
  std::vector<Arc> arcs_;
};

// Viterbi's algorithm. Scores of equal paths differ by their rounding alone, and decide: as in
// SentencePiece, a path has its score in float, a longer one is compared in double before it is
// rounded, and the first of equal ones stays.
std::vector<CutPiece> UnigramCutter::cut(std::string_view text) const {
  struct Best {
    float score = 0;
    std::int64_t begin = -1;
    token id = kNoToken;
  };
  std::vector<Best> best(text.size() + 1);
  visit_arcs(text, [&](std::size_t begin, std::size_t length, token id, double score) {
    Best& end = best[begin + length];
    const double before = best[begin].score;
    const double candidate =
        id == model_.unknown ? static_cast<float>(score) + best[begin].score : score + before;
    if (end.begin >= 0 && !(candidate > end.score)) return;
    end = {static_cast<float>(candidate), static_cast<std::int64_t>(begin), id};
  });
  std::vector<CutPiece> pieces;
  for (std::size_t end = text.size(); end > 0;) {
    const auto begin = static_cast<std::size_t>(best[end].begin);
    pieces.push_back({text.substr(begin, end - begin), best[end].id});
    end = begin;
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

// The n best of each place are made of those of the places before it.
std::vector<ScoredCut> UnigramCutter::best(std::string_view text, index n) const {
  require_option(n >= 1 && n <= kMostBest, "best", n, "from 1 to {}", kMostBest);
  struct Path {
    double score = 0;
    std::size_t begin = 0, rank = 0;  // of the path before
    token id = kNoToken;
  };
  require_memory("the best cuts of a line",
                 static_cast<double>(text.size()) * static_cast<double>(n) * sizeof(Path),
                 "use a smaller --best, or shorter lines");
  Ends ends(*this, text);
  std::vector<std::vector<Path>> paths(text.size() + 1);
  paths[0].emplace_back();
  std::vector<Path> here;  // all of them, before the best are kept
  for (std::size_t end = 1; end <= text.size(); ++end) {
    here.clear();
    for (const Arc& arc : ends.at(end)) {
      for (std::size_t rank = 0; rank < paths[arc.begin].size(); ++rank) {
        here.push_back({paths[arc.begin][rank].score + arc.score, arc.begin, rank, arc.id});
      }
    }
    std::stable_sort(here.begin(), here.end(),
                     [](const Path& a, const Path& b) { return a.score > b.score; });
    paths[end].assign(here.begin(), here.begin() + std::min<std::ptrdiff_t>(n, std::ssize(here)));
  }
  std::vector<ScoredCut> cuts;
  for (const Path& last : paths[text.size()]) {
    ScoredCut cut{.pieces = {}, .score = last.score};
    std::size_t end = text.size();
    for (const Path* path = &last; end > 0; path = &paths[path->begin][path->rank]) {
      cut.pieces.push_back({text.substr(path->begin, end - path->begin), path->id});
      end = path->begin;
    }
    std::reverse(cut.pieces.begin(), cut.pieces.end());
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

std::size_t draw(const std::vector<double>& logs, Random& random) {
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - largest);
  double left = random.uniform() * sum;
  for (std::size_t i = 0; i + 1 < logs.size(); ++i) {
    left -= std::exp(logs[i] - largest);
    if (left < 0) return i;
  }
  return logs.size() - 1;
}

// Forward filtering, backward sampling: a path with probability proportional to
// exp(alpha x score), over all paths.
std::vector<CutPiece> UnigramCutter::sample_path(std::string_view text, double alpha,
                                                 Random& random) const {
  Ends ends(*this, text);
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  std::vector<double> forward(text.size() + 1, kNever);
  forward[0] = 0;
  std::vector<double> logs;
  const auto weigh = [&](std::span<const Arc> arcs) {
    logs.clear();
    for (const Arc& arc : arcs) logs.push_back(forward[arc.begin] + alpha * arc.score);
  };
  for (std::size_t end = 1; end <= text.size(); ++end) {
    weigh(ends.at(end));
    if (logs.empty()) continue;
    const double largest = *std::max_element(logs.begin(), logs.end());
    double sum = 0;
    for (const double log : logs) sum += largest == kNever ? 0 : std::exp(log - largest);
    forward[end] = largest == kNever ? kNever : largest + std::log(sum);
  }
  std::vector<CutPiece> pieces;
  for (std::size_t end = text.size(); end > 0;) {
    const std::span<const Arc> arcs = ends.at(end);
    weigh(arcs);
    const Arc& arc = arcs[draw(logs, random)];
    pieces.push_back({text.substr(arc.begin, end - arc.begin), arc.id});
    end = arc.begin;
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<CutPiece> UnigramCutter::sample(std::string_view text, const CutSampling& sampling,
                                            Random& random) const {
  if (sampling.best == 0) return sample_path(text, sampling.alpha, random);
  std::vector<ScoredCut> cuts = best(text, sampling.best);
  std::vector<double> logs;
  for (const ScoredCut& cut : cuts) logs.push_back(sampling.alpha * cut.score);
  return std::move(cuts[draw(logs, random)].pieces);
}

}  // namespace

std::unique_ptr<PieceCutter> make_unigram_cutter(const PieceModel& model) {
  return std::make_unique<UnigramCutter>(model);
}

}  // namespace fovea
