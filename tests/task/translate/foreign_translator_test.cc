// SPDX-License-Identifier: Apache-2.0
// Translators of transformers translate as its generate() does.
#include <gmock/gmock.h>

#include "fovea/models.h"
#include "fovea/task/task_table.h"
#include "fovea/task/translate/evaluate.h"
#include "fovea/task/translate/line_translator.h"
#include "tests/pretrained/marian_support.h"
#include "tests/pretrained/t5_support.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

class ForeignLines : public testing::Test {
 protected:
  LoadedTranslator load(const TranslatorFiles& files) const {
    files.write(folder_ / "model");
    return load_translator(folder_ / "model");
  }

  const TestFolder folder_;
};

std::vector<std::string> translated(const LoadedTranslator& loaded, TranslationOptions options,
                                    const std::vector<std::string>& lines) {
  options.max_ratio = 1000;  // as long as generation_config.json says
  LineTranslator translator(Context(2), *loaded.model, loaded.vocabulary, options, "lines");
  return *translate_all(translator, lines, [] { return false; });
}

std::vector<std::string> texts_of(const std::vector<std::vector<std::int32_t>>& all) {
  std::vector<std::string> texts;
  for (const auto& ids : all) texts.push_back(text_of(ids));
  return texts;
}

// Ends that are forced, ends that come early, in three ways to stop a search.
TEST_F(ForeignLines, AreTranslatedAsByTransformers) {
  for (const GoldenMarian& one : kGoldenMarians) {
    SCOPED_TRACE(one.name);
    const LoadedTranslator loaded = load(MarianFiles(one));
    const std::vector<std::string> lines = texts_of(kMarianSources);
    // A source of an end alone is an empty line, which is not translated.
    const auto without_empty = [&](std::vector<std::string> texts) {
      for (std::size_t n = 0; n < texts.size(); ++n) {
        if (lines[n].empty()) texts[n].clear();
      }
      return texts;
    };
    TranslationOptions options{.search = loaded.search};
    EXPECT_EQ(translated(loaded, options, lines), without_empty(texts_of(one.searched)));
    options.search.beam = 1;
    EXPECT_EQ(translated(loaded, options, lines), without_empty(texts_of(one.greedy)));
  }
}

// Texts that end themselves and such that max_length ends, of which transformers keeps each token.
TEST_F(ForeignLines, OfT5AreWrittenAsByTransformers) {
  std::vector<std::string> lines;
  for (const auto& ids : kT5Sources) lines.push_back(t5_text(ids));
  for (const GoldenT5& one : kGoldenT5s) {
    SCOPED_TRACE(one.name);
    const LoadedTranslator loaded = load(T5Files(one));
    const auto expect = [&](const TranslationOptions& options, const auto& expected) {
      LineTranslator translator(Context(2), *loaded.model, loaded.vocabulary, options, "lines");
      for (std::uint64_t n = 0; n < lines.size(); ++n) translator.add({lines[n], n + 1});
      const auto found = translator.translate();
      for (std::size_t n = 0; n < lines.size(); ++n) {
        EXPECT_EQ(found[n][0].ids, expected[n]) << n;
        EXPECT_EQ(found[n][0].text, t5_text(expected[n]));
        const bool has_room = std::ssize(expected[n]) < loaded.search.most_tokens;
        EXPECT_EQ(found[n][0].tokens, std::ssize(expected[n]) + (has_room ? 1 : 0));
      }
    };
    TranslationOptions options{.search = loaded.search, .max_ratio = 1000};
    expect(options, one.searched);
    options.search.beam = 1;
    expect(options, one.greedy);
  }
}

TEST_F(ForeignLines, OfT5AreWrittenInAProgram) {
  const GoldenT5& golden = golden_t5("a gate and one table");
  T5Files(golden).write(folder_ / "model");
  EXPECT_EQ(models::kind_of(folder_ / "model"), models::Kind::kTranslator);
  const models::Translator translator(folder_ / "model", {.context = Context(1)});
  std::vector<std::string> lines, expected;
  for (const std::size_t n : {2, 4, 5}) {  // whose texts end before they are much longer
    lines.push_back(t5_text(kT5Sources[n]));
    expected.push_back(t5_text(golden.searched[n]));
  }
  EXPECT_EQ(translator.translate(lines), expected);
}

TEST_F(ForeignLines, BlanksAtTheEndsAreLeftOut) {
  MarianFiles files("a table for each side");
  files.set("target_vocab.json", std::string(kSpaceSymbol) + letter_of(18), "");
  files.set("target_vocab.json", std::string(kSpaceSymbol), "18");
  const LoadedTranslator loaded = load(files);
  const auto made =
      translated(loaded, {.search = loaded.search}, {text_of(kMarianSources[1])});  // 2 18 18 18
  EXPECT_EQ(made[0], letter_of(2));
}

// A line in pieces has the code of its language before each.
TEST_F(ForeignLines, PiecesOfALineHaveItsLanguage) {
  MarianFiles files("a table for each side");
  files.set("vocab.json", std::string(kSpaceSymbol) + "w", "");
  files.set("vocab.json", ">>fra<<", "22");
  const LoadedTranslator loaded = load(files);
  TranslationOptions options{.search = loaded.search, .long_lines = LongLines::kSplit};
  std::string words, first, second;
  for (int n = 0; n < 26; ++n) (n < 13 ? first : second) += " " + letter_of(2 + n % 9);
  const auto whole = translated(loaded, options, {">>fra<<" + first + second});
  const auto pieces = translated(loaded, options, {">>fra<<" + first, ">>fra<<" + second});
  std::string joined = pieces[0];
  for (const std::string& one : {pieces[1]}) {
    if (!joined.empty() && !one.empty()) joined += " ";
    joined += one;
  }
  EXPECT_EQ(whole[0], joined);
  EXPECT_NE(whole[0], translated(loaded, options, {first + second})[0]);
}

TEST_F(ForeignLines, AreScored) {
  const LoadedTranslator loaded = load(MarianFiles("one table"));
  EXPECT_EQ(kind_of_model(folder_ / "model"), ModelKind::kTranslator);
  SentencePairs pairs;
  pairs.source = {"e h", "d c o", ""};
  pairs.target = {"c", "d", "d"};
  const TranslatorScore score = evaluate_translator(Context(1), loaded, pairs);
  EXPECT_EQ(score.pairs, 2);
  EXPECT_EQ(score.tokens, 4);
  EXPECT_EQ(score.empty, 1);
}

}  // namespace
}  // namespace fovea
