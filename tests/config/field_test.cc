// SPDX-License-Identifier: Apache-2.0
#include "fovea/config/field.h"

#include <limits>

#include "tests/config/example_config.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using ::testing::ElementsAre;

Field& field_called(std::vector<Field>& fields, std::string_view name) {
  for (Field& field : fields) {
    if (field.name == name) return field;
  }
  throw std::out_of_range(std::string(name));
}

class FieldTest : public testing::Test {
 protected:
  void set(std::string_view name, const std::string& text) {
    set_from_text(field_called(fields_, name), text, "--" + std::string(name));
  }

  ExampleConfig config_;
  std::vector<Field> fields_ = fields_of(config_);
};

TEST_F(FieldTest, ListsNestedFieldsInTheirOrder) {
  std::vector<std::string> names;
  for (const Field& field : fields_) names.push_back(field.name);
  EXPECT_THAT(names, ElementsAre("model.layers", "model.head_dim", "model.bias", "seed", "dropout",
                                 "lr", "stop_after", "train", "curve"));
  EXPECT_EQ(fields_[1].help, "width of a head");
}

struct Layers {
  int count = 4;
  double rate = 0.5;
  std::vector<index> windows = {8};
  std::string reader = "conv";
  index window = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("count", count, "", {.range = ValueRange::in(1, 8), .resume = OnResume::kNoted});
    visit("rate", rate, "", {.range = ValueRange::share("none")});
    visit("windows", windows, "", {.range = ValueRange::over(0)});
    visit("reader", reader, "");
    visit("window", window, "", {.needs = {"reader|writer", "conv|pool"}});
  }
};

struct Stack {
  Layers layers;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("layers", layers, "", {.resume = OnResume::kNo, .also = "blocks"});
  }
};

TEST(FieldTraits, OfTheStructHoldForItsFields) {
  Stack stack;
  const std::vector<Field> fields = fields_of(stack);
  EXPECT_EQ(fields[0].traits.resume, OnResume::kNoted);
  EXPECT_EQ(fields[1].traits.resume, OnResume::kNo);
  EXPECT_EQ(fields[1].table_also, "blocks");
  EXPECT_EQ(fields[1].table(), "layers");
  EXPECT_EQ(fields[1].last_name(), "rate");
}

TEST(FieldTraits, ANumberIsInItsRange) {
  EXPECT_NO_THROW(check_ranges(Layers{.count = 8, .rate = 0}));
  EXPECT_THROWS(check_ranges(Layers{.count = 9}), kOptionValue, "--count: 9 is not in 1 to 8");
  EXPECT_THROWS(check_ranges(Layers{.rate = 1}), kOptionValue,
                "--rate: 1 is not at least 0 and below 1 (0: none)");
  EXPECT_THROWS(check_ranges(Layers{.rate = std::numeric_limits<double>::quiet_NaN()}),
                kOptionValue, "--rate: nan");
  EXPECT_THROWS(check_ranges(Layers{.windows = {3, 0}}), kOptionValue,
                "--windows: 0 is not above 0");
}

TEST(FieldTraits, WhatAFieldNeedsIsOneOfSomeValues) {
  Layers layers;
  const std::vector<Field> fields = fields_of(layers);
  EXPECT_EQ(unmet_need(fields[4], fields), "");
  layers.reader = "pool";
  EXPECT_EQ(unmet_need(fields[4], fields), "");
  layers.reader = "none";
  EXPECT_EQ(unmet_need(fields[4], fields), "--reader conv or pool");
  EXPECT_EQ(unmet_need(fields[4], std::span(fields).subspan(4)), "") << "no such field here";
}

