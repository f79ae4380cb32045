// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain.h"

#include <gmock/gmock.h>

#include <numeric>

#include "fovea/explain/shown.h"
#include "fovea/task/tag/run.h"
#include "fovea/task/tag/tag_predictor.h"
#include "fovea/task/tag/tagger.h"
#include "tests/support/throws.h"
#include "tests/task/tag/untrained_tagger.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

Explanation explained(const LoadedTagger& model, std::string_view text,
                      const ExplainOptions& options = {}) {
  return explain_text(Context(2), model, text, options);
}

TEST(ExplainTagger, SaysWhatThePredictorSaysBesideTheWords) {
  const LoadedTagger model = untrained_two_columns("attention,transformer");
  const Explanation e = explained(model, "ada saw 12, ada");
  EXPECT_EQ(e.kind.english, "tagger");
  EXPECT_THAT(e.tokens, ElementsAre("ada", "saw", "12", ",", "ada"));
  ASSERT_THAT(e.layers, SizeIs(2));
  EXPECT_THAT(e.layers[1].weights, SizeIs(2 * 5 * 5));
  EXPECT_NEAR(std::accumulate(e.layers[0].weights.begin(), e.layers[0].weights.end(), 0.0), 10,
              1e-5);
  TagPredictor predictor(Context(1), model);
  const auto found = predictor.tag({&e.tokens, 1}, TagProbabilities::kYes)[0];
  ASSERT_THAT(e.tags, SizeIs(2));
  EXPECT_EQ(e.tags[0].column, "3");
  for (std::size_t c = 0; c < 2; ++c) {
    for (std::size_t w = 0; w < 5; ++w) {
      const std::int32_t tag = found[c].tags[w];
      EXPECT_EQ(e.tags[c].tags[w], model.tags[c].name(tag));
      const auto at =
          w * static_cast<std::size_t>(model.tags[c].size()) + static_cast<std::size_t>(tag);
      EXPECT_EQ(static_cast<float>(e.tags[c].probabilities[w]), found[c].probabilities[at]);
    }
  }
  EXPECT_THAT(e.notes[0].english,
              HasSubstr("2 of 5 tokens are words that the model does not know"));
}

TEST(ExplainTagger, HasTheSameBitsForAnyNumberOfThreads) {
  const LoadedTagger model = untrained_tagger("conv3,attention,bilstm:16");
  const auto numbers = [&](int threads) {
    const Explanation e = explain_text(Context(threads), model, "ada saw 1 2 3 4", {});
    std::vector<float> all = e.layers[0].weights;
    all.insert(all.end(), e.saliency.values.begin(), e.saliency.values.end());
    all.insert(all.end(), e.tags[0].probabilities.begin(), e.tags[0].probabilities.end());
    return all;
  };
  EXPECT_EQ(numbers(1), numbers(2));
  EXPECT_EQ(numbers(1), numbers(8));
}

// A model that reads nothing but the table of words: what a score gains as the row of a word grows.
TEST(ExplainTagger, SaliencyIsTheGradientTimesWhatIsRead) {
  LoadedTagger model = untrained_tagger("attention");
  TaggerConfig& config = model.settings.model;
  config.character_reader = CharacterReader::kNone;
  config.shape_width = 0;
  model.model = std::make_unique<Tagger>(config, crf_rules(config, model.tags), 3);
  model.vocabulary.characters.reset();
  const Explanation e = explained(model, "ada saw 1", {.target = "I-x", .token = 3});
  EXPECT_EQ(e.token, 3);
  EXPECT_EQ(filled(e.saliency.of, QuoteLength::kShort).english,
            "the score of \"I-x\" for token 3, \"1\", before the CRF");
  Parameter* const table = model.model->parameters()[0];
  ASSERT_EQ(table->name, "words.tokens");
  const auto score_with = [&](const std::string& word, double factor) {
    const auto row = table->value.rows<float>()[model.vocabulary.word(word)];
    const std::vector<float> before(row, row + config.word_width);
    for (index c = 0; c < config.word_width; ++c) row[c] *= static_cast<float>(factor);
    ++table->version;
    TaggedWords read;
    append(read, model.vocabulary, e.tokens);
    TaggedBatch batch;
    append(batch, read, 0);
    Tape tape(Context(1), TapeMode::kInference);
    const TagScores scores = model.model->scores(tape, view_of(batch).rows);
    const double score = scores.logits[0].value<float>()[2][1];
    std::copy(before.begin(), before.end(), row);
    ++table->version;
    return score;
  };
  for (std::size_t w = 0; w < 3; ++w) {
    const double slope = (score_with(e.tokens[w], 1.05) - score_with(e.tokens[w], 0.95)) / 0.1;
    EXPECT_NEAR(e.saliency.values[w], slope, 2e-3 * std::max(1.0, std::abs(slope))) << w;
  }
}

