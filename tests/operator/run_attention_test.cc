// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/run_attention.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fovea/base/random.h"
#include "fovea/operator/attention_call.h"
#include "fovea/report/attention_data.h"
#include "tests/operator/attention_problem.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

Tensor normal(const Shape& shape, std::uint64_t seed, DType dtype = DType::kFloat64) {
  Random random(seed, RandomUse::kTest);
  Tensor tensor(shape, DType::kFloat64);
  for (double& x : tensor.vec<double>()) x = random.normal();
  return tensor.to(dtype);
}

AttentionTensors problem(DType dtype, const std::vector<NamedTensor>& more = {}) {
  std::vector<NamedTensor> all = {{"q", normal({2, 3, 4, 5}, 1, dtype)},
                                  {"k", normal({2, 7, 2, 5}, 2, dtype)},
                                  {"v", normal({2, 7, 2, 6}, 3, dtype)},
                                  {"do", normal({2, 3, 4, 6}, 4, dtype)},
                                  {"slopes", normal({4}, 5, dtype)}};
  for (const NamedTensor& named : more) all.push_back(named);
  return {all, attention_tensor_specs(), "in.npz"};
}

const AttentionSettings kBothPasses{.causal = CausalKind::kBottomRight,
                                    .dropout = 0.25,
                                    .seed = 3,
                                    .observe = "entropy,max,distance,weights",
                                    .backward = true};

std::vector<std::string> names_of(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& named : tensors) names.push_back(named.name);
  std::sort(names.begin(), names.end());
  return names;
}

TEST(RunAttention, ABackwardThatComesLaterHasTheSameBits) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const AttentionTensors tensors = problem(dtype);
    const auto both = run_attention(Context(1), kBothPasses, tensors);
    const AttentionForward forward = run_attention_forward(Context(1), kBothPasses, tensors);
    const auto gradients = run_attention_backward(Context(2), kBothPasses, tensors, forward);
    EXPECT_EQ(names_of(forward.results),
              (std::vector<std::string>{"distance", "entropy", "lse", "max", "o", "weights"}));
    EXPECT_EQ(names_of(gradients), (std::vector<std::string>{"dk", "dq", "dslopes", "dv"}));
    for (const auto* results : {&forward.results, &gradients}) {
      for (const NamedTensor& named : *results) {
        EXPECT_TRUE(std::ranges::equal(named.tensor.bytes(), at(both, named.name).bytes()))
            << named.name;
      }
    }
  }
}

// The problem with q, k, v and the bias as columns of wider tensors, of which only q learns.
TEST(RunAttention, StridesChangeNoBitAndOnlyWhatLearnsHasAGradient) {
  const std::vector<NamedTensor> plain = {
      {"q", normal({2, 3, 4, 5}, 1)},    {"k", normal({2, 7, 2, 5}, 2)},
      {"v", normal({2, 7, 2, 6}, 3)},    {"do", normal({2, 3, 4, 6}, 4)},
      {"bias", normal({1, 4, 3, 7}, 5)}, {"slopes", normal({4}, 6)}};
  std::vector<GivenTensor> strided;
  for (const auto& [name, tensor] : plain) {
    const Shape& shape = tensor.shape();
    const index row = shape.back(), wide = row + 3, last = shape.axes() == 1 ? 2 : 1;
    Tensor memory({shape.size() / row, wide * last}, DType::kFloat64);
    for (index n = 0; n < shape.size(); ++n) {
      memory.data<double>()[n / row * wide * last + n % row * last] = tensor.data<double>()[n];
    }
    std::vector<index> strides = {last};
    index stride = wide;
    for (int axis = shape.axes() - 2; axis >= 0; stride *= shape[axis--]) {
      strides.insert(strides.begin(), stride);
    }
    auto* const values = memory.bytes().data();
    strided.push_back({name,
                       Tensor::borrow({values, [memory](std::byte*) {}}, shape, DType::kFloat64),
                       strides, name == "q"});
  }
  for (const AttentionPrecision precision :
       {AttentionPrecision::kFloat64, AttentionPrecision::kFloat32}) {
    AttentionSettings settings{.backward = true, .precision = precision};
    const auto expected =
        run_attention(Context(1), settings, {plain, attention_tensor_specs(), "plain"});
    const auto got = run_attention(
        Context(1), settings, AttentionTensors::of(strided, attention_tensor_specs(), "strided"));
    EXPECT_EQ(names_of(got), (std::vector<std::string>{"dq", "lse", "o"}));
    for (const NamedTensor& named : got) {
      EXPECT_TRUE(std::ranges::equal(named.tensor.bytes(), at(expected, named.name).bytes()))
          << named.name;
    }
  }
}