TEST_F(FieldTest, EveryTypeIsSetFromText) {
  set("model.layers", "-3");
  set("model.head_dim", "+128");
  set("model.bias", "on");
  set("seed", "18446744073709551615");
  set("dropout", "0.25");
  set("lr", "3e-4");
  set("stop_after", "2h");
  set("curve", "inverse-sqrt");
  const std::vector<std::string> files = {"a", "b"};
  set_from_text(field_called(fields_, "train"), files, "--train");
  EXPECT_EQ(config_, (ExampleConfig{.model = {.layers = -3, .head_dim = 128, .bias = true},
                                    .seed = 0xffffffffffffffffu,
                                    .dropout = 0.25f,
                                    .lr = 3e-4,
                                    .stop_after = "2h",
                                    .train = {"a", "b"},
                                    .curve = Curve::kInverseSqrt}));
}

TEST_F(FieldTest, ItsTextComesBackTheSame) {
  config_ = unusual_config();
  ExampleConfig other;
  std::vector<Field> others = fields_of(other);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == "train") continue;  // commas inside do not come back
    set_from_text(others[i], value_text(fields_[i]), "x");
  }
  other.train = config_.train;
  EXPECT_EQ(other, config_);
  EXPECT_EQ(value_text(field_called(fields_, "dropout")), "0.3");
  EXPECT_EQ(value_text(field_called(fields_, "train")), "a b,,c,d");
}

TEST_F(FieldTest, SaysWhatItExpected) {
  EXPECT_THROWS(set("model.layers", "4x"), kOptionValue,
                "--model.layers: expected a whole number; got '4x'");
  EXPECT_THROWS(set("model.layers", "4.5"), kOptionValue, "expected a whole number; got '4.5'");
  EXPECT_THROWS(set("model.layers", ""), kOptionValue, "expected a whole number; got ''");
  EXPECT_THROWS(set("model.layers", "2147483648"), kOptionValue, "expected a whole number");
  EXPECT_THROWS(set("model.head_dim", "9223372036854775808"), kOptionValue, "a whole number");
  EXPECT_THROWS(set("seed", "-1"), kOptionValue, "--seed: expected a whole number, not negative");
  EXPECT_THROWS(set("lr", "nan"), kOptionValue, "--lr: expected a finite number; got 'nan'");
  EXPECT_THROWS(set("lr", "inf"), kOptionValue, "expected a finite number");
  EXPECT_THROWS(set("lr", "1e999"), kOptionValue, "expected a finite number");
  EXPECT_THROWS(set("dropout", "1e39"), kOptionValue, "expected a finite number");
  EXPECT_THROWS(set("lr", "0,1"), kOptionValue, "expected a finite number");
  EXPECT_THROWS(set("model.bias", "maybe"), kOptionValue, "expected true or false; got 'maybe'");
  EXPECT_THROWS(set("curve", "cosin"), kOptionValue,
                "--curve: expected one of: cosine, inverse-sqrt; got 'cosin'");
  EXPECT_EQ(error_of([&] { set("curve", "cosin"); })->hint(), "did you mean cosine?");
  EXPECT_THROWS(set_from_text(fields_[0], std::vector<std::string>{}, "--x"), kOptionValue,
                "--x: expected a whole number; got nothing");
  EXPECT_EQ(config_, ExampleConfig{});
}

TEST_F(FieldTest, TakesOnlyValuesOfItsType) {
  Field& layers = field_called(fields_, "model.layers");
  EXPECT_TRUE(set_number(layers, std::int64_t{7}));
  EXPECT_FALSE(set_number(layers, 7.0));
  EXPECT_FALSE(set_number(layers, std::int64_t{1} << 40));
  EXPECT_FALSE(set_bool(layers, true));
  EXPECT_FALSE(set_text(layers, "7"));
  Field& lr = field_called(fields_, "lr");
  EXPECT_TRUE(set_number(lr, std::int64_t{2}));
  EXPECT_FALSE(set_number(lr, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(set_text(field_called(fields_, "curve"), "linear"));
  EXPECT_FALSE(set_list(field_called(fields_, "stop_after"), {"x"}));
  EXPECT_EQ(config_.model.layers, 7);
  EXPECT_EQ(config_.lr, 2.0);
}

}  // namespace
}  // namespace fovea
