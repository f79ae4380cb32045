// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/line_translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/throws.h"
#include "tests/task/translate/tiny.h"
#include "tests/text/tokenizer/pieces.h"

namespace fovea {
namespace {

using Results = std::vector<std::vector<TranslatedText>>;

std::vector<std::string> some_lines() {
  Random random(3, RandomUse::kTest);
  std::vector<std::string> lines;
  for (index n = 0; n < 30; ++n) {
    std::string line;
    for (index c = random.below(20); c > 0; --c) line += static_cast<char>('a' + random.below(6));
    lines.push_back(line);
  }
  return lines;
}

Results translate(const LoadedTranslator& loaded, const std::vector<std::string>& lines,
                  const TranslationOptions& options, int threads = 2, index rows = 256) {
  LineTranslator translator(Context(threads), *loaded.model, loaded.vocabulary, options, "test",
                            rows);
  for (std::size_t n = 0; n < lines.size(); ++n) translator.add({lines[n], n + 1});
  return translator.translate();
}

std::vector<std::string> texts_of(const Results& results) {
  std::vector<std::string> texts;
  for (const auto& line : results) {
    for (const TranslatedText& made : line) {
      texts.push_back(fmt::format("{} {} {}", made.text, made.score, made.log_probability));
    }
  }
  return texts;
}

// Alone or among others, in any batch, with any number of threads: the same bits.
TEST(LineTranslator, NothingDependsOnBatchesOrThreads) {
  const LoadedTranslator loaded = untrained_translator();
  const std::vector<std::string> lines = some_lines();
  for (const bool sample : {false, true}) {
    TranslationOptions options;
    options.search.nbest = 2;
    options.sample = sample;
    const Results together = translate(loaded, lines, options, 1);
    ASSERT_EQ(together.size(), lines.size());
    EXPECT_EQ(texts_of(translate(loaded, lines, options, 3)), texts_of(together));
    EXPECT_EQ(texts_of(translate(loaded, lines, options, 2, 10)), texts_of(together));
    LineTranslator one(Context(2), *loaded.model, loaded.vocabulary, options, "test");
    Results alone;
    for (std::size_t n = 0; n < lines.size(); ++n) {
      one.add({lines[n], n + 1});
      alone.push_back(one.translate()[0]);
    }
    EXPECT_EQ(texts_of(alone), texts_of(together));
    // What is kept of small batches and of large ones, of all threads and of one, changes nothing.
    LineTranslator again(Context(2), *loaded.model, loaded.vocabulary, options, "test", 10);
    for (int round = 0; round < 3; ++round) {
      for (std::size_t n = 0; n < lines.size(); ++n) again.add({lines[n], n + 1});
      EXPECT_EQ(texts_of(again.translate()), texts_of(together));
      again.add({lines[1], 2});
      EXPECT_EQ(texts_of(again.translate()), texts_of({together[1]}));
    }
  }
}

TEST(LineTranslator, AnEmptyLineStaysEmpty) {
  const LoadedTranslator loaded = untrained_translator();
  const Results results = translate(loaded, {"", "ab", "", "  "}, {});
  ASSERT_EQ(results.size(), 4u);
  for (const std::size_t n : {0, 2, 3}) {
    EXPECT_EQ(results[n].size(), 1u);
    EXPECT_EQ(results[n][0].text, "");
    EXPECT_EQ(results[n][0].tokens, 0);
  }
  EXPECT_TRUE(translate(loaded, {}, {}).empty());
}

// Of lines that cannot be translated none waits.
TEST(LineTranslator, GoesOnAfterAnError) {
  const LoadedTranslator loaded = untrained_translator();
  for (Parameter* p : loaded.model->parameters()) {
    std::fill_n(p->value.vec<float>().data, p->value.size(), NAN);
    ++p->version;
  }
  LineTranslator translator(Context(1), *loaded.model, loaded.vocabulary, {}, "test");
  translator.add({"ab", 1});
  EXPECT_THROWS(translator.translate(), kModelDamaged, "");
  EXPECT_EQ(translator.waiting(), 0);
  EXPECT_TRUE(translator.translate().empty());
}

TEST(LineTranslator, LongLinesAreRefusedOrSplitNeverCut) {
  const LoadedTranslator loaded = untrained_translator();
  const std::string line(50, 'a');
  TranslationOptions options;
  LineTranslator refuses(Context(1), *loaded.model, loaded.vocabulary, options, "file.txt");
  refuses.add({"ab", 1});
  EXPECT_THROWS(refuses.add({line, 2}), kInputFormat, "file.txt:2: the line has 50 tokens");
  EXPECT_EQ(refuses.translate().size(), 1u);
  options.long_lines = LongLines::kSplit;
  options.alignments = true;
  LineTranslator splits(Context(1), *loaded.model, loaded.vocabulary, options, "file.txt");
  splits.add({line, 1});
  const auto found = splits.translate();
  EXPECT_EQ(splits.split(), 1);
  ASSERT_EQ(found[0].size(), 1u);
  // In three pieces, of 16, 17 and 17 tokens.
  const Results pieces = translate(loaded, {std::string(16, 'a'), std::string(17, 'a')}, options);
  EXPECT_EQ(found[0][0].text, pieces[0][0].text + pieces[1][0].text + pieces[1][0].text);
  for (const auto& [source, target] : found[0][0].alignment) EXPECT_LT(source, 50);
}

// A line is cut between words where pieces have room for it, and its text is that of all tokens.
TEST(LineTranslator, PiecesAreWholeWords) {
  TranslationOptions options;
  options.long_lines = LongLines::kSplit;
  LoadedTranslator loaded = untrained_translator();
  const Results whole = translate(loaded, {"abc def abc def abc def abc"}, options);
  const Results pieces = translate(loaded, {"abc def abc ", "def abc def abc"}, options);
  EXPECT_EQ(whole[0][0].text, pieces[0][0].text + pieces[1][0].text);
  loaded.vocabulary.of_target = piece_tokenizer(piece_model_of(lines_of_parts(200)));
  loaded.settings.model.target_vocabulary = loaded.vocabulary.target().vocabulary_size();
  loaded.model = std::make_unique<Translator>(loaded.settings.model, 3);
  const Results subwords = translate(loaded, {std::string(50, 'a'), "abcdef"}, options);
  for (const auto& line : subwords) {
    EXPECT_EQ(line[0].text, loaded.vocabulary.target().decode(line[0].ids));
  }
  EXPECT_GT(subwords[0][0].ids.size(), 24u) << "several pieces";
}

TEST(LineTranslator, TheBestComeFirstAndNoTranslationIsTooLong) {
  const LoadedTranslator loaded = untrained_translator();
  TranslationOptions options;
  options.search.nbest = 4;
  options.max_ratio = 0.5;
  for (const auto& line : translate(loaded, some_lines(), options)) {
    for (std::size_t n = 0; n < line.size(); ++n) {
      EXPECT_LE(line[n].tokens, 10 + 10);
      EXPECT_LE(line[n].score, line[n == 0 ? 0 : n - 1].score);
    }
  }
}

TEST(LineTranslator, SamplesDifferAndRepeat) {
  const LoadedTranslator loaded = untrained_translator();
  TranslationOptions options;
  options.sample = true;
  options.search.nbest = 3;
  const Results first = translate(loaded, {"abc"}, options);
  EXPECT_EQ(first[0].size(), 3u);
  EXPECT_NE(first[0][0].text, first[0][1].text);
  EXPECT_EQ(texts_of(translate(loaded, {"abc"}, options)), texts_of(first));
  options.seed = 2;
  EXPECT_NE(texts_of(translate(loaded, {"abc"}, options)), texts_of(first));
}

TEST(LineTranslator, ALayerToAlignByMustBeThere) {
  const LoadedTranslator loaded = untrained_translator();
  TranslationOptions options;
  options.alignments = true;
  options.alignment_layer = 3;
  EXPECT_THROWS(LineTranslator(Context(1), *loaded.model, loaded.vocabulary, options, "x"),
                kOptionValue, "--alignment-layer");
}

// A model that has learned to translate numbers word for word does so, and aligns them so.
TEST(LineTranslator, TranslatesWhatItHasLearned) {
  const TestFolder folder;
  const LoadedTranslator loaded = load_translator(trained(folder, tiny_translator(folder)));
  TranslationOptions options;
  options.alignments = true;
  const Results results = translate(loaded, {"one two three", "four one"}, options);
  EXPECT_EQ(results[0][0].text, "eins zwei drei");
  EXPECT_EQ(results[1][0].text, "vier eins");
  EXPECT_EQ(results[0][0].alignment.size(), 3u);
}

// Each score is that without coverage, and what the attention to its source adds.
TEST(LineTranslator, CoverageIsThatOfTheAttentionToTheSource) {
  const LoadedTranslator loaded = untrained_translator();
  const Tokenizer &of_source = loaded.vocabulary.source(), &of_target = loaded.vocabulary.target();
  const std::vector<std::string> lines = {"abcd", "fe", "a"};
  TranslationOptions options;
  options.search = {.beam = 4, .nbest = 3, .coverage_penalty = 0.7};
  for (const index layer : {0, 2}) {  // 0: the first of two
    options.alignment_layer = layer;
    const Results found = translate(loaded, lines, options);
    for (std::size_t s = 0; s < lines.size(); ++s) {
      std::vector<token> source = of_source.encode(lines[s]);
      source.push_back(of_source.special().end);
      ASSERT_EQ(found[s].size(), 3u);
      for (const TranslatedText& made : found[s]) {
        std::vector<token> target = of_target.encode(made.text);
        target.insert(target.begin(), of_target.special().begin);
        const std::vector<double> weights = attention_to_source(
            Context(1), *loaded.model, {source, target}, std::max<index>(layer - 1, 0));
        ASSERT_EQ(weights.size(), target.size() * lines[s].size());
        std::vector<double> sums(lines[s].size());
        for (std::size_t n = 0; n < weights.size(); ++n) sums[n % sums.size()] += weights[n];
        double coverage = 0;
        for (const double sum : sums) coverage += 0.7 * std::log(std::min(sum, 1.0));
        EXPECT_NEAR(made.score,
                    made.log_probability / length_divisor(options.search, made.tokens) + coverage,
                    1e-9);
        EXPECT_LE(made.score, found[s][0].score);
      }
    }
  }
  EXPECT_EQ(texts_of(translate(loaded, lines, options, 1)),
            texts_of(translate(loaded, lines, options, 3, 4)));
  options.sample = true;
  EXPECT_THROWS(check_options(options), kOptionValue, "--coverage-penalty");
}

}  // namespace
}  // namespace fovea