TEST(RunAttention, WritesWhatIsAskedForInThePrecisionOfTheQueries) {
  const std::vector<std::string> forward = {"lse", "o"};
  const std::vector<std::string> all = {"distance", "dk",  "dq",  "dslopes", "dv",
                                        "entropy",  "lse", "max", "o",       "weights"};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    EXPECT_EQ(names_of(run_attention(Context(1), {}, problem(dtype))), forward);
    const auto results = run_attention(Context(1), kBothPasses, problem(dtype));
    EXPECT_EQ(names_of(results), all);
    for (const NamedTensor& named : results) EXPECT_EQ(named.tensor.dtype(), dtype) << named.name;
    EXPECT_EQ(at(results, "o").shape(), (Shape{2, 3, 4, 6}));
    EXPECT_EQ(at(results, "lse").shape(), (Shape{2, 4, 3}));
    EXPECT_EQ(at(results, "dk").shape(), (Shape{2, 7, 2, 5}));
    EXPECT_EQ(at(results, "dslopes").shape(), (Shape{4}));
  }
}

TEST(RunAttention, ThePrecisionCanBeChosen) {
  AttentionSettings settings;
  settings.precision = AttentionPrecision::kFloat32;
  EXPECT_EQ(at(run_attention(Context(1), settings, problem(DType::kFloat64)), "o").dtype(),
            DType::kFloat32);
  settings.precision = AttentionPrecision::kFloat64;
  EXPECT_EQ(at(run_attention(Context(1), settings, problem(DType::kBFloat16)), "o").dtype(),
            DType::kFloat64);
  settings = {.reference = true};
  EXPECT_EQ(at(run_attention(Context(1), settings, problem(DType::kFloat32)), "o").dtype(),
            DType::kFloat64);
}

TEST(RunAttention, BFloat16IsThatOfTheRowsAndTheRestIsFloat32) {
  AttentionSettings settings = kBothPasses;
  settings.precision = AttentionPrecision::kFloat64;
  const AttentionTensors rounded = problem(DType::kBFloat16);
  const auto exact = run_attention(Context(1), settings, rounded);
  settings.precision = AttentionPrecision::kBFloat16;
  for (const auto& [dtype, reference] : {std::pair{DType::kFloat64, false},
                                         {DType::kFloat32, false},
                                         {DType::kBFloat16, false},
                                         {DType::kFloat32, true}}) {
    settings.reference = reference;
    const auto results = run_attention(Context(2), settings, problem(dtype));
    EXPECT_EQ(names_of(results), names_of(exact));
    for (const auto& [name, tensor] : results) {
      const bool row = name == "o" || name == "dq" || name == "dk" || name == "dv";
      EXPECT_EQ(tensor.dtype(), row ? DType::kBFloat16 : DType::kFloat32) << name;
      const Tensor wide = tensor.to(DType::kFloat64);
      for (index n = 0; n < wide.size(); ++n) {
        const double expected = at(exact, name).data<double>()[n];
        EXPECT_NEAR(wide.data<double>()[n], expected, 0.02 + 0.02 * std::abs(expected)) << name;
      }
    }
  }
}

TEST(RunAttention, TheReferenceComputesTheSame) {
  AttentionSettings settings = kBothPasses;
  const auto fused = run_attention(Context(2), settings, problem(DType::kFloat64));
  settings.reference = true;
  const auto plain = run_attention(Context(2), settings, problem(DType::kFloat64));
  ASSERT_EQ(names_of(fused), names_of(plain));
  for (const NamedTensor& named : fused) {
    const Tensor& other = at(plain, named.name);
    for (index i = 0; i < other.size(); ++i) {
      EXPECT_NEAR(named.tensor.data<double>()[i], other.data<double>()[i], 1e-12) << named.name;
    }
  }
}

// The gradient of o . do along a direction d is that of every operand times d.
TEST(RunAttention, TheGradientIsThatOfTheForward) {
  const AttentionTensors tensors = problem(DType::kFloat64);
  const auto results = run_attention(Context(1), kBothPasses, tensors);
  const auto loss = [&](std::string_view moved, double step) {
    std::vector<NamedTensor> all;
    for (const TensorSpec& spec : attention_tensor_specs()) {
      if (tensors.find(spec.name) == nullptr) continue;
      const std::string name(spec.name);
      all.push_back({name, tensors.at(name).clone()});
      if (name != moved) continue;
      const Tensor direction = normal(all.back().tensor.shape(), 9);
      Vec<double> values = all.back().tensor.vec<double>();
      for (index i = 0; i < values.size; ++i) values[i] += step * direction.data<double>()[i];
    }
    const AttentionTensors at_step(all, attention_tensor_specs(), "in.npz");
    const auto out = run_attention(Context(1), kBothPasses, at_step);
    double sum = 0;
    for (index i = 0; i < at(out, "o").size(); ++i) {
      sum += at(out, "o").data<double>()[i] * tensors.at("do").data<double>()[i];
    }
    return sum;
  };
  constexpr double kStep = 1e-5;
  for (const std::string name : {"q", "k", "v", "slopes"}) {
    const Tensor& gradient = at(results, fmt::format("d{}", name));
    const Tensor direction = normal(gradient.shape(), 9);
    double expected = 0;
    for (index i = 0; i < gradient.size(); ++i) {
      expected += gradient.data<double>()[i] * direction.data<double>()[i];
    }
    EXPECT_NEAR((loss(name, kStep) - loss(name, -kStep)) / (2 * kStep), expected, 1e-7) << name;
  }
}

