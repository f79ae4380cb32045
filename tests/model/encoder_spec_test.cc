// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/encoder_spec.h"

#include <gtest/gtest.h>

#include "fovea/base/random.h"
#include "fovea/model/layer_table.h"
#include "tests/support/encoder_text.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

const LayerKind* kind(const char* name) { return &layer_kind(name); }

TEST(EncoderSpec, ReadsStagesLayersAndSettings) {
  const auto stages = parse_encoder("conv3,attention:heads=8:window=8,bilstm:256");
  ASSERT_EQ(stages.size(), 3);
  EXPECT_EQ(stages[0], EncoderStage({{.kind = kind("conv"), .kernel = 3}}));
  EXPECT_EQ(stages[1], EncoderStage({{.kind = kind("attention"), .heads = 8, .window = 8}}));
  EXPECT_EQ(stages[2], EncoderStage({{.kind = kind("bilstm"), .width = 256}}));
}

TEST(EncoderSpec, ReadsLayersSideBySide) {
  const auto stages = parse_encoder("conv12:64:dilation=2:gated+gru:layers=2:residual,ff:ff=9");
  ASSERT_EQ(stages.size(), 2);
  ASSERT_EQ(stages[0].size(), 2);
  EXPECT_EQ(stages[0][0],
            (EncoderLayerSpec{
                .kind = kind("conv"), .width = 64, .kernel = 12, .dilation = 2, .gated = true}));
  EXPECT_EQ(stages[0][1], (EncoderLayerSpec{.kind = kind("gru"), .layers = 2, .residual = true}));
  EXPECT_EQ(stages[1][0].ff, 9);
}

TEST(EncoderSpec, ReadsTheWindowsOfATextCnn) {
  const auto stages = parse_encoder("conv3, textcnn:3, 4,5:width=100");
  ASSERT_EQ(stages.size(), 2);
  EXPECT_EQ(stages[1],
            EncoderStage({{.kind = kind("textcnn"), .width = 100, .widths = {3, 4, 5}}}));
  EXPECT_EQ(parse_encoder("textcnn:2")[0][0].widths, std::vector<index>({2}));
  EXPECT_THROWS(parse_encoder("textcnn"), kOptionValue, "needs the widths of its windows");
  EXPECT_THROWS(parse_encoder("textcnn:width=3"), kOptionValue, "needs the widths of its windows");
  EXPECT_THROWS(parse_encoder("textcnn:3,0"), kOptionValue,
                "at character 11 of 'textcnn:3,0': a window needs a token");
  EXPECT_THROWS(parse_encoder("textcnn:3,x"), kOptionValue, "there is no layer 'x'");
  EXPECT_THROWS(parse_encoder("conv3:8,4"), kOptionValue, "there is no layer");
}

TEST(EncoderSpec, ReadsStepsOfAttention) {
  const auto stages = parse_encoder("attention:dilation=2:window=4,transformer:strided=8");
  EXPECT_EQ(stages[0][0],
            (EncoderLayerSpec{.kind = kind("attention"), .dilation = 2, .window = 4}));
  EXPECT_EQ(stages[1][0].strided, 8);
  EXPECT_THROWS(parse_encoder("lstm:strided=2"), kOptionValue, "lstm has no setting 'strided'");
}

TEST(EncoderSpec, BlanksMayStandAroundCommasAndPlusSigns) {
  const auto tight = parse_encoder("conv3+gru:9,lstm:4,ff");
  EXPECT_EQ(parse_encoder("conv3 + gru:9, lstm:4, ff"), tight);
  EXPECT_EQ(parse_encoder("  conv3  +gru:9 ,lstm:4 , ff "), tight);
}

