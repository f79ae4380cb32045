// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "fovea/base/file.h"
#include "fovea/text/vocabulary.h"
#include "tests/support/shared_data.h"
#include "tests/support/throws.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

TEST(Prepare, ReadsLearnsAndFillsIn) {
  const TestFolder folder;
  const LanguageModelRun run = prepare_run(tiny_settings(folder));
  EXPECT_EQ(run.settings.model.vocabulary, run.tokenizer->vocabulary_size());
  EXPECT_EQ(run.settings.model.head_dim, 8);
  EXPECT_EQ(run.settings.model.ff, 64);
  EXPECT_EQ(run.text_bytes, tiny_text().size());
  ASSERT_TRUE(run.validation);
  EXPECT_NEAR(static_cast<double>(run.validation->sequences().target_count()),
              0.1 * static_cast<double>(tiny_text().size()), 2);
}

TEST(Prepare, WithoutAFractionNothingValidates) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.valid_fraction = 0;
  EXPECT_FALSE(prepare_run(settings).validation);
}

TEST(Prepare, NotesAWarmUpThatTakesMostOfTheRun) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.warmup = 15;
  EXPECT_THAT(prepare_run(settings).notes, testing::IsEmpty());
  settings.recipe.warmup = 16;
  EXPECT_THAT(prepare_run(settings).notes,
              testing::ElementsAre(testing::StartsWith(
                  "the learning rate rises for 16 of the 30 updates; --warmup 3")));
  settings.recipe.stop_after = "1h";
  EXPECT_THAT(prepare_run(settings).notes, testing::IsEmpty());
}

// What makes another run is seen.
TEST(Prepare, IdentityIsThatOfTheRun) {
  const TestFolder folder;
  const LanguageModelSettings settings = tiny_settings(folder);
  const RunIdentity base = prepare_run(settings).identity;
  const auto changed = [&](auto change) {
    LanguageModelSettings other = settings;
    change(other);
    return prepare_run(other).identity;
  };
  EXPECT_NE(changed([](auto& s) { s.model.width = 32; }).model, base.model);
  EXPECT_EQ(changed([](auto& s) { s.text.batch_size = 5; }).data, base.data);
  EXPECT_NE(changed([](auto& s) { s.text.data = "lines"; }).data, base.data);
  EXPECT_NE(changed([](auto& s) { s.text.valid_fraction = 0.2; }).data, base.data);
  const auto lines = [&](index max_length, Truncate end) {
    return changed([&](auto& s) {
             s.text.data = "lines", s.text.max_length = max_length, s.text.truncate = end;
           })
        .data;
  };
  EXPECT_NE(lines(5, Truncate::kEnd), lines(0, Truncate::kEnd));
  EXPECT_NE(lines(5, Truncate::kEnd), lines(5, Truncate::kFront));
  EXPECT_NE(changed([](auto& s) { s.text.lower = true; }).tokenizer, base.tokenizer);
  EXPECT_NE(changed([](auto& s) { s.text.marks = false; }).tokenizer, base.tokenizer);
  EXPECT_NE(changed([](auto& s) { s.text.tokenizer = "byte"; }).tokenizer, base.tokenizer);
}

TEST(Prepare, SizesAreCheckedBeforeAnyFileIsRead) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.train = {"nowhere.txt"};
  EXPECT_THROWS(prepare_run(settings), kMissingInput, "nowhere.txt");
  settings.model.heads = 3;
  EXPECT_THROWS(prepare_run(settings), kShape, "3");
}

TEST(Prepare, CostCountsWhatTheModelHas) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.accumulate = 3;
  const LanguageModelRun run = prepare_run(settings);
  const RunCost cost = cost_of(run);
  const LanguageModel model(run.settings.model, 1);
  index parameters = 0;
  for (const Parameter* p : model.parameters()) parameters += p->value.size();
  EXPECT_EQ(cost.parameters, parameters);
  EXPECT_EQ(cost.updates, 30);
  EXPECT_EQ(cost.tokens_per_update, 4 * 12 * 3);
}

