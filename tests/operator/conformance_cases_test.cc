// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/conformance_cases.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "fovea/base/random.h"
#include "fovea/config/field.h"
#include "fovea/operator/attention_call.h"
#include "fovea/parts/part_table.h"
#include "fovea/tensor/checksum.h"

namespace fovea {
namespace {

TEST(ConformanceCases, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const ConformanceCase& one : conformance_cases()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_EQ(one.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
              std::string::npos)
        << one.name;
    EXPECT_TRUE(one.settings.backward);
    // An observer needs the weights, which linear attention never makes: its cases have none.
    EXPECT_EQ(one.settings.observe.empty(), one.name.starts_with("none-linear")) << one.name;
  }
  EXPECT_GT(names.size(), 90u);
}

TEST(ConformanceCases, EveryTensorHasARow) {
  std::set<std::string, std::less<>> used;
  for (const ConformanceCase& one : conformance_cases()) {
    for (const TensorRecipe& recipe : one.tensors) used.insert(recipe.name);
  }
  for (const TensorSpec& spec : attention_tensor_specs()) {
    EXPECT_TRUE(used.contains(spec.name)) << "no row of kRows has the tensor " << spec.name;
  }
}

TEST(ConformanceCases, EveryPartHasTheUsualOnes) {
  const auto cases = conformance_cases();
  const auto tensors_of = [&](const std::string& name) {
    std::set<std::string> tensors;
    for (const ConformanceCase& one : cases) {
      if (one.name != name) continue;
      for (const TensorRecipe& recipe : one.tensors) tensors.insert(recipe.name);
    }
    return tensors;
  };
  for (const AttentionPart& part : attention_parts()) {
    if (part.tensor.empty() || part.score) continue;
    std::string name(part.tensor);
    std::replace(name.begin(), name.end(), '_', '-');
    for (const char* const end : {"", "-causal", "-tiles"}) {
      EXPECT_TRUE(tensors_of(name + end).contains(std::string(part.tensor))) << name << end;
    }
  }
}

// Only a checker chooses the first two; the third is the default.
const std::set<std::string> kNotOfACase = {"precision", "reference", "t5_bidirectional"};

std::set<std::string> values_used(const std::string& setting) {
  std::set<std::string> values;
  for (ConformanceCase& one : conformance_cases()) {
    for (const Field& field : fields_of(one.settings)) {
      if (field.name == setting) values.insert(value_text(field));
    }
  }
  return values;
}

TEST(ConformanceCases, EverySettingHasARow) {
  AttentionSettings defaults;
  for (const Field& field : fields_of(defaults)) {
    if (kNotOfACase.contains(field.name) || field.name == "backward") continue;
    const std::set<std::string> values = values_used(field.name);
    EXPECT_GT(values.size(), 1u) << "no row of kRows has the setting " << field.name;
    if (const Choice* choice = std::get_if<Choice>(&field.target)) {
      for (const std::string& name : choice->names) {
        EXPECT_TRUE(values.contains(name)) << "no row of kRows has " << field.name << "=" << name;
      }
    }
  }
}

TEST(ConformanceCases, EverythingThatCanBeSeenHasARow) {
  std::set<std::string> seen;
  for (const ConformanceCase& one : conformance_cases()) {
    for (const ObserveWish& wish : parse_observe(one.settings.observe)) seen.insert(wish.name);
  }
  std::string names = observed_names() + ", ";  // "entropy, topk=K, "
  for (std::size_t end = names.find(", "); !names.empty(); end = names.find(", ")) {
    const std::string name = names.substr(0, std::min(names.find('='), end));
    EXPECT_TRUE(seen.contains(name)) << name;
    names.erase(0, end + 2);
  }
}

TEST(ConformanceCases, ValuesFollowTheirFormula) {
  const TensorRecipe reals{.name = "q", .shape = {2, 3}};
  const TensorRecipe whole{.name = "keep", .dtype = DType::kUInt8, .shape = {2, 3}, .below = 3};
  const Tensor q = make_tensor(reals, "plain"), keep = make_tensor(whole, "plain");
  for (index n = 0; n < 6; ++n) {
    const auto word = [&](std::string_view tensor) {
      return philox4x32({static_cast<std::uint32_t>(n / 4), 4, crc32(tensor), 0},
                        {crc32("plain"), 0})[static_cast<std::size_t>(n % 4)];
    };
    EXPECT_EQ(q.data<float>()[n], (word("q") / 256 - 8388608.0) / 4194304);
    EXPECT_EQ(keep.data<std::uint8_t>()[n], std::uint64_t{word("keep")} * 3 >> 32);
  }
}

TEST(ConformanceCases, SomeEndInZerosOrPoison) {
  TensorRecipe recipe{.name = "k", .shape = {7}, .zeros = 2};
  const Tensor zeros = make_tensor(recipe, "any");
  EXPECT_NE(zeros.data<float>()[4], 0);
  EXPECT_EQ(zeros.data<float>()[5], 0);
  EXPECT_EQ(zeros.data<float>()[6], 0);
  recipe = {.name = "k", .shape = {7}, .poison = 4};
  const Tensor poison = make_tensor(recipe, "any");
  EXPECT_EQ(poison.data<float>()[2], zeros.data<float>()[2]);
  EXPECT_TRUE(std::isnan(poison.data<float>()[3]));
  EXPECT_EQ(poison.data<float>()[4], std::numeric_limits<float>::infinity());
  EXPECT_EQ(poison.data<float>()[5], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(poison.data<float>()[6]));
}

TEST(ConformanceCases, GivenValuesAreAllGiven) {
  TensorRecipe recipe{.name = "key_lengths", .dtype = DType::kInt32, .shape = {2}};
  recipe.values = {0, 4};
  EXPECT_EQ(make_tensor(recipe, "any").data<std::int32_t>()[1], 4);
  recipe.values = {0, 4, 5};
  EXPECT_THROW(make_tensor(recipe, "any"), Error);
}

}  // namespace
}  // namespace fovea