TEST(EncoderSpec, ReadsChoices) {
  const auto stages = parse_encoder(
      "transformer:position=rotary:activation=silu:kv-heads=1:head-dim=4,"
      "attention:plain:scale=0.5:no-output,attention-rnn:heads=2:window=0");
  const EncoderLayerSpec& layer = stages[0][0];
  EXPECT_EQ(layer.position, PositionKind::kRotary);
  EXPECT_EQ(layer.activation, LayerActivation::kSilu);
  EXPECT_EQ(layer.kv_heads, 1);
  EXPECT_EQ(layer.head_dim, 4);
  EXPECT_EQ(stages[1][0].residual, false);
  EXPECT_EQ(stages[1][0].scale, 0.5);
  EXPECT_TRUE(stages[1][0].no_output);
  EXPECT_FALSE(layer.scale || layer.no_output);
  EXPECT_EQ(stages[2][0].kind, kind("attention-rnn"));
  EXPECT_EQ(stages[2][0].window, 0);
}

// Every error says where it is, in characters from 1.
TEST(EncoderSpec, SaysWhereAnErrorIs) {
  const struct {
    const char* text;
    const char* words;
  } rows[] = {
      {"", "at character 1 of ''"},
      {"conv3,", "at character 7"},
      {",gru", "at character 1"},
      {"gru+", "at character 5"},
      {"conv3,lstn", "at character 7 of 'conv3,lstn': there is no layer 'lstn'"},
      {"conv", "needs its width in tokens"},
      {"conv0", "at character 5"},
      {"lstm4", "at character 5 of 'lstm4': lstm takes no number here"},
      {"attention:haeds=8",
       "at character 11 of 'attention:haeds=8': attention has no setting 'haeds'"},
      {"lstm:heads=8", "lstm has no setting 'heads'"},
      {"attention:heads=x", "at character 17"},
      {"attention:heads=-1", "'-1' is no number in 0 to 2147483647"},
      {"attention:heads=99999999999999999999", "is no number in 0 to"},
      {"attention:heads=0", "it must be at least 1"},
      {"attention:heads", "'heads' needs a value"},
      {"attention:heads=", "'heads' needs a value"},
      {"attention:heads=8:heads=4",
       "at character 19 of 'attention:heads=8:heads=4': 'heads' is given twice"},
      {"ff:plain:residual", "'residual' or 'plain' is said twice"},
      {"conv3:gated=1", "'gated' takes no value"},
      {"attention:scale=0", "'0' is no number above 0"},
      {"attention:scale=1e999", "'1e999' is no number above 0"},
      {"attention:scale=nan", "'nan' is no number above 0"},
      {"attention:scale=1x", "at character 17"},
      {"attention:no-output=1", "'no-output' takes no value"},
      {"transformer:no-output", "transformer has no setting 'no-output'"},
      {"lstm:scale=1", "lstm has no setting 'scale'"},
      {"attention:position=nowhere", "'nowhere' is not known"},
      {"lstm:", "lstm has no setting ''"},
      {"lstm: 3", "lstm has no setting ' 3'"},
      {"lstm :3", "at character 1 of 'lstm :3': there is no layer 'lstm '"},
      {" ", "at character 2 of ' ': a layer is missing"},
      {"conv3, lstn", "at character 8 of 'conv3, lstn': there is no layer 'lstn'"},
      {"conv3 + ff, attention:haeds=8", "at character 23 of"},
      {"gru, ,ff", "at character 6 of 'gru, ,ff': a layer is missing"},
      {"conv 3", "there is no layer 'conv 3'"},
      {"lstm\t,gru", "there is no layer 'lstm\\x09'"},
      {"LSTM", "there is no layer 'LSTM'"},
      {"lstm\n", "there is no layer 'lstm\\x0a'"},
      {"狐狸,lstm", "at character 1 of "},
      {"lstm:狐狸=2:gated", "at character 6 of "},
      {"conv狐狸,lstm", "there is no layer"},
      {"lstm:residual,gru:狐", "at character 19 of "},
      {"lstm:8,\xe7\x8b", "at character 8 of "},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    EXPECT_THROWS(parse_encoder(row.text), kOptionValue, row.words);
  }
}

// A random layer with settings that its kind has.
class RandomSpec {
 public:
  explicit RandomSpec(std::uint64_t number) : random_(1, RandomUse::kTest, number) {}

