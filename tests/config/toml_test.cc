// SPDX-License-Identifier: Apache-2.0
#include "fovea/config/toml.h"

#include <filesystem>

#include "fovea/base/file.h"
#include "tests/config/example_config.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using ::testing::UnorderedElementsAre;

ExampleConfig read(std::string_view text) {
  ExampleConfig config;
  set_from_toml(fields_of(config), text, "run.toml");
  return config;
}

TEST(Toml, SetsWhatItNamesAndLeavesTheRest) {
  ExampleConfig config;
  const auto names = set_from_toml(fields_of(config), R"(
lr = 3e-4          # a comment
train = ["a.txt", "b.txt"]
curve = "inverse-sqrt"
seed = 7
[model]
layers = 12
bias = true
)",
                                   "run.toml");
  EXPECT_THAT(names,
              UnorderedElementsAre("lr", "train", "curve", "seed", "model.layers", "model.bias"));
  EXPECT_EQ(config, (ExampleConfig{.model = {.layers = 12, .head_dim = 64, .bias = true},
                                   .seed = 7,
                                   .lr = 3e-4,
                                   .train = {"a.txt", "b.txt"},
                                   .curve = Curve::kInverseSqrt}));
}

TEST(Toml, KeysMayBeFlatDottedAndDashed) {
  EXPECT_EQ(read("head-dim = 32").model.head_dim, 32);
  EXPECT_EQ(read("head_dim = 32").model.head_dim, 32);
  EXPECT_EQ(read("model.head-dim = 32").model.head_dim, 32);
  EXPECT_EQ(read("model = { head-dim = 32 }").model.head_dim, 32);
  EXPECT_THAT(read("train = 'one'").train, testing::ElementsAre("one"));
  EXPECT_EQ(read("lr = 1").lr, 1.0);
}

// TOML's own numbers end at 2^63 - 1.
TEST(Toml, WritesLargeSeedsAsTextsAndReadsThem) {
  ExampleConfig config;
  config.seed = UINT64_MAX;
  const std::string text = toml_text(fields_of(config));
  EXPECT_THAT(text, testing::HasSubstr("seed = '18446744073709551615'"));
  EXPECT_EQ(read(text).seed, UINT64_MAX);
}

TEST(Toml, ATextMayBeAWholeNumber) {
  EXPECT_EQ(read("stop_after = 500").stop_after, "500");
  EXPECT_EQ(read("stop_after = -1").stop_after, "-1");
  EXPECT_THROWS(read("stop_after = 1.5"), kConfig, "'stop_after': expected a text; got '1.5'");
  EXPECT_THROWS(read("curve = 1"), kConfig, "'curve': expected one of");
}

TEST(Toml, SaysWhereAndWhat) {
  EXPECT_THROWS(read("\n\nlr = "), kConfig, "run.toml:3:");
  EXPECT_THROWS(read("lr = 1\nwidht = 3"), kConfig, "run.toml:2:1: unknown key 'widht'");
  EXPECT_THROWS(read("[\n"), kConfig, "run.toml: a key or value is malformed");
  EXPECT_THROWS(read("\uFCFF = 1"), kConfig, "run.toml:1:1");
  EXPECT_THROWS(read("[modle]\nlayers = 3"), kConfig, "run.toml:1:2: unknown table 'modle'");
  EXPECT_EQ(error_of([] { read("[modle]\nlayers = 3"); })->hint(), "did you mean model?");
  EXPECT_THROWS(read("[train]\nlr = 1"), kConfig, "run.toml:1:2: unknown table 'train'");
  EXPECT_THAT(error_of([] { read("[train]\nlr = 1"); })->hint(),
              testing::HasSubstr("the tables are [model]"));
  EXPECT_THROWS(read("[model]\nlr = 1"), kConfig, "run.toml:2:1: 'lr' is no key of this table");
  EXPECT_EQ(error_of([] { read("[model]\nlr = 1"); })->hint(), "move it before the first table");
  EXPECT_EQ(error_of([] { read("[recipe]\nlayers = 1"); })->hint(), "the tables are [model]");
  EXPECT_THROWS(read("[model]\nlayrs = 3"), kConfig, "run.toml:2:1: unknown key 'layrs'");
  EXPECT_EQ(error_of([] { read("[model]\nlayrs = 3"); })->hint(), "did you mean layers?");
  EXPECT_THROWS(read("[model]\nlayers = 'x'"), kConfig,
                "run.toml:2:10: 'layers': expected a whole number; got");
  EXPECT_THROWS(read("[model]\nlayers = 1.5"), kConfig, "expected a whole number; got '1.5'");
  EXPECT_THROWS(read("lr = nan"), kConfig, "'lr': expected a finite number");
  EXPECT_THROWS(read("lr = inf"), kConfig, "'lr': expected a finite number");
  EXPECT_THROWS(read("seed = -1"), kConfig, "expected a whole number, not negative");
  EXPECT_THROWS(read("curve = 'linear'"), kConfig, "expected one of: cosine, inverse-sqrt");
  EXPECT_THROWS(read("train = ['a', 1]"), kConfig, "expected a list of texts");
  EXPECT_THROWS(read("lr = 2020-01-01"), kConfig, "expected a finite number");
  EXPECT_THROWS(read("lr = 1\nlr = 2"), kConfig, "run.toml:2:");
  EXPECT_THROWS(read("layers = 1\n[model]\nlayers = 2"), kConfig, "'layers' is set twice");
  EXPECT_THROWS(read("head-dim = 1\nhead_dim = 2"), kConfig, "is set twice");
  EXPECT_THROWS(read("stop_after = \"\xff\""), kConfig, "run.toml:1:");
  EXPECT_THROWS(read("train = \"a\\u0000b\""), kConfig, "run.toml:1:");
  EXPECT_THROWS(read("seed = '7x'"), kConfig, "expected a whole number, not negative");
  EXPECT_THROWS(read("x = " + std::string(100000, '[')), kConfig, "run.toml:1:");
}

TEST(Toml, WhatIsWrittenIsReadBack) {
  ExampleConfig written = unusual_config();
  written.seed = 0x7fffffffffffffffu;  // the largest that TOML has
  const std::string text = toml_text(fields_of(written));
  EXPECT_EQ(read(text), written) << text;
}

TEST(Toml, IsWrittenWithTablesAndHelp) {
  ExampleConfig config;
  const std::vector<Field> fields = fields_of(config);
  EXPECT_EQ(toml_text(fields),
            "# names the random numbers\nseed = 1\n"
            "# probability of dropping\ndropout = 0.1\n"
            "# learning rate\nlr = 0.001\n"
            "# when to stop\nstop_after = '10e'\n"
            "# files to train on\ntrain = []\n"
            "# how the learning rate falls\ncurve = 'cosine'\n"
            "\n[model]\n"
            "# number of layers\nlayers = 4\n"
            "# width of a head\nhead_dim = 64\n"
            "# add biases\nbias = false\n");
}

TEST(Toml, ReadsFiles) {
  const auto path = std::filesystem::path(testing::TempDir()) / "fovea_config_test.toml";
  write_file_atomically(path, "lr = 0.5\nlerning = 1\n");
  ExampleConfig config;
  EXPECT_THROWS(set_from_toml_file(fields_of(config), path), kConfig,
                path.string() + ":2:1: unknown key");
  std::filesystem::remove(path);
  EXPECT_THROWS(set_from_toml_file(fields_of(config), path), kMissingInput, path.string());
}

}  // namespace
}  // namespace fovea
