// SPDX-License-Identifier: Apache-2.0
// sentencepiece_test.cc compares with SentencePiece.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "fovea/base/machine.h"
#include "fovea/base/sanitizer.h"
#include "fovea/text/sentencepiece/cutter.h"
#include "tests/support/throws.h"
#include "tests/support/time_taken.h"
#include "tests/text/sentencepiece/proto_writer.h"

namespace fovea {
namespace {

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

}  // namespace
}  // namespace fovea