  std::vector<EncoderStage> encoder() {
    std::vector<EncoderStage> stages(static_cast<std::size_t>(1 + random_.below(4)));
    for (EncoderStage& stage : stages) {
      for (index n = random_.below(3); n >= 0; --n) stage.push_back(layer());
    }
    return stages;
  }

 private:
  bool maybe() { return random_.below(2) == 0; }
  index size() { return maybe() ? 1 + random_.below(9) : 2147483647; }

  template <class Enum>
  Enum any() {
    const auto names = enum_names(Enum{});
    return names[static_cast<std::size_t>(random_.below(static_cast<index>(names.size())))].value;
  }

  EncoderLayerSpec layer() {
    EncoderLayerSpec s;
    const auto kinds = layer_kinds();
    s.kind = &kinds[static_cast<std::size_t>(random_.below(static_cast<index>(kinds.size())))];
    if (s.kind->windowed) {
      s.widths.push_back(size());
      if (maybe()) s.widths.push_back(size());
    }
    if (s.kind->numbered) s.kernel = size();
    const auto gives = [&](const char* setting) { return s.kind->has_setting(setting) && maybe(); };
    if (gives("width")) s.width = size();
    if (gives("layers")) s.layers = size();
    if (gives("dilation")) s.dilation = size();
    if (gives("gated")) s.gated = true;
    if (gives("heads")) s.heads = size();
    if (gives("window")) s.window = maybe() ? 0 : size();
    if (gives("kv-heads")) s.kv_heads = size(), s.head_dim = size();
    if (gives("position")) s.position = any<PositionKind>();
    if (gives("ff")) s.ff = size();
    if (gives("activation")) s.activation = any<LayerActivation>();
    if (gives("residual")) s.residual = maybe();
    return s;
  }

  Random random_;
};

TEST(EncoderSpec, WhatIsWrittenIsReadAgain) {
  for (std::uint64_t n = 0; n < 2000; ++n) {
    const auto stages = RandomSpec(n).encoder();
    const std::string text = text_of(stages);
    SCOPED_TRACE(text);
    ASSERT_EQ(parse_encoder(text), stages);
  }
}

// Whatever one byte is made of another: it is read, or refused at a place inside of the text.
TEST(EncoderSpec, SaysWhereWhateverIsWrong) {
  constexpr std::string_view kBytes = ":,+=0a- \n\xff";
  Random random(2, RandomUse::kTest);
  index refused = 0;
  for (std::uint64_t n = 0; n < 2000; ++n) {
    std::string text = text_of(RandomSpec(n).encoder());
    const auto at = static_cast<std::size_t>(random.below(static_cast<index>(text.size())));
    text[at] = kBytes[static_cast<std::size_t>(random.below(static_cast<index>(kBytes.size())))];
    SCOPED_TRACE(text);
    const auto error = error_of([&] { parse_encoder(text); });
    if (!error) continue;
    ++refused;
    index place = 0;
    ASSERT_EQ(std::sscanf(error->what(), "--encoder: at character %td of", &place), 1);
    EXPECT_TRUE(place >= 1 && place <= static_cast<index>(text.size()) + 1);
    EXPECT_FALSE(error->hint().empty());
  }
  EXPECT_GT(refused, 1000);
}

// A hint says what the message has not said.
TEST(EncoderSpec, HintsSayWhatToDo) {
  const auto hint = [](const char* text) { return error_of([&] { parse_encoder(text); })->hint(); };
  EXPECT_EQ(hint("lstm:width=x"), "write digits alone, such as 8");
  EXPECT_EQ(hint("lstm:layers=0"), "leave it out to have its usual value");
  EXPECT_EQ(hint("lstm:8:width=8"), "remove one of the two");
  EXPECT_EQ(hint("attention:scale=0"), "write it as 0.25 or 1e-2, for example");
}

TEST(EncoderSpec, HintsAtWhatIsMeant) {
  const auto error = error_of([] { parse_encoder("attention:haeds=8"); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->hint(), testing::HasSubstr("did you mean heads?"));
  EXPECT_THAT(error->hint(), testing::HasSubstr("settings of attention are: "));
}

}  // namespace
}  // namespace fovea
