// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/model/tagger.h"
#include "tests/model/tagger_support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(TaggerConfig, CountsWhatAModelHas) {
  for (const char* encoder : {"", "bilstm:3", "attention"}) {
    for (const auto& [reader, name] : enum_names(CharacterReader{})) {
      TaggerConfig c = tagger_config(encoder);
      c.character_reader = reader;
      const Tagger model(c, {}, 1);
      index size = 0;
      for (const Parameter* p : model.parameters()) size += p->value.size();
      EXPECT_EQ(parameter_count(c), size);
    }
  }
}

// By hand: words 7 3, characters 6 2, window 4 3 2 and 4, shapes 45 2, input 4 9 and 4, output 3 4
// and 3, the CRF 3 3 and 3 and 3.
TEST(TaggerConfig, CountsByHand) {
  EXPECT_EQ(parameter_count(tagger_config()), 21 + 12 + 24 + 4 + 90 + 36 + 4 + 12 + 3 + 9 + 3 + 3);
  EXPECT_EQ(resolve(tagger_config()).features, 9);
  EXPECT_EQ(frozen_count(tagger_config()), 0);
  EXPECT_EQ(parameter_count(linear_config()), 30 * 3 + 9 + 3 + 3);
}

// Instead of one output 3 4 and 3 and its CRF, two: 3 4 and 3 with a CRF, 2 4 and 2.
TEST(TaggerConfig, CountsTheHeadsOfEachColumn) {
  EXPECT_EQ(parameter_count(two_columns()), parameter_count(tagger_config()) + 8 + 2);
  EXPECT_EQ(tag_count(two_columns()), 5);
  EXPECT_EQ(head_of(two_columns(), 1), TagHead::kSoftmax);
  TaggerConfig same = two_columns();
  same.head = {TagHead::kCrf};
  EXPECT_EQ(parameter_count(same), parameter_count(two_columns()) + 4 + 2 + 2);
}

TEST(TaggerConfig, NamesWhatDoesNotFit) {
  const auto with = [](auto change) {
    TaggerConfig c = tagger_config();
    change(c);
    return resolve(c);
  };
  EXPECT_THROWS(with([](TaggerConfig& c) { c.word_width = -1; }), kOptionValue, "--word-width");
  EXPECT_THROWS(with([](TaggerConfig& c) { c.tags = {3, 0}; }), kOptionValue, "--tags");
  EXPECT_THROWS(with([](TaggerConfig& c) { c.tags = {}; }), kOptionValue, "--head");
  EXPECT_THROWS(with([](TaggerConfig& c) {
                  c.head = {TagHead::kCrf, TagHead::kCrf};
                }),
                kOptionValue, "--head: expected one for all tag columns, or one for each of the 1");
  EXPECT_THROWS(with([](TaggerConfig& c) { c.input_dropout = 1; }), kOptionValue,
                "--input-dropout");
  EXPECT_THROWS(with([](TaggerConfig& c) { c.output_dropout = -1; }), kOptionValue, "--dropout");
  EXPECT_THROWS(with([](TaggerConfig& c) { c.encoder = "nothing"; }), kOptionValue, "--encoder");
  EXPECT_THROWS(with([](TaggerConfig& c) {
                  c.character_reader = CharacterReader::kBilstm;
                  c.character_features = 3;
                }),
                kOptionValue, "--character-features");
  EXPECT_THROWS(with([](TaggerConfig& c) {
                  c.character_reader = CharacterReader::kNone;
                  c.word_width = c.shape_width = 0;
                }),
                kOptionValue, "--word-width");
  EXPECT_EQ(with([](TaggerConfig& c) { c.ngram_width = 3; }).buckets, 100000);
  EXPECT_EQ(with([](TaggerConfig& c) { c.linear = true; }).linear_buckets, 262144);
  EXPECT_THROWS(with([](TaggerConfig& c) {
                  c.linear = true;
                  c.linear_buckets = 1;
                }),
                kOptionValue, "--linear-buckets");
  EXPECT_THROWS(with([](TaggerConfig& c) { c.linear_dropout = 1; }), kOptionValue,
                "--linear-dropout");
  EXPECT_THROWS(with([](TaggerConfig& c) {
                  c = linear_config();
                  c.encoder = "bilstm";
                }),
                kOptionValue, "--encoder: bilstm has nothing to read");
}

}  // namespace
}  // namespace fovea
