// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "fovea/config/json.h"
#include "tests/config/example_config.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

ExampleConfig read(std::string_view text, MissingKeys missing = MissingKeys::kAreErrors) {
  ExampleConfig config;
  from_json(text, {"x.json"}, config, missing);
  return config;
}

ExampleConfig read_part(std::string_view text) { return read(text, MissingKeys::kKeepTheirValue); }

TEST(JsonFields, AConfigurationIsAnObjectWithNestedObjects) {
  EXPECT_EQ(to_json_line(ExampleConfig{}),
            R"({"model":{"layers":4,"head_dim":64,"bias":false},"seed":1,"dropout":0.1,"lr":0.001,)"
            R"("stop_after":"10e","train":[],"curve":"cosine"})");
}

TEST(JsonFields, WhatIsWrittenIsReadBack) {
  EXPECT_EQ(read(to_json(ExampleConfig{})), ExampleConfig{});
  EXPECT_EQ(read(to_json(unusual_config())), unusual_config());
  EXPECT_EQ(read(to_json_line(unusual_config())), unusual_config());
}

TEST(JsonFields, OneFieldThatIsNotFiniteComesBackAsNan) {
  ExampleConfig config;
  config.lr = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(read(to_json(config)).lr));
}

TEST(JsonFields, NamesTheKeyThatIsUnknownMissingOrWrong) {
  EXPECT_THROWS(read("{}"), kConfig, "x.json: the key 'model.layers' is missing");
  EXPECT_THROWS(read("[]"), kConfig, "x.json: expected an object; got a list");
  EXPECT_THROWS(read_part(R"({"sed":1})"), kConfig, "x.json: unknown key 'sed'");
  EXPECT_EQ(error_of([] { read_part(R"({"sed":1})"); })->hint(), "did you mean seed?");
  EXPECT_THROWS(read_part(R"({"model":{"layrs":1}})"), kConfig, "unknown key 'model.layrs'");
  EXPECT_EQ(error_of([] { read_part(R"({"model":{"layrs":1}})"); })->hint(),
            "did you mean model.layers?");
  EXPECT_THROWS(read_part(R"({"model":1})"), kConfig, "expected an object; got a whole number");
  EXPECT_THROWS(read_part(R"({"lr":{}})"), kConfig, "'lr': expected a finite number; got '{}'");
  EXPECT_THROWS(read_part(R"({"lr":"1"})"), kConfig, "'lr': expected a finite number; got '1'");
  EXPECT_THROWS(read_part(R"({"model":{"layers":1.0}})"), kConfig,
                "'model.layers': expected a whole number; got '1.0'");
  EXPECT_THROWS(read_part(R"({"model":{"layers":null}})"), kConfig, "got 'null'");
  EXPECT_THROWS(read_part(R"({"seed":-1})"), kConfig,
                "'seed': expected a whole number, not negative");
  EXPECT_THROWS(read_part(R"({"curve":"linear"})"), kConfig,
                "expected one of: cosine, inverse-sqrt");
  EXPECT_THROWS(read_part(R"({"train":["a",1]})"), kConfig, "'train': expected a list of texts");
}

TEST(JsonFields, MissingKeysMayKeepTheirValue) {
  const ExampleConfig config = read_part(R"({"lr":2,"model":{"bias":true}})");
  EXPECT_EQ(config.lr, 2.0);
  EXPECT_TRUE(config.model.bias);
  EXPECT_EQ(config.model.layers, 4);
}

TEST(JsonFields, AnErrorLeavesTheConfigurationAsItWas) {
  ExampleConfig config;
  const JsonSource source{"x.json"};
  EXPECT_THROWS(from_json(R"({"lr":2,"sed":1})", source, config), kConfig, "sed");
  EXPECT_EQ(config, ExampleConfig{});
}

}  // namespace
}  // namespace fovea
