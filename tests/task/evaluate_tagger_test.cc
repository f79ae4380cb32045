// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/evaluate_tagger.h"

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
  const TaggerScore result = evaluate_tagger(Context(2), model, {&file, 1}, options, said);
  if (notes != nullptr) *notes = said;
  return result;
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