TEST(Prepare, LearnsWordsAndNotesWhatIsUnknown) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.tokenizer = "word";
  settings.text.data = "lines";
  std::ofstream(folder / "text.txt") << "The cat sees\nthe dog sees\nthe\nTHE cat\n";
  std::ofstream(folder / "valid.txt") << "the bird\n";
  settings.text.valid = {(folder / "valid.txt").string()};
  settings.text.lower = true;
  settings.text.marks = false;
  settings.text.max_length = 2;
  const LanguageModelRun run = prepare_run(settings);
  EXPECT_EQ(run.settings.model.vocabulary, 2 + 3);
  EXPECT_EQ(word_list_text(run.tokenizer->data()), "<pad>\n<unk>\nthe\ncat\nsees\n");
  EXPECT_THAT(
      run.notes,
      testing::ElementsAre(
          "training text: lines of a single token, which predict nothing: 1; they are left out",
          "training text: lines of more than 2 tokens: 2 of 3; their end is dropped",
          "unknown words: 16.7 % of the training text, 50.0 % of the validation text"));
  settings.text.min_count = 9;
  EXPECT_THROWS(prepare_run(settings), kInputTooSmall, "none of its 9 words occurs 9 times");
}

TEST(Prepare, TakesTheWordsOfAFile) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.tokenizer = "word";
  settings.text.vocabulary = (folder / "v.txt").string();
  EXPECT_THROWS(prepare_run(settings), kMissingInput, "v.txt");
  std::ofstream(folder / "v.txt") << "<pad>\n<unk>\n<s>\n</s>\nmoon\ncat\nowl\n";
  const LanguageModelRun run = prepare_run(settings);
  EXPECT_EQ(run.settings.model.vocabulary, 7);
  EXPECT_EQ(run.tokenizer->encode("cat moon owl sea"), (std::vector<token>{5, 4, 6, 1}));
  settings.text.marks = false;  // then two of the lines are words
  EXPECT_EQ(prepare_run(settings).settings.model.vocabulary, 7);
  std::ofstream(folder / "v.txt") << "moon\n";
  EXPECT_THROWS(prepare_run(settings), kInputFormat, "v.txt:1: expected <pad>, got 'moon'");
}

// Spec T6, T7 (shared/data/little_prince/README.md): the vocabulary and the ids of the book's
// chapter, which were made by NLTK and Python. The text is not ours to keep, so it lies beside the
// repository or nowhere.
TEST(Prepare, SourceHasTheIdsOfTheBook) {
  const std::filesystem::path data = shared_data("little_prince");
  if (data.empty()) GTEST_SKIP() << "no texts of the sources beside the repository";
  LanguageModelSettings settings;
  apply_preset("source", settings);
  settings.text.train = {(data / "sentences.tok.txt").string()};
  settings.text.valid_fraction = 0;
  const LanguageModelRun run = prepare_run(settings);
  EXPECT_EQ(run.settings.model.vocabulary, 1078);
  EXPECT_EQ(parameter_count(run.settings.model), 480438);
  EXPECT_EQ(word_list_text(run.tokenizer->data()), read_file(data / "vocab.txt"));
  const Sequences& sequences = run.training->sequences();
  EXPECT_EQ(sequences.target_count(), 18324);
  EXPECT_EQ(sequences.single_lines, 1);
  EXPECT_EQ(sequences.truncated_lines, 84);
  std::string rows;
  for (const auto [start, targets] : sequences.slices) {
    for (index i = 0; i < 40; ++i) {
      const token id = i <= targets ? sequences.stream[static_cast<std::size_t>(start + i)] : 0;
      rows += std::to_string(id) + (i == 39 ? '\n' : ' ');
    }
  }
  EXPECT_TRUE(rows == read_file(data / "ids40.txt"));
  settings.text.batch_size = 16;
  EXPECT_EQ(prepare_run(settings).training->updates_per_epoch(), 68);
}

}  // namespace
}  // namespace fovea
