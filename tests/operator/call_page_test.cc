// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>
#include <utility>

#include "fovea/base/random.h"
#include "fovea/operator/attention_call.h"
#include "fovea/operator/run_attention.h"
#include "fovea/report/attention_data.h"
#include "tests/operator/attention_problem.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

Tensor normal(const Shape& shape, std::uint64_t seed) {
  Random random(seed, RandomUse::kTest);
  Tensor tensor(shape, DType::kFloat32);
  for (float& x : tensor.vec<float>()) x = static_cast<float>(random.normal());
  return tensor;
}

AttentionTensors problem(const Tensor& q) {
  return {{{"q", q}, {"k", normal({2, 7, 2, 5}, 2)}, {"v", normal({2, 7, 2, 6}, 3)}},
          attention_tensor_specs(),
          "folder/in.npz"};
}
AttentionTensors problem() { return problem(normal({2, 3, 4, 5}, 1)); }

AttentionSizes sizes_of(index B, index T, index S, index H) {
  AttentionSizes sizes{};
  sizes.B = B, sizes.T = T, sizes.S = S, sizes.H = H;
  return sizes;
}

TEST(ChoosePageRows, TakesAllThatFits) {
  const PageRows all = choose_page_rows(sizes_of(2, 3, 5, 4), 120);
  EXPECT_EQ(all.sequences, 2);
  EXPECT_THAT(all.rows, ElementsAre(0, 1, 2));
  EXPECT_EQ(choose_page_rows(sizes_of(2, 3, 5, 4), 119).sequences, 1);
}

TEST(ChoosePageRows, SpacesRowsEvenlyAndEndsWithTheLast) {
  const PageRows some = choose_page_rows(sizes_of(2, 100, 10, 1), 40);
  EXPECT_EQ(some.sequences, 1);
  EXPECT_THAT(some.rows, ElementsAre(24, 49, 74, 99));
  EXPECT_THAT(choose_page_rows(sizes_of(2, 100, 10, 1), 1).rows, ElementsAre(99));
}

TEST(ChoosePageRows, RefusesWhatAPageCannotShow) {
  EXPECT_THROWS(choose_page_rows(sizes_of(1, 1, kMostPageKeys + 1, 1)), kShape, "32769 keys");
  EXPECT_THROWS(choose_page_rows(sizes_of(1, 0, 1, 1)), kShape, "at least one");
}

TEST(CallPage, ShowsTheWeightsOfTheCall) {
  for (const bool reference : {false, true}) {
    const AttentionSettings settings{.causal = CausalKind::kBottomRight,
                                     .dropout = .25,
                                     .observe = reference ? "" : "max",
                                     .reference = reference};
    AttentionSettings observed = settings;
    observed.observe = "weights,entropy,distance";
    const auto results = run_attention(Context(1), observed, problem());
    const Tensor weights = at(results, "weights").to(DType::kFloat32);
    const AttentionPage page =
        page_attention(Context(2), settings, problem(), PageLanguage::kEnglish);
    EXPECT_EQ(page.title, "Attention of in.npz");
    ASSERT_EQ(page.maps.size(), 2);
    EXPECT_EQ(page.maps[1].name, "sequence 2");
    std::vector<float> shown = page.maps[0].weights;
    shown.insert(shown.end(), page.maps[1].weights.begin(), page.maps[1].weights.end());
    ASSERT_EQ(shown.size(), 2 * 4 * 3 * 7);
    for (std::size_t cell = 0; cell < shown.size(); ++cell) {
      EXPECT_NEAR(shown[cell], weights.data<float>()[cell], 1e-6);
    }
    const Tensor entropy = at(results, "entropy").to(DType::kFloat32);
    const float* of = entropy.data<float>();
    EXPECT_NEAR(page.maps[0].entropy[0], (of[0] + of[1] + of[2]) / 3, 1e-6);
    EXPECT_THAT(page.texts[0].tokens, ElementsAre("0", "1", "2"));
    EXPECT_FALSE(page.tiles.empty());
  }
}

// The first query keeps one key alone, and so its weight is 1.
TEST(CallPage, TheLargestWeightIsOfAQueryWithAChoice) {
  AttentionPage page = page_attention(Context(1), {.causal = CausalKind::kTopLeft}, problem(),
                                      PageLanguage::kEnglish);
  for (AttentionMap& map : page.maps) {
    const std::vector<float> given = std::exchange(map.largest, {});
    EXPECT_THAT(head_means(page, map).largest,
                testing::Pointwise(testing::FloatNear(1e-6F), given));
    EXPECT_THAT(given, testing::Each(testing::Lt(1)));
  }
}

TEST(CallPage, KnowsCallsWithoutEntropy) {
  const AttentionPage page = page_attention(Context(1), {.norm = AttentionNormKind::kSigmoid},
                                            problem(), PageLanguage::kChinese);
  EXPECT_FALSE(page.has_entropies);
  EXPECT_FALSE(page.rows_sum_to_one);
  EXPECT_TRUE(page.maps[0].entropy.empty());
  EXPECT_EQ(page.title, "in.npz 的注意力");
}

TEST(CallPage, SaysWhichSequencesAndRowsItShows) {
  const Tensor q = normal({2, 1500, 1, 4}, 1), k = normal({2, 6000, 1, 4}, 2);
  const AttentionTensors large({{"q", q}, {"k", k}, {"v", k}}, attention_tensor_specs(), "in.npz");
  const AttentionPage page = page_attention(Context(2), {}, large, PageLanguage::kEnglish);
  ASSERT_EQ(page.notes.size(), 2);
  EXPECT_EQ(page.notes[0], "Only the first 1 of 2 sequences are shown.");
  EXPECT_THAT(page.notes[1], testing::HasSubstr("Only 1398 of 1500 queries"));
  EXPECT_EQ(page.texts[0].tokens.back(), "1499");
  EXPECT_EQ(page.maps[0].weights.size(), 1398 * 6000);
}

TEST(CallPage, RefusesWeightsThatAreNotFinite) {
  Tensor q = normal({2, 3, 4, 5}, 1);
  q.data<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROWS(page_attention(Context(1), {}, problem(q), PageLanguage::kEnglish), kInputFormat,
                "folder/in.npz: a weight is not finite");
}

}  // namespace
}  // namespace fovea
