// SPDX-License-Identifier: Apache-2.0
// Its gradient, bits and steps are tested with those of every translator (translator_test,
// text_decoding_test).
#include <gtest/gtest.h>

#include "fovea/model/target_decoder.h"
#include "tests/model/translator_support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(RecurrentDecoder, HasOneAttentionToTheSource) {
  const Translator model(recurrent_config(), 1);
  EXPECT_EQ(model.config().encoder, "bigru");
  EXPECT_EQ(model.config().position, PositionKind::kNone);
  ASSERT_EQ(model.attentions(), 1);
  EXPECT_EQ(model.cross_attention(0), 0);
  const OwnedPairs batch({{4, 3}, {2, 5}}, model.config());
  std::vector<HeadStatistics> seen(1);
  seen[0].keeps_weights = true;
  Tape tape(Context(1), TapeMode::kInference);
  model.logits(tape, batch.view(), {.attention = seen});
  EXPECT_EQ(seen[0].queries, 8);
  EXPECT_EQ(seen[0].weights.size(), 8u * 6);
  EXPECT_EQ(parameter_count(model.config()), [&] {
    index all = 0;
    for (const Parameter* p : model.parameters()) all += p->value.size();
    return all;
  }());
}

TEST(RecurrentDecoder, RefusesWhatATransformerHas) {
  TranslatorConfig c = recurrent_config();
  c.decoder_layers = 2;
  EXPECT_NO_THROW(resolve(resolve(recurrent_config())));
  EXPECT_THROWS(resolve(c), kOptionValue, "--decoder-layers: 2");
  c = recurrent_config();
  c.decoder_position = "rotary";
  EXPECT_THROWS(resolve(c), kOptionValue, "--decoder-position: has no effect");
  c = recurrent_config();
  c.encoder_layers = 2;
  EXPECT_THROWS(resolve(c), kOptionValue, "--encoder-layers: 2");
}

TEST(RecurrentDecoder, NamesAParentThatIsNotThere) {
  const Translator model(recurrent_config(), 1);
  const OwnedPairs sources({{4, 1}}, model.config());
  TranslatorDecoder decoder(Context(1), model);
  decoder.begin(sources.view().source);
  const std::int32_t ids[] = {0};
  const std::vector<index> none = {1};
  EXPECT_THROWS(decoder.step(none, {ids, 1}), kShape, "no 1 of 1");
}

}  // namespace
}  // namespace fovea
