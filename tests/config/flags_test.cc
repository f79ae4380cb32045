// SPDX-License-Identifier: Apache-2.0
#include "fovea/config/flags.h"

#include <map>

#include "fovea/config/toml.h"
#include "tests/config/example_config.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using ::testing::ElementsAre;

TEST(Flags, DescribeTheirFields) {
  ExampleConfig config;
  const std::vector<Flag> flags = flags_of(fields_of(config));
  std::vector<std::string> lines;
  for (const Flag& flag : flags) {
    lines.push_back("--" + flag.name + " " + flag.placeholder + " (" + flag.default_text + ")");
  }
  EXPECT_THAT(lines,
              ElementsAre("--layers N (4)", "--head-dim N (64)", "--bias  (false)", "--seed N (1)",
                          "--dropout X (0.1)", "--lr X (0.001)", "--stop-after TEXT (10e)",
                          "--train TEXT... ()", "--curve cosine|inverse-sqrt (cosine)"));
  EXPECT_EQ(flags[1].environment, "FOVEA_HEAD_DIM");
  EXPECT_EQ(flags[1].help, "width of a head");
  EXPECT_EQ(flags[2].kind, FlagKind::kSwitch);
  EXPECT_EQ(flags[7].kind, FlagKind::kList);
  EXPECT_THAT(flags[8].choices, ElementsAre("cosine", "inverse-sqrt"));
}

TEST(Flags, SetTheirFields) {
  ExampleConfig config;
  std::vector<Flag> flags = flags_of(fields_of(config));
  flags[1].set(std::vector<std::string>{"32"});
  flags[7].set(std::vector<std::string>{"a", "b"});
  EXPECT_EQ(config.model.head_dim, 32);
  EXPECT_THAT(config.train, ElementsAre("a", "b"));
  EXPECT_THROWS(flags[1].set(std::vector<std::string>{"x"}), kOptionValue,
                "--head-dim: expected a whole number; got 'x'");
}

TEST(Flags, AreSetByTheEnvironment) {
  const std::map<std::string, std::string> environment = {
      {"FOVEA_LR", "0.5"}, {"FOVEA_TRAIN", "a,,b"}, {"FOVEA_BIAS", "1"}, {"FOVEA_ISA", "avx2"}};
  const auto lookup = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
  ExampleConfig config;
  std::vector<Flag> flags = flags_of(fields_of(config));
  EXPECT_THAT(set_from_environment(flags, lookup), ElementsAre("model.bias", "lr", "train"));
  EXPECT_EQ(config.lr, 0.5);
  EXPECT_TRUE(config.model.bias);
  EXPECT_THAT(config.train, ElementsAre("a", "b"));
  EXPECT_THROWS(set_from_environment(flags, [](const char*) { return "x"; }), kOptionValue,
                "FOVEA_LAYERS: expected a whole number; got 'x'");
}

struct Output {
  std::string file = "a";

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("file", file, "where it is written", {.only_command_line = true});
  }
};

TEST(Flags, SomeAreOfTheCommandLineAlone) {
  Output output;
  std::vector<Flag> flags = flags_of(fields_of(output));
  EXPECT_EQ(flags[0].environment, "");
  EXPECT_THAT(set_from_environment(flags, [](const char*) { return "b"; }), ElementsAre());
  EXPECT_EQ(toml_text(fields_of(output)), "");
  EXPECT_THROWS(set_from_toml(fields_of(output), "file = \"b\"", "t"), kConfig, "file");
  EXPECT_EQ(output.file, "a");
}

TEST(Flags, OneNameIsOneField) {
  ExampleModel a, b;
  std::vector<Field> fields;
  append_fields(a, fields, {.path = "encoder"});
  append_fields(b, fields, {.path = "decoder"});
  EXPECT_THROWS(flags_of(fields), kInternal, "--layers: encoder.layers and decoder.layers");
}

}  // namespace
}  // namespace fovea
