// SPDX-License-Identifier: Apache-2.0
// These tests hold for the layer of every row.
#include "fovea/model/layer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fovea/model/encoder_spec.h"
#include "fovea/parts/axes.h"
#include "tests/model/encoder_support.h"
#include "tests/nn/pieces.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

// The least that a text says of a layer: "conv3".
std::string text_of(const LayerKind& kind) {
  return std::string(kind.name) + (kind.numbered ? "3" : "") + (kind.windowed ? ":2,3" : "");
}

EncoderConfig config_for(const LayerKind& kind) {
  EncoderConfig c = resolve(encoder("attention"));
  c.sight = kind.reads_back || kind.is_last ? Sight::kWhole : Sight::kPast;
  c.pools = kind.is_last;
  return c;
}

SizedLayer sized_layer(const EncoderConfig& c, const std::string& text) {
  return size_stages(c, parse_encoder(text))[0].branches[0];
}

std::unique_ptr<EncoderLayer> make(const EncoderConfig& c, const SizedLayer& layer,
                                   ParameterSet& set) {
  const ResidualOptions sum{.norm = {.width = layer.in}};
  const ResidualIf residual = *layer.spec.residual ? ResidualIf(sum) : std::nullopt;
  return layer.spec.kind->make({config_of_layer(c, layer), layer.spec, 1, residual},
                               ParameterScope(set));
}

TEST(LayerTable, HasANameOnce) {
  std::set<std::string_view> names;
  for (const LayerKind& kind : layer_kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_EQ(&layer_kind(kind.name), &kind);
  }
  EXPECT_THROWS(layer_kind("lstn"), kInternal, "there is no layer lstn");
}

// No text could say a setting that the parser does not know.
TEST(LayerTable, SettingsAreThoseOfTheParser) {
  for (const LayerKind& kind : layer_kinds()) {
    for (const std::string_view word : axis_words(kind.settings)) {
      const std::string setting(word);
      const auto error = error_of([&] { parse_encoder(text_of(kind) + ":" + setting + "=1"); });
      EXPECT_THAT(error ? error->what() : "", testing::Not(testing::HasSubstr("has no setting")));
    }
  }
  EXPECT_TRUE(layer_kind("attention").has_setting("plain"));
  EXPECT_FALSE(layer_kind("attention").has_setting("pla"));
  EXPECT_FALSE(layer_kind("attention").has_setting("heads kv-heads"));
}

TEST(LayerTable, WidthsAreThoseOfTheLayers) {
  for (const LayerKind& kind : layer_kinds()) {
    SCOPED_TRACE(kind.name);
    const EncoderConfig c = config_for(kind);
    const SizedLayer layer = sized_layer(c, text_of(kind));
    ParameterSet set({.memory = ParameterMemory::kShapesOnly});
    EXPECT_EQ(make(c, layer, set)->width(), layer.out);
  }
}

TEST(LayerTable, GoesOnWithTheBitsOfTheWhole) {
  constexpr index N = 13;
  for (const LayerKind& kind : layer_kinds()) {
    if (kind.reads_back || kind.is_last) continue;
    SCOPED_TRACE(kind.name);
    const EncoderConfig c = config_for(kind);
    const SizedLayer layer = sized_layer(c, text_of(kind));
    ParameterSet set({});
    const auto made = make(c, layer, set);
    randomise(set);
    expect_same_in_pieces(*made, noise(N * layer.in), N);
  }
}

// With an activation whose differences are derivatives everywhere; that of a TextCNN is ReLU.
TEST(LayerTable, GradientIsThatOfTheForward) {
  constexpr index N = 6;
  const std::int32_t offsets[] = {0, 2, N};
  for (const LayerKind& kind : layer_kinds()) {
    if (kind.is_last) continue;
    SCOPED_TRACE(kind.name);
    const EncoderConfig c = config_for(kind);
    const char* const smooth = kind.has_setting("activation") ? ":activation=gelu" : "";
    const SizedLayer layer = sized_layer(c, text_of(kind) + smooth);
    auto set = float64_set();
    const auto made = make(c, layer, set);
    const auto x = noise<double>(N * layer.in);
    expect_gradients(set, [&](Tape& t) {
      const PackedRows packed = lay_out_rows(t, N, {offsets, 3}, {});
      return made->forward(t, t.constant(Rows<const double>(x.data(), N, layer.in)), {packed});
    });
  }
}

}  // namespace
}  // namespace fovea