TEST(RunAttention, OnlySoftmaxHasALogSumExp) {
  const AttentionSettings settings{.norm = AttentionNormKind::kSigmoid, .backward = true};
  const auto results = run_attention(Context(1), settings, problem(DType::kFloat32));
  EXPECT_EQ(names_of(results), (std::vector<std::string>{"dk", "dq", "dslopes", "dv", "o"}));
}

TEST(RunAttention, ThePlanSaysWhatComputes) {
  const AttentionTensors tensors = problem(DType::kFloat32);
  const AttentionPlan plan = plan_attention(Context(1), kBothPasses, tensors);
  EXPECT_EQ(plan.kernel, "fused float32");
  EXPECT_EQ(plan.mask, "causal");
  EXPECT_EQ(plan.bias, "alibi");
  EXPECT_EQ(plan.observe, "entropy + maximum + distance + rows(0, 3)");
  EXPECT_GT(plan.tiles_kept, 0);
  AttentionSettings plain{.reference = true};
  EXPECT_EQ(plan_attention(Context(1), plain, tensors).kernel, "reference float64");
  plain.precision = AttentionPrecision::kBFloat16;
  EXPECT_EQ(plan_attention(Context(1), plain, tensors).kernel, "reference bfloat16");
}

// The weights themselves are there in one order of the sums alone.
TEST(RunAttention, WhoeverWantsTheWeightsGetsThePlanForThem) {
  AttentionSettings settings{.norm = AttentionNormKind::kNone};
  const AttentionTensors tensors = problem(DType::kFloat32, {});
  settings.observe = "weights";
  EXPECT_EQ(plan_attention(Context(1), settings, tensors).kernel, "fused float32");
}

TEST(RunAttention, ResultsAreAcceptedBeforeAnythingIsComputed) {
  std::vector<std::string> names;
  double sum = 0;
  const auto refuse = [&](std::span<const NamedTensor> results) {
    for (const NamedTensor& named : results) {
      names.push_back(named.name);
      for (const float x : named.tensor.vec<float>()) sum += std::abs(static_cast<double>(x));
    }
    throw Error(ErrorCode::kWrite, "too large", "take less");
  };
  EXPECT_THROWS(run_attention(Context(1), {.backward = true}, problem(DType::kFloat32), refuse),
                kWrite, "too large");
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"dk", "dq", "dslopes", "dv", "lse", "o"}));
  EXPECT_EQ(sum, 0);
}

TEST(RunAttention, WhatTheOperatorRefusesNamesTheFile) {
  const Tensor offsets = Tensor::of<std::int32_t>({2}, std::vector<std::int32_t>{0, 3});
  const AttentionTensors packed =
      problem(DType::kFloat32, {{"query_offsets", offsets}, {"key_offsets", offsets}});
  EXPECT_THROWS(run_attention(Context(1), {}, packed), kShape,
                "in.npz: attention: packed sequences need B = 1");
}

AttentionTensors problem(const Tensor& q) {
  return {{{"q", q},
           {"k", normal({2, 7, 2, 5}, 2, DType::kFloat32)},
           {"v", normal({2, 7, 2, 6}, 3, DType::kFloat32)}},
          attention_tensor_specs(),
          "folder/in.npz"};
}
AttentionTensors problem() { return problem(normal({2, 3, 4, 5}, 1, DType::kFloat32)); }

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
  const Tensor q = normal({2, 1500, 1, 4}, 1, DType::kFloat32),
               k = normal({2, 6000, 1, 4}, 2, DType::kFloat32);
  const AttentionTensors large({{"q", q}, {"k", k}, {"v", k}}, attention_tensor_specs(), "in.npz");
  const AttentionPage page = page_attention(Context(2), {}, large, PageLanguage::kEnglish);
  ASSERT_EQ(page.notes.size(), 2);
  EXPECT_EQ(page.notes[0], "Only the first 1 of 2 sequences are shown.");
  EXPECT_THAT(page.notes[1], testing::HasSubstr("Only 1398 of 1500 queries"));
  EXPECT_EQ(page.texts[0].tokens.back(), "1499");
  EXPECT_EQ(page.maps[0].weights.size(), 1398 * 6000);
}

TEST(CallPage, RefusesWeightsThatAreNotFinite) {
  Tensor q = normal({2, 3, 4, 5}, 1, DType::kFloat32);
  q.data<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROWS(page_attention(Context(1), {}, problem(q), PageLanguage::kEnglish), kInputFormat,
                "folder/in.npz: a weight is not finite");
}

}  // namespace
}  // namespace fovea
