// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/model/translator.h"
#include "tests/model/translator_support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

index size_of(const Translator& model) {
  index size = 0;
  for (const Parameter* p : model.parameters()) size += p->value.size();
  return size;
}

TEST(TranslatorConfig, CountsWhatAModelHas) {
  for (const char* encoder : {"", "conv3,bilstm:3"}) {
    for (const bool tie : {false, true}) {
      TranslatorConfig c = translator_config();
      c.encoder = encoder;
      c.encoder_layers = 3;
      c.decoder_layers = 2;
      c.tie = tie;
      c.position = PositionKind::kLearned;
      EXPECT_EQ(parameter_count(c), size_of(Translator(c, 1)));
    }
  }
}

TEST(TranslatorConfig, DistancesThatLayersShareCountOnce) {
  TranslatorConfig c = translator_config();
  c.position = *find_enum<PositionKind>("t5");
  c.encoder_layers = 3;
  c.decoder_layers = 2;
  const index apart = parameter_count(c);
  c.shares_distances = true;
  EXPECT_EQ(parameter_count(c), apart - 3 * c.t5_buckets * c.heads);
  EXPECT_EQ(parameter_count(c), size_of(Translator(c, 1)));
}

// By hand, of width 8 and 3, with biases: tables 9 8 and 7 8; a layer of the encoder has 24 9 + 8 9
// + 3 9 + 8 4 and two norms of 16; one of the decoder also 8 9 + 16 9 + 8 9 and a norm; two last
// norms.
TEST(TranslatorConfig, CountsByHand) {
  const index read = 24 * 9 + 8 * 9 + 3 * 9 + 8 * 4 + 32;
  EXPECT_EQ(parameter_count(translator_config()),
            72 + 56 + read + (read + 72 + 144 + 72 + 16) + 32);
}

TEST(TranslatorConfig, TheSidesDiffer) {
  TranslatorConfig c = translator_config();
  c.position = PositionKind::kNone;
  c.decoder_position = "sinusoidal";
  c = resolve(c);
  EXPECT_EQ(encoder_of(c).sight, Sight::kWhole);
  EXPECT_EQ(encoder_of(c).position, PositionKind::kNone);
  EXPECT_EQ(encoder_of(c).token_rows, RowUse::kSparse);
  EXPECT_EQ(decoder_of(c).sight, Sight::kPast);
  EXPECT_EQ(decoder_of(c).position, PositionKind::kSinusoidal);
  EXPECT_EQ(decoder_of(c).vocabulary, 7);
  EXPECT_EQ(decoder_of(c).token_rows, RowUse::kDense);
  EXPECT_DOUBLE_EQ(c.embedding_scale * c.embedding_scale, 8);
}

TEST(TranslatorConfig, NamesWhatDoesNotFit) {
  const auto with = [](auto change) {
    TranslatorConfig c = translator_config();
    change(c);
    return resolve(c);
  };
  using C = TranslatorConfig;
  EXPECT_THROWS(with([](C& c) { c.encoder_layers = 0; }), kOptionValue, "--encoder-layers");
  EXPECT_THROWS(with([](C& c) { c.decoder_layers = -1; }), kOptionValue, "--decoder-layers");
  EXPECT_THROWS(with([](C& c) { c.decoder_position = "nowhere"; }), kOptionValue,
                "--decoder-position");
  EXPECT_THROWS(with([](C& c) { c.heads = 3; }), kShape, "--width");
  EXPECT_THROWS(with([](C& c) { c.share_embeddings = true; }), kOptionValue, "--share-embeddings");
  EXPECT_THROWS(with([](C& c) { c.target_vocabulary = 0; }), kOptionValue, "--target-vocabulary");
  EXPECT_THROWS(with([](C& c) { c.encoder = "nothing"; }), kOptionValue, "--encoder");
}

}  // namespace
}  // namespace fovea