TEST(ExplainTagger, ExplainsTheTagThatIsAskedFor) {
  const LoadedTagger model = untrained_two_columns("attention");
  const Explanation one = explained(model, "ada saw 1", {.target = "NOUN", .column = "2"});
  EXPECT_EQ(filled(one.saliency.of, QuoteLength::kShort).english,
            "the score of \"NOUN\" for token 1, \"ada\"");
  const Explanation other = explained(model, "ada saw 1", {.target = "VERB", .column = "2"});
  EXPECT_NE(one.saliency.values, other.saliency.values);
  const Explanation rollout =
      explained(model, "ada saw 1", {.saliency = SaliencyMethod::kRollout, .token = 2});
  EXPECT_NEAR(rollout.saliency.values[0] + rollout.saliency.values[1] + rollout.saliency.values[2],
              1, 1e-5);
  EXPECT_EQ(filled(rollout.saliency.of, QuoteLength::kShort).english,
            "the row of token 2, \"saw\"");
  const Explanation none = explained(model, "ada saw 1", {.saliency = SaliencyMethod::kNone});
  EXPECT_THAT(none.saliency.values, SizeIs(0));
  EXPECT_EQ(none.token, 0);
}

TEST(ExplainTagger, ReadsASentenceOfLines) {
  LoadedTagger model = untrained_tagger("attention");
  EXPECT_THAT(explained(model, "ada O\nsaw. O\n\n").tokens, ElementsAre("ada", "saw."));
  EXPECT_THAT(explained(model, "ada\tO").tokens, ElementsAre("ada"));
  EXPECT_THAT(explained(model, "ada saw.\n").tokens, ElementsAre("ada", "saw", "."));
  EXPECT_THROWS(explained(model, "ada O\n\nsaw O\n"), kInputFormat,
                "text:3: expected one sentence, got another");
  EXPECT_THROWS(explained(model, "ada O\nsaw\n"), kInputFormat, "text:2: expected 2 columns");
  model.settings.text.table.word_column = 2;
  EXPECT_THAT(explained(model, "1 ada\n2 saw\n").tokens, ElementsAre("ada", "saw"));
  model.settings.text.table.word_column = 1;
  model.settings.text.train = {"a.conllu"};
  const std::string row = "\tada\t_\t_\t_\t_\t_\t_\t_\t_\n";
  EXPECT_THAT(explained(model, "# x\n1" + row + "2" + row).tokens, ElementsAre("ada", "ada"));
  EXPECT_THAT(explained(model, "ada\nsaw").tokens, ElementsAre("ada", "saw"));
}

// Without attention: what each word counts for, and no weights.
TEST(ExplainTagger, ShowsWhatWordsCountForWithoutAttention) {
  for (const char* const encoder : {"bilstm:8", "conv3"}) {
    const Explanation e = explained(untrained_tagger(encoder), "ada saw ada", {.token = 2});
    EXPECT_FALSE(e.has_weights());
    ASSERT_THAT(e.saliency.values, SizeIs(3));
    for (const float value : e.saliency.values) EXPECT_NE(value, 0);
    const std::string text = explanation_text(e, {}, Terminal{}, 80);
    EXPECT_THAT(text, HasSubstr("gradient x input"));
    EXPECT_THAT(text, Not(HasSubstr("ttention weights")));
    EXPECT_THAT(draw_attention_page(page_of(e, "names", PageLanguage::kEnglish)),
                HasSubstr("What each token counts for"));
  }
}

