// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/evaluate.h"

#include <gmock/gmock.h>

#include "tests/support/throws.h"
#include "tests/task/tag/tiny.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TaggerScore score(const LoadedTagger& model, const std::string& file, index mistakes = 0,
                  std::vector<std::string>* notes = nullptr) {
  std::vector<std::string> said;
  const TaggerTestOptions options{.table = model.settings.text.table, .mistakes = mistakes};
  const auto results = evaluate_tagger(Context(2), model, {&file, 1}, options, said);
  if (notes != nullptr) *notes = said;
  return results.at(0);
}

TEST(EvaluateTagger, CountsSpansTagsAndMistakes) {
  const TestFolder folder;
  const LoadedTagger model = load_tagger(trained(folder, tiny_tagger(folder)));
  const TaggerScore whole = score(model, write_file(folder, "t.conll", tiny_sentences()));
  EXPECT_EQ(whole.spans.micro.f1.value, 1);
  EXPECT_THAT(whole.types, ElementsAre("person", "place"));
  EXPECT_THAT(whole.spans.support, ElementsAre(30, 30));

  std::vector<std::string> notes;
  const std::string file = write_file(
      folder, "u.conll", "Ada S-person\nsaw O\n\nNew B-place\nYork E-place\nis S-city\n");
  const TaggerScore other = score(model, file, 5, &notes);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("whose tag the model does not know: 1")));
  EXPECT_EQ(other.unknown_tags, 1);
  EXPECT_EQ(other.spans.accuracy.value, 4.0 / 5);
  EXPECT_EQ(other.spans.micro.recall.value, 2.0 / 3);
  EXPECT_EQ(other.spans.micro.precision.value, 1);
  ASSERT_EQ(other.mistakes.size(), 1u);
  EXPECT_EQ(other.mistakes[0].line, 4);
  EXPECT_THAT(other.mistakes[0].truth, ElementsAre("B-place", "I-place", "B-city"));
  EXPECT_THROWS(score(model, write_file(folder, "v.conll", "Ada B-person\nsaw X\n")), kInputFormat,
                "v.conll:2: expected a tag of the scheme bio, got X");
}

TEST(EvaluateTagger, ScoresEachColumnAndTheirMean) {
  const TestFolder folder;
  const LoadedTagger model = load_tagger(trained(folder, tiny_columns(folder)));
  std::vector<std::string> notes;
  TaggerTestOptions options{.table = model.settings.text.table};
  const std::string file =
      write_file(folder, "t.conll", "Ada N B-person\nsaw V O\n\nNew V B-place\nYork N O\nis V O\n");
  const auto scores = evaluate_tagger(Context(1), model, {&file, 1}, options, notes);
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_EQ(scores[0].column, "2");
  EXPECT_FALSE(scores[0].has_spans);
  EXPECT_EQ(scores[0].spans.accuracy.value, 4.0 / 5);  // New is a noun to the model
  EXPECT_EQ(scores[1].spans.micro.f1.value, 1.0 / 2);  // and New York is a place
  EXPECT_NEAR(mean_score(scores), 0.65, 1e-12);
  const Json json = json_of_scores(scores);
  EXPECT_NEAR(json.at("mean").number(), 0.65, 1e-12);
  EXPECT_EQ(json.at("columns").array()[1].at("column").text(), "3");
  EXPECT_EQ(json_of_scores({scores.data(), 1}).find("columns"), nullptr);
  options.table.tag_column = {3};
  EXPECT_THROWS(evaluate_tagger(Context(1), model, {&file, 1}, options, notes), kOptionValue,
                "t.conll: expected 2 tag columns (2, 3), as the model has, got 1");
  options.table.tag_column = {2, 3};
  const std::string bad = write_file(folder, "u.conll", "Ada N B-person\nsaw V X\n");
  EXPECT_THROWS(evaluate_tagger(Context(1), model, {&bad, 1}, options, notes), kInputFormat,
                "u.conll:2: expected a tag of the scheme bio in column 3, got X");
}

TEST(EvaluateTagger, CountsWordsOfASegmenter) {
  const TestFolder folder;
  const LoadedTagger model = load_tagger(trained(folder, tiny_segmenter(folder)));
  const TaggerScore found =
      score(model, write_file(folder, "t.seg", "我们 在 北京\n他 学习 计算机\n我们 在北京\n"));
  ASSERT_TRUE(found.segmentation.has_value());
  EXPECT_FALSE(found.has_spans);
  EXPECT_EQ(found.segmentation->words, 8);
  EXPECT_EQ(found.segmentation->unknown, 1);
  EXPECT_EQ(found.segmentation->unknown_recall.value, 0);
  EXPECT_EQ(found.segmentation->known_recall.value, 1);
  EXPECT_EQ(found.words, 16);
}

}  // namespace
}  // namespace fovea
