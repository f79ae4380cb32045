// SPDX-License-Identifier: Apache-2.0
// Maps that SentencePiece has written are tested in sentencepiece_test.cc.
#include "fovea/text/sentencepiece/normalizer.h"

#include <gtest/gtest.h>

#include "fovea/base/random.h"
#include "fovea/text/sentencepiece/piece_model.h"
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

// Rules "a" -> "x" and "ab" -> "yz". The root's children stand from 256 on, those of "a" from 512,
// those of "ab" from 768; what a rule becomes stands at the place of its children itself.
std::vector<std::uint32_t> two_rules() {
  std::vector<std::uint32_t> units(1024, kValue);  // no text leads to these
  units[0] = unit(256, 0);
  units[256 ^ 'a'] = unit((256 ^ 'a') ^ 512, 'a', true);
  units[512] = kValue | 0;
  units[512 ^ 'b'] = unit((512 ^ 'b') ^ 768, 'b', true);
  units[768] = kValue | 2;
  return units;
}
constexpr std::string_view kTexts("x\0yz\0", 5);

TEST(CharsMap, FindsTheLongestRule) {
  const CharsMap map(map_of(two_rules(), kTexts), "m");
  const auto found = [&](std::string_view text) {
    const CharsMap::Match match = map.longest(text);
    return std::to_string(match.length) + std::string(match.replacement);
  };
  EXPECT_EQ(found("abc"), "2yz");
  EXPECT_EQ(found("ac"), "1x");
  EXPECT_EQ(found("a"), "1x");
  EXPECT_EQ(found("b"), "0");
  EXPECT_EQ(found(""), "0");
  EXPECT_FALSE(map.empty());
  EXPECT_TRUE(CharsMap().empty());
  EXPECT_EQ(CharsMap("", "m").longest("a").length, 0u);
}

TEST(CharsMap, SizesAreChecked) {
  EXPECT_THROWS(CharsMap("abc", "m"), kModelDamaged, "m: rules of normalization: 3 bytes");
  EXPECT_THROWS(CharsMap(little_endian(0xFFFFFFFC), "m"), kModelDamaged,
                "a trie of 4294967292 bytes in 4 bytes");
  EXPECT_THROWS(CharsMap(little_endian(6) + "12345678", "m"), kModelDamaged, "a trie of 6 bytes");
  EXPECT_THROWS(CharsMap(little_endian(0) + "1234", "m"), kModelDamaged, "a trie of 0 bytes");
}

TEST(CharsMap, RulesEndInside) {
  auto units = two_rules();
  units[768] = kValue | 6;
  EXPECT_THROWS(CharsMap(map_of(units, kTexts), "m"), kModelDamaged, "outside of the texts");
  units[768] = kValue | 5;  // the end itself: an empty text
  EXPECT_EQ(CharsMap(map_of(units, kTexts), "m").longest("ab").replacement, "");
  units = two_rules();
  units[512 ^ 'b'] = unit(1u << 20, 'b', true);
  EXPECT_THROWS(CharsMap(map_of(units, kTexts), "m"), kModelDamaged, "outside of the trie");
}

// "abab...": the children of "ab" are those of the root. A long line would be read to its end for
// each character.
TEST(CharsMap, CyclesAreRefused) {
  auto units = two_rules();
  units[512 ^ 'b'] = unit((512 ^ 'b') ^ 256, 'b', false);
  EXPECT_THROWS(CharsMap(map_of(units, kTexts), "m"), kModelDamaged, "a cycle");
}

// A text is read as far as rules go at each of its characters, whether one ends there or not.
TEST(CharsMap, LongRulesAreRefused) {
  const std::string longest(kLongestPiece, 'a');
  const CharsMap map(map_of_rule(longest, "b"), "m");
  EXPECT_EQ(map.longest(longest + "a").length, longest.size());
  EXPECT_THROWS(CharsMap(map_of_rule(longest + "a", "b"), "m"), kModelDamaged,
                "m: rules of normalization: one is for a text of 2049 bytes; at most 2048");
}

// The children of two units may be the same. The longer way to them counts, whichever is first.
TEST(CharsMap, TheLongestWayToSharedUnitsCounts) {
  for (const std::string_view labels : {"ax", "xa"}) {
    // "a" and "x" lead to the units behind the first byte of a rule of 'b's.
    const std::string rule(kLongestPiece - 1, 'b');
    const auto units_of = [&](std::size_t bytes) {
      std::vector<std::uint32_t> units(256 * (bytes + 3), kValue);
      units[0] = unit(256, 0);
      units[256 ^ labels[0]] = unit((256 ^ labels[0]) ^ 512, labels[0]);
      std::uint32_t base = 512;
      for (std::size_t n = 0; n < bytes; ++n, base += 256) {
        units[base ^ 'b'] = unit((base ^ 'b') ^ (base + 256), 'b', n + 1 == bytes);
      }
      units[256 ^ labels[1]] = unit((256 ^ labels[1]) ^ 768, labels[1]);
      units[base] = kValue;
      return units;
    };
    EXPECT_EQ(CharsMap(map_of(units_of(rule.size()), kTexts), "m").longest("ab").length, 0u);
    EXPECT_THROWS(CharsMap(map_of(units_of(rule.size() + 1), kTexts), "m"), kModelDamaged,
                  "a text of 2049 bytes");
  }
}

TEST(CharsMap, DamagedMapsAreRefusedOrSafe) {
  Random random(1, RandomUse::kTest);
  int refused = 0;
  for (int problem = 0; problem < 2000; ++problem) {
    std::string bytes = map_of(two_rules(), kTexts);
    for (index change = random.below(40); change >= 0; --change) {
      const index at = random.below(4) == 0 ? random.below(std::ssize(bytes))
                                            : 4 * (256 + random.below(768)) + random.below(8);
      bytes[static_cast<std::size_t>(at)] = static_cast<char>(random.below(256));
    }
    const auto error = error_of([&] {
      const CharsMap map(bytes, "m");
      for (const std::string_view text : {"abab", "aq", "\xFF\x80z", "b"}) {
        const CharsMap::Match match = map.longest(text);
        EXPECT_LE(match.length, text.size());
        EXPECT_LE(match.replacement.size(), kTexts.size() + 4096);
      }
    });
    refused += error ? 1 : 0;
  }
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace fovea