TEST(ExplainTagger, RefusesWhatCannotBeExplained) {
  const LoadedTagger model = untrained_tagger("attention");
  EXPECT_THROWS(explained(untrained_tagger("bilstm:8"), "ada", {SaliencyMethod::kRollout}),
                kOptionValue, "the model has no attention");
  LoadedTagger linear = untrained_tagger("");
  TaggerConfig& config = linear.settings.model;
  config.linear = true;
  config.word_width = config.shape_width = 0;
  config.character_reader = CharacterReader::kNone;
  linear.model = std::make_unique<Tagger>(config, crf_rules(config, linear.tags), 3);
  EXPECT_THROWS(explained(linear, "ada"), kModelWrongKind,
                "the tagger reads hashed features alone");
  EXPECT_THROWS(explained(model, ""), kInputTooSmall, "no word");
  EXPECT_THROWS(explained(model, " \n"), kInputTooSmall, "no word");
  EXPECT_THROWS(explained(model, "ada \xff"), kEncoding, "text:1:5");
  std::string longer;
  for (int i = 0; i < 21; ++i) longer += "ada ";
  EXPECT_THROWS(explained(model, longer), kShape, "has 21 words; the model sees at most 20");
  EXPECT_THROWS(explained(model, "ada", {.token = 2}), kOptionValue, "--token: 2 is not 0 to 1");
  EXPECT_THROWS(explained(model, "ada", {.token = -1}), kOptionValue, "--token");
  EXPECT_THROWS(explained(model, "ada", {.target = "B-y"}), kOptionValue, "no tag B-y");
  EXPECT_THROWS(explained(model, "ada", {.column = "2"}), kOptionValue, "one tag column");
  EXPECT_THROWS(explained(untrained_two_columns("attention"), "ada", {.column = "4"}), kOptionValue,
                "no tag column 4");
  EXPECT_THROWS(explained(model, "ada", {.saliency = SaliencyMethod::kRollout, .target = "O"}),
                kOptionValue, "--target: has no effect");
}

TEST(ExplainTagger, ASegmenterReadsCharacters) {
  LoadedTagger model = untrained_tagger("attention", {"B", "E", "M", "S"}, TagScheme::kBmes);
  model.settings.text.task = TagTask::kSegment;
  const Explanation e = explained(model, "a d\ns");
  EXPECT_EQ(e.kind.english, "segmenter");
  EXPECT_THAT(e.tokens, ElementsAre("a", "d", "s"));
  EXPECT_THAT(e.tags[0].tags, SizeIs(3));
}

TEST(ExplainTagger, TextAndPageHaveTheTags) {
  const Explanation e = explained(untrained_two_columns("attention"), "ada saw 1");
  const std::string text = explanation_text(e, {}, Terminal{}, 80);
  for (std::size_t w = 0; w < 3; ++w) {
    std::string line = "    " + std::to_string(w + 1) + " " + e.tokens[w];
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, HasSubstr("column 3"));
  EXPECT_THAT(text, HasSubstr(fmt::format("{:.4f}", e.tags[1].probabilities[2])));
  // Where two columns do not fit, one comes behind the other.
  const std::string narrow = explanation_text(e, {}, Terminal{}, 60);
  EXPECT_LT(narrow.find("column 3"), narrow.find("    3 1"));
  EXPECT_LT(narrow.find("    3 1"), narrow.find("column 2"));
  const AttentionPage page = page_of(e, "model", PageLanguage::kChinese);
  ASSERT_THAT(page.labels, SizeIs(2));
  EXPECT_EQ(page.labels[0].name, "列 3");
  EXPECT_EQ(page.labels[1].labels, e.tags[1].tags);
  EXPECT_EQ(page.facts[1].second, "标注器");
  EXPECT_FALSE(draw_attention_page(page).empty());
}

}  // namespace
}  // namespace fovea
