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
