// SPDX-License-Identifier: Apache-2.0
// Rules of normalization are tested in charsmap_test.cc, and all together, against SentencePiece,
// in sentencepiece_test.cc.
#include "fovea/text/sentencepiece/normalizer.h"

#include <gtest/gtest.h>

#include "tests/support/throws.h"
#include "tests/text/sentencepiece/charsmap_writer.h"

namespace fovea {
namespace {

std::string normalized(std::string_view text, NormalizerSettings settings, bool suffix = false) {
  const PieceModel model{
      .pieces = {{"<unk>", 0, PieceType::kUnknown}, {"  x", 0, PieceType::kUserDefined}},
      .normalizer = std::move(settings),
      .space_is_suffix = suffix};
  return PieceNormalizer(model, "m").normalize(text);
}

TEST(PieceNormalizer, SpacesAreRemovedOrStay) {
  EXPECT_EQ(normalized(" a  b ", {}), "▁a▁b");
  EXPECT_EQ(normalized(" a  b ", {.remove_extra_whitespaces = false}), "▁▁a▁▁b▁");
  EXPECT_EQ(normalized(" a  b ", {.add_dummy_prefix = false}), "a▁b");
  EXPECT_EQ(normalized(" a  b ", {.escape_whitespaces = false}), " a b");
  EXPECT_EQ(normalized(" a  b ", {}, true), "a▁b▁");
  EXPECT_EQ(normalized("   ", {}), "");
  EXPECT_EQ(normalized("", {.remove_extra_whitespaces = false}), "");
}

TEST(PieceNormalizer, UserDefinedPiecesStayAsTheyAre) {
  EXPECT_EQ(normalized("a  x", {}), "▁a▁▁x");
}

TEST(PieceNormalizer, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(normalized("a\xE6\x9C", {}), "▁a\xEF\xBF\xBD\xEF\xBF\xBD");
}

// A rule may make much of a little, and spaces that are left out again.
TEST(PieceNormalizer, RulesDoNotSwellTexts) {
  const std::string line(1000, 'a');
  for (const char c : {'b', ' '}) {
    const std::string swells = map_of_rule("a", std::string(1'000'000, c));
    EXPECT_THROWS(normalized(line, {.charsmap = swells}), kInputFormat,
                  "the model's rules make more than 126 KiB of a text of 1000 B");
    const PieceModel model{.pieces = {{"<unk>", 0, PieceType::kUnknown}}, .denormalizer = swells};
    EXPECT_THROWS(PieceNormalizer(model, "m").denormalize(line), kInputFormat, "126 KiB");
  }
  const std::string longer = map_of_rule("a", std::string(60, 'b'));
  EXPECT_EQ(normalized(line, {.charsmap = longer}).size(), 3 + 60'000u);
}

TEST(PieceNormalizer, LengthsAreAnnounced) {
  EXPECT_EQ(announced_length('a'), 1u);
  EXPECT_EQ(announced_length('\x80'), 1u);
  EXPECT_EQ(announced_length('\xC3'), 2u);
  EXPECT_EQ(announced_length('\xE6'), 3u);
  EXPECT_EQ(announced_length('\xF0'), 4u);
}

}  // namespace
}  // namespace fovea
