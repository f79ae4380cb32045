// SPDX-License-Identifier: Apache-2.0
// sentencepiece_test.cc compares with SentencePiece.
#include "fovea/text/sentencepiece/cutter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "fovea/base/machine.h"
#include "fovea/base/random.h"
#include "fovea/base/sanitizer.h"
#include "fovea/text/sentencepiece/piece_model.h"
#include "tests/support/throws.h"
#include "tests/support/time_taken.h"
#include "tests/text/sentencepiece/proto_writer.h"

namespace fovea {
namespace {

struct Cutter {
  explicit Cutter(std::vector<ModelPiece> pieces)
      : model(read_piece_model(model_of(std::move(pieces), PieceAlgorithm::kBpe), "m")),
        normalizer(model, "m"),
        cutter(make_bpe_cutter(model, normalizer)) {}

  std::string cut(std::string_view text) const { return written(cutter->cut(text)); }
  static std::string written(const std::vector<CutPiece>& pieces) {
    std::string text;
    for (const CutPiece& piece : pieces) {
      text += text.empty() ? "" : " ";
      text += piece.text;
    }
    return text;
  }

  PieceModel model;
  PieceNormalizer normalizer;
  std::unique_ptr<PieceCutter> cutter;
};

using enum PieceType;
const std::vector<ModelPiece> kLetters{{"a", -9, kNormal}, {"b", -9, kNormal}, {"c", -9, kNormal}};

std::vector<ModelPiece> with(std::vector<ModelPiece> more) {
  more.insert(more.begin(), kLetters.begin(), kLetters.end());
  return more;
}

TEST(Bpe, JoinsTheHighestScoreFirstThenTheLeftmost) {
  const Cutter cutter(with({{"ab", -1, kNormal}, {"bc", 0, kNormal}, {"aa", -2, kNormal}}));
  EXPECT_EQ(cutter.cut("abc"), "a bc");
  EXPECT_EQ(cutter.cut("ab"), "ab");
  EXPECT_EQ(cutter.cut("aaa"), "aa a");
  EXPECT_EQ(cutter.cut("aaaa"), "aa aa");
  EXPECT_EQ(cutter.cut(""), "");
}

// "abc" is a piece, but neither "ab" nor "bc" is: nothing leads to it.
TEST(Bpe, OnlyJoinsNeighbours) {
  EXPECT_EQ(Cutter(with({{"abc", 0, kNormal}})).cut("abc"), "a b c");
  EXPECT_EQ(Cutter(with({{"abc", 0, kNormal}, {"bc", -1, kNormal}})).cut("abc"), "abc");
}

TEST(Bpe, UnusedPiecesAreCutAsTheyWereJoined) {
  const Cutter cutter(with({{"ab", -1, kUnused}, {"abc", -2, kUnused}, {"abca", -3, kNormal}}));
  EXPECT_EQ(cutter.cut("abc"), "a b c");
  EXPECT_EQ(cutter.cut("abca"), "abca");
}

TEST(Bpe, UserDefinedPiecesAreNeverJoined) {
  const Cutter cutter(with({{"bc", 0, kUserDefined}, {"abc", 0, kNormal}, {"ab", 0, kNormal}}));
  EXPECT_EQ(cutter.cut("abcab"), "a bc ab");
}

TEST(Bpe, CharactersWithoutAPieceAreUnknown) {
  const Cutter cutter(kLetters);
  EXPECT_EQ(cutter.cutter->cut("a月"), (std::vector<CutPiece>{{"a", 1}, {"月", 0}}));
}

// The definition: join one pair after another, looking at all of them each time.
std::string plain_cut(const PieceModel& model, std::string_view text) {
  std::vector<std::string> symbols;
  for (const char c : text) symbols.emplace_back(1, c);
  while (true) {
    const ModelPiece* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (const ModelPiece& piece : model.pieces) {
        const bool joins = piece.type == kNormal && piece.text == symbols[i] + symbols[i + 1];
        if (!joins || (best != nullptr && piece.score <= best->score)) continue;
        best = &piece;
        at = i;
      }
    }
    if (best == nullptr) break;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  std::string cut;
  for (const std::string& symbol : symbols) cut += (cut.empty() ? "" : " ") + symbol;
  return cut;
}

TEST(Bpe, IsTheDefinition) {
  Random random(1, RandomUse::kTest);
  const auto some = [&](index longest) {
    std::string text;
    for (index left = 1 + random.below(longest); left > 0; --left) text += "abc"[random.below(3)];
    return text;
  };
  for (int problem = 0; problem < 100; ++problem) {
    std::map<std::string, ModelPiece> pieces;
    for (const ModelPiece& letter : kLetters) pieces[letter.text] = letter;
    for (float rank = 0; rank < 20; ++rank) {
      const std::string text = some(4);
      if (text.size() > 1) pieces[text] = {text, -rank, kNormal};
    }
    std::vector<ModelPiece> all;
    for (const auto& [text, piece] : pieces) all.push_back(piece);
    const Cutter cutter(all);
    for (int n = 0; n < 20; ++n) {
      const std::string text = some(14);
      EXPECT_EQ(cutter.cut(text), plain_cut(cutter.model, text)) << text;
    }
  }
}

TEST(Bpe, DropoutLeavesOutMerges) {
  const Cutter cutter(with({{"ab", -1, kNormal}}));
  const auto share_joined = [&](double alpha) {
    int joined = 0;
    for (std::uint64_t n = 0; n < 2000; ++n) {
      Random random(3, RandomUse::kTest, n);
      joined += Cutter::written(cutter.cutter->sample("ab", {.alpha = alpha}, random)) == "ab";
    }
    return joined / 2000.0;
  };
  EXPECT_EQ(share_joined(0), 1);
  EXPECT_EQ(share_joined(1), 0);
  EXPECT_NEAR(share_joined(0.3), 0.7, 5 * std::sqrt(0.21 / 2000));
  EXPECT_THROWS(cutter.cutter->best("ab", 2), kOptionValue, "in one way");
}

PieceModel model_with(std::vector<ModelPiece> pieces) {
  return read_piece_model(model_of(std::move(pieces), PieceAlgorithm::kUnigram), "m");
}

std::string written(const std::vector<CutPiece>& pieces) {
  std::string text;
  for (const CutPiece& piece : pieces) text.append(piece.text).append(" ");
  return text;
}

PieceModel random_model(Random& random) {
  std::map<std::string, ModelPiece> pieces;
  for (int n = 0; n < 12; ++n) {
    std::string text;
    for (index left = 1 + random.below(3); left > 0; --left) text += "abc"[random.below(3)];
    pieces[text] = {text, -static_cast<float>(random.uniform(0.5, 6)), PieceType::kNormal};
  }
  std::vector<ModelPiece> all;
  for (const auto& [text, piece] : pieces) all.push_back(piece);
  return model_with(all);
}

// All cuts, by trying every piece at every place; a character without a piece is unknown.
void visit_cuts(const PieceModel& model, std::string_view text, std::vector<CutPiece>& cut,
                double score, std::map<std::string, double>& scores) {
  if (text.empty()) {
    scores[written(cut)] = score;
    return;
  }
  float smallest = 0;
  bool has_character = false;
  const auto go_on = [&](std::size_t length, double own) {
    cut.push_back({text.substr(0, length), 0});
    visit_cuts(model, text.substr(length), cut, score + own, scores);
    cut.pop_back();
  };
  for (const ModelPiece& piece : model.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    smallest = std::min(smallest, piece.score);
    if (!text.starts_with(piece.text)) continue;
    has_character |= piece.text.size() == 1;
    go_on(piece.text.size(), piece.score);
  }
  if (!has_character) go_on(1, smallest - 10);
}

std::map<std::string, double> all_cuts(const PieceModel& model, std::string_view text) {
  std::map<std::string, double> scores;
  std::vector<CutPiece> cut;
  visit_cuts(model, text, cut, 0, scores);
  return scores;
}

TEST(Unigram, CutsAreTheBestOfAll) {
  Random random(1, RandomUse::kTest);
  for (int problem = 0; problem < 100; ++problem) {
    const PieceModel model = random_model(random);
    std::string text;
    for (index left = 1 + random.below(8); left > 0; --left) text += "abc"[random.below(3)];
    const auto cutter = make_unigram_cutter(model);
    const std::map<std::string, double> scores = all_cuts(model, text);
    std::vector<double> wanted;
    for (const auto& [cut, score] : scores) wanted.push_back(score);
    std::sort(wanted.rbegin(), wanted.rend());
    EXPECT_NEAR(scores.at(written(cutter->cut(text))), wanted[0], 1e-5);  // its paths are floats
    const std::vector<ScoredCut> best = cutter->best(text, 20);
    ASSERT_EQ(best.size(), std::min<std::size_t>(20, wanted.size()));
    std::set<std::string> cuts;
    for (std::size_t n = 0; n < best.size(); ++n) {
      EXPECT_NEAR(best[n].score, wanted[n], 1e-9);
      EXPECT_NEAR(scores.at(written(best[n].pieces)), wanted[n], 1e-9);
      EXPECT_TRUE(cuts.insert(written(best[n].pieces)).second);
    }
  }
}

// Chi-squared of 20,000 draws against exp(alpha x score).
void expect_distribution(const std::map<std::string, double>& scores, double alpha,
                         const PieceCutter& cutter, std::string_view text, index best) {
  std::map<std::string, index> times;
  constexpr int kDraws = 20000;
  for (int n = 0; n < kDraws; ++n) {
    Random random(7, RandomUse::kTest, static_cast<std::uint64_t>(n));
    ++times[written(cutter.sample(text, {.alpha = alpha, .best = best}, random))];
  }
  double sum = 0, chi = 0, cells = 0;
  for (const auto& [cut, score] : scores) sum += std::exp(alpha * score);
  for (const auto& [cut, score] : scores) {
    const double expected = kDraws * std::exp(alpha * score) / sum;
    if (expected < 5) continue;
    const double off = static_cast<double>(times[cut]) - expected;
    chi += off * off / expected;
    ++cells;
  }
  EXPECT_GT(cells, 2);
  EXPECT_LT(chi, cells + 5 * std::sqrt(2 * cells));
}

TEST(Unigram, SamplesFollowTheProbabilities) {
  const PieceModel model = model_with({{"a", -1, PieceType::kNormal},
                                       {"b", -1.5, PieceType::kNormal},
                                       {"ab", -2, PieceType::kNormal},
                                       {"aba", -3, PieceType::kNormal},
                                       {"ba", -2.5, PieceType::kNormal}});
  const auto cutter = make_unigram_cutter(model);
  const auto scores = all_cuts(model, "abab");
  expect_distribution(scores, 1, *cutter, "abab", 0);
  expect_distribution(scores, 0.3, *cutter, "abab", 0);
  expect_distribution(scores, 0, *cutter, "abab", 0);
  std::map<std::string, double> best;
  for (const ScoredCut& cut : cutter->best("abab", 3)) best[written(cut.pieces)] = cut.score;
  expect_distribution(best, 0.5, *cutter, "abab", 3);
}

TEST(Unigram, UnknownAndEmpty) {
  const PieceModel model = model_with({{"a", -1, PieceType::kNormal}});
  const auto cutter = make_unigram_cutter(model);
  EXPECT_EQ(cutter->cut("a月"), (std::vector<CutPiece>{{"a", 1}, {"月", 0}}));
  EXPECT_TRUE(cutter->cut("").empty());
  EXPECT_EQ(cutter->best("", 3).size(), 1u);
  Random random(1, RandomUse::kTest);
  EXPECT_TRUE(cutter->sample("", {}, random).empty());
  EXPECT_THROWS(cutter->best("a", 0), kOptionValue, "--best: 0");
  EXPECT_THROWS(cutter->best("a", 513), kOptionValue, "--best: 513");
}

TEST(Unigram, UnusedPiecesAreNotUsed) {
  const PieceModel model = model_with({{"a", -1, PieceType::kNormal},
                                       {"aa", -0.1f, PieceType::kUnused},
                                       {"b", -1, PieceType::kUnused}});
  EXPECT_EQ(make_unigram_cutter(model)->cut("aab"),
            (std::vector<CutPiece>{{"a", 1}, {"a", 1}, {"b", 0}}));
}

// Pieces that begin one another: all of them at each byte would be a hundred million.
TEST(Unigram, NestedPiecesTakeTimeAndMemoryOfTheText) {
  constexpr index kPieces = 512, kBytes = 20'000;
  std::vector<ModelPiece> pieces;
  for (index n = 1; n <= kPieces; ++n) {
    pieces.push_back({std::string(static_cast<std::size_t>(n), 'a'), -1, PieceType::kNormal});
  }
  const PieceModel model = model_with(pieces);
  const auto cutter = make_unigram_cutter(model);
  Random random(1, RandomUse::kTest);
  const auto cut = [&](index bytes) {
    const std::string text(static_cast<std::size_t>(bytes), 'a');
    std::size_t sum = 0;
    for (const CutPiece& piece : cutter->sample(text, {.alpha = 1}, random))
      sum += piece.text.size();
    EXPECT_EQ(sum, text.size());
  };
#if !defined(FOVEA_ADDRESS_SANITIZER) && \
    !defined(FOVEA_THREAD_SANITIZER)  // which keep what is freed
  const std::int64_t before = peak_memory_bytes();
  cut(kBytes);
  EXPECT_LT(peak_memory_bytes() - before, 16 << 20);
#endif
  EXPECT_TRUE(grows_linearly(cut, kBytes / 10));
}

using Found = std::vector<std::pair<std::size_t, token>>;

Found prefixes(const PieceTrie& trie, std::string_view text) {
  Found found;
  trie.visit_prefixes(text, [&](std::size_t length, token id) { found.emplace_back(length, id); });
  return found;
}

TEST(PieceTrie, FindsThePiecesAtTheFront) {
  const PieceTrie trie({{"ab", 5}, {"a", 3}, {"abcd", 4}, {"b", 0}, {"月", 9}});
  EXPECT_EQ(prefixes(trie, "abc"), (Found{{1, 3}, {2, 5}}));
  EXPECT_EQ(prefixes(trie, "abcde"), (Found{{1, 3}, {2, 5}, {4, 4}}));
  EXPECT_EQ(prefixes(trie, "月月"), (Found{{3, 9}}));
  EXPECT_EQ(prefixes(trie, "c"), Found{});
  EXPECT_EQ(prefixes(trie, ""), Found{});
  EXPECT_EQ(trie.longest_prefix("abcd"), 4u);
  EXPECT_EQ(trie.longest_prefix("x"), 0u);
  EXPECT_EQ(PieceTrie().longest_prefix("x"), 0u);
}

TEST(PieceTrie, WalksOnFromAnyNode) {
  const PieceTrie trie({{"ab", 5}, {"abcd", 4}});
  const std::uint32_t ab = trie.walk(0, "ab");
  EXPECT_EQ(trie.id_at(ab), 5);
  EXPECT_EQ(trie.id_at(trie.walk(ab, "c")), kNoToken);
  EXPECT_EQ(trie.id_at(trie.walk(ab, "cd")), 4);
  EXPECT_EQ(trie.walk(ab, "d"), PieceTrie::kNowhere);
  EXPECT_EQ(trie.walk(PieceTrie::kNowhere, "a"), PieceTrie::kNowhere);
  EXPECT_EQ(trie.walk(0, ""), 0u);
}

TEST(PieceTrie, IsASearchThroughAllPieces) {
  Random random(1, RandomUse::kTest);
  const auto some = [&](index longest) {
    std::string text;
    for (index left = 1 + random.below(longest); left > 0; --left) {
      text += "ab\xC3\xBF"[random.below(4)];
    }
    return text;
  };
  for (int problem = 0; problem < 50; ++problem) {
    std::map<std::string, token> pieces;
    for (token id = 0; id < 60; ++id) pieces.emplace(some(6), id);
    const PieceTrie trie({pieces.begin(), pieces.end()});
    for (int text = 0; text < 50; ++text) {
      const std::string of = some(10);
      Found wanted;
      for (std::size_t length = 1; length <= of.size(); ++length) {
        const auto found = pieces.find(of.substr(0, length));
        if (found != pieces.end()) wanted.emplace_back(length, found->second);
      }
      EXPECT_EQ(prefixes(trie, of), wanted);
    }
  }
}

}  // namespace
}  // namespace fovea
