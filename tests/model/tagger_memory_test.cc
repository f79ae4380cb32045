// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/tagger_memory.h"

#include <gtest/gtest.h>

#include "fovea/model/tagger.h"
#include "tests/model/tagger_support.h"
#include "tests/model/tape_bytes.h"

namespace fovea {
namespace {

std::vector<TaggerConfig> cases() {
  std::vector<TaggerConfig> all;
  for (const char* encoder : {"", "bilstm:32", "conv3,attention", "transformer"}) {
    for (const auto& [reader, name] : enum_names(CharacterReader{})) {
      for (const TagHead head : {TagHead::kSoftmax, TagHead::kCrf}) {
        TaggerConfig c = tagger_config(encoder, head);
        c.character_reader = reader;
        c.word_width = c.width = 64;
        c.character_width = 20;
        c.character_features = 32;
        c.heads = 4;
        c.ff = 0;
        c.block = 48;
        c.vocabulary = 300;
        if (reader == CharacterReader::kNone) c.ngram_width = 16;
        c.linear = reader == CharacterReader::kConvolution;
        if (head == TagHead::kCrf) c.input_dropout = c.output_dropout = 0.3;
        all.push_back(c);
        if (reader != CharacterReader::kNone) continue;
        all.push_back(c);
        all.back().tags = {3, 20};
      }
    }
  }
  all.push_back(linear_config());
  all.back().block = 48;
  return all;
}

// What a tape takes, as a share of the forecast.
double share_of_forecast(const TaggerConfig& c, TapeMode mode) {
  const OwnedWords batch(std::vector<index>(8, 48), c);
  const Tagger model(c, {}, 1);
  Tape tape(Context(2), mode);
  for (int step = 0; step < 2; ++step) {
    tape.reset();
    const Variable loss = model.loss(tape, batch.view());
    if (mode == TapeMode::kTrain) tape.backward(loss);
  }
  const WordLoad load{.tape = {8 * 48, mode},
                      .characters = static_cast<index>(batch.characters.size())};
  return bytes_used(tape) / activation_bytes(c, load);
}

// A forecast must hold, and not be far too large.
TEST(TaggerMemory, ActivationsAreThoseOfATape) {
  for (const TaggerConfig& c : cases()) {
    for (const TapeMode mode : {TapeMode::kTrain, TapeMode::kInference}) {
      const double share = share_of_forecast(c, mode);
      EXPECT_LT(share, 1.02) << c.encoder << " " << to_string(c.character_reader) << " "
                             << to_string(c.head[0]) << " " << c.tags.size() << " " << int(mode);
      EXPECT_GT(share, 0.6) << c.encoder << " " << to_string(c.character_reader) << " "
                            << to_string(c.head[0]) << " " << c.tags.size() << " " << int(mode);
    }
  }
}

TEST(TaggerMemory, KnowsTheTransitionsOfManyTags) {
  TaggerConfig c = cases().front();
  c.head = {TagHead::kCrf};
  c.tags = {900};
  const double share = share_of_forecast(c, TapeMode::kTrain);
  EXPECT_LT(share, 1.02);
  EXPECT_GT(share, 0.6);
}

TEST(TaggerMemory, ScratchGrowsWithThreads) {
  const TaggerConfig c = tagger_config("transformer");
  const WordLoad load{.tape = {384}, .characters = 2000};
  EXPECT_GT(scratch_bytes(Context(4), c, load), scratch_bytes(Context(2), c, load));
  TaggerConfig many = c;
  many.head = {TagHead::kCrf};
  many.tags = {500};
  TaggerConfig apart = many;
  apart.head = {TagHead::kSoftmax};
  // Six tables of transitions.
  EXPECT_GT(scratch_bytes(Context(1), many, load) - scratch_bytes(Context(1), apart, load),
            6.0 * 500 * 500 * sizeof(float));
  EXPECT_GT(packed_bytes(c, {.tape = {8000, TapeMode::kInference}, .characters = 9}), 0);
}

}  // namespace
}  // namespace fovea
