// SPDX-License-Identifier: Apache-2.0
#include "fovea/config/json.h"

#include <bit>
#include <cmath>
#include <limits>

#include "fovea/base/random.h"
#include "tests/config/example_config.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

Json parse(std::string_view text) { return parse_json(text, {"x.json"}); }

TEST(Json, WritesEveryTypeInOneLine) {
  const Json json = Json::Object{{"none", Json()},
                                 {"flag", true},
                                 {"int", -3},
                                 {"large", ~std::uint64_t{0}},
                                 {"real", 0.1},
                                 {"single", 0.1f},
                                 {"whole", 2.0},
                                 {"text", "a\"b\\\n\x01\u4e2d"},
                                 {"list", Json::Array{1, "two", Json::Array{}}},
                                 {"object", Json::Object{}}};
  EXPECT_EQ(
      json.line(),
      R"({"none":null,"flag":true,"int":-3,"large":18446744073709551615,"real":0.1,)"
      R"("single":0.1,"whole":2.0,"text":"a\"b\\\n\u0001中","list":[1,"two",[]],"object":{}})");
}

TEST(Json, WritesFilesInIndentedLines) {
  EXPECT_EQ((Json(Json::Object{{"a", Json::Array{1, 2}}, {"b", Json::Object{}}}).pretty()),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}\n");
}

TEST(Json, WhatIsNotFiniteIsNull) {
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).line(), "null");
  EXPECT_EQ(Json(-std::numeric_limits<double>::infinity()).line(), "null");
  EXPECT_TRUE(std::isnan(parse("null").number()));
}

TEST(Json, NumbersComeBackTheSame) {
  Random random(1, RandomUse::kTest);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::bit_cast<double>(random.next_u64());
    EXPECT_TRUE(!std::isfinite(x) || parse(Json(x).line()).number() == x) << x;
    const float f = std::bit_cast<float>(random.next_u32());
    EXPECT_TRUE(!std::isfinite(f) || static_cast<float>(parse(Json(f).line()).number()) == f) << f;
    const auto whole = static_cast<std::int64_t>(random.next_u64());
    EXPECT_EQ(parse(Json(whole).line()).whole(), whole);
  }
}

TEST(Json, TextThatIsNotUtf8StaysReadable) {
  EXPECT_EQ(parse(Json("a\xff").line()).text(), "a\ufffd");
}

TEST(Json, ReadsStrictly) {
  EXPECT_EQ(parse(" {\"a\": [1, 2.5, \"\\u4e2d\", null, false]} \n").line(),
            "{\"a\":[1,2.5,\"中\",null,false]}");
  EXPECT_THROWS(parse(""), kConfig, "x.json: no valid JSON");
  EXPECT_THROWS(parse("{\"a\":1,}"), kConfig, "no valid JSON at byte 8");
  EXPECT_THROWS(parse("{'a':1}"), kConfig, "no valid JSON");
  EXPECT_THROWS(parse("{} {}"), kConfig, "no valid JSON");
  EXPECT_THROWS(parse("// note\n{}"), kConfig, "no valid JSON");
  EXPECT_THROWS(parse("[NaN]"), kConfig, "no valid JSON");
  EXPECT_THROWS(parse("\"\xff\""), kConfig, "no valid JSON");
  EXPECT_THROWS(parse(std::string_view("{}\0", 3)), kConfig, "zero byte");
  EXPECT_THROWS(parse("\xef\xbb\xbf{}"), kConfig, "byte order mark");
  EXPECT_THROWS(parse("[1e999]"), kConfig, "x.json: ");
  EXPECT_THROWS(parse(R"({"a":1,"a":2})"), kConfig, "the key 'a' is there twice");
  EXPECT_THROWS(parse(R"({"a":1,"\u0061":2})"), kConfig, "the key 'a' is there twice");
  EXPECT_THROWS(parse(std::string(2000000, '[')), kConfig, "nested too deeply");
  EXPECT_NO_THROW(parse(std::string(64, '[') + std::string(64, ']')));
  EXPECT_THROWS(parse_json("{", {"m/config.json", ErrorCode::kModelDamaged}), kModelDamaged,
                "m/config.json: ");
}

TEST(Json, SaysWhatItExpected) {
  const Json json = parse(R"({"text":"a","number":1.5,"large":18446744073709551615})");
  EXPECT_THROWS(json.at("step"), kConfig, "the key 'step' is missing");
  EXPECT_THROWS(json.at("text").whole(), kConfig, "expected a whole number; got a text");
  EXPECT_THROWS(json.at("number").whole(), kConfig, "expected a whole number; got a number");
  EXPECT_THROWS(json.at("large").whole(), kConfig, "expected a whole number");
  EXPECT_THROWS(json.at("text").number(), kConfig, "expected a number; got a text");
  EXPECT_THROWS(json.at("text").boolean(), kConfig, "expected true or false");
  EXPECT_THROWS(json.at("text").array(), kConfig, "expected a list");
  EXPECT_THROWS(json.at("text").at("x"), kConfig, "expected an object; got a text");
  EXPECT_THROWS(json.text(), kConfig, "expected a text; got an object");
  EXPECT_EQ(json.at("large").number(), 18446744073709551615.0);
  EXPECT_EQ(json.find("none"), nullptr);
}

}  // namespace
}  // namespace fovea
