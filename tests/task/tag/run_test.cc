// SPDX-License-Identifier: Apache-2.0
// Taggers from file to folder, which reaches all of fovea/task/tag, and its parts by themselves.
#include "fovea/task/tag/run.h"

#include <gmock/gmock.h>

#include "fovea/task/load_parts.h"
#include "fovea/task/setting_parts.h"
#include "fovea/task/tag/read_sentences.h"
#include "fovea/task/tag/tag_predictor.h"
#include "fovea/task/tag/tagger.h"
#include "fovea/train/model_folder.h"
#include "tests/support/throws.h"
#include "tests/task/tag/tiny.h"
#include "tests/text/tokenizer/pieces.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TagSet, FindsTheSchemeOfTags) {
  const auto scheme = [](std::vector<std::string> names) { return choice_of(find_scheme(names)); };
  EXPECT_EQ(scheme({"B-x", "I-x", "O"}), SchemeChoice::kBio);
  EXPECT_EQ(scheme({"B-x", "E-x", "S-x"}), SchemeChoice::kBioes);
  EXPECT_EQ(scheme({"B", "M", "E", "S"}), SchemeChoice::kBmes);
  EXPECT_EQ(scheme({"NOUN", "O"}), SchemeChoice::kNone);
  EXPECT_EQ(scheme({"O"}), SchemeChoice::kNone);
  for (const auto& [choice, name] : enum_names(SchemeChoice{})) {
    if (choice == SchemeChoice::kAuto) continue;
    EXPECT_EQ(choice_of(scheme_of(choice)), choice) << name;
  }
}

TEST(TagSet, HasAllTagsOfItsTypes) {
  EXPECT_THAT(complete_tags({"O", "I-x"}, TagScheme::kBio), ElementsAre("B-x", "I-x", "O"));
  EXPECT_THAT(complete_tags({"S-x"}, TagScheme::kBmes), ElementsAre("B-x", "E-x", "M-x", "S-x"));
  EXPECT_THAT(complete_tags({"b", "a"}, std::nullopt), ElementsAre("a", "b"));
  const TagSet tags({"B-x", "I-x", "O"}, TagScheme::kBio);
  EXPECT_EQ(tags.find("I-x"), 1);
  EXPECT_EQ(tags.find("I-y"), -1);
  const CrfRules rules = tags.rules();
  EXPECT_THAT(rules.start, ElementsAre(1, 0, 1));
  EXPECT_THAT(rules.transitions, ElementsAre(1, 1, 1, 1, 1, 1, 1, 0, 1));
  EXPECT_TRUE(TagSet({"a"}, std::nullopt).rules().start.empty());
}

TEST(TaggerVocabulary, ReadsWordsAndTheirCharacters) {
  TaggerVocabulary vocabulary;
  const auto learn = [](std::string_view kind, const std::string& text, bool lower) {
    return tokenizer_kind(kind).make(
        tokenizer_kind(kind).learn(text, "t", {.lower = lower, .marks = false, .min_count = 1}));
  };
  vocabulary.words = learn("word", "ada saw", true);
  vocabulary.characters = learn("char", "Adasaw", false);
  EXPECT_EQ(vocabulary.word("Ada"), vocabulary.word("ada"));
  EXPECT_EQ(vocabulary.word("a b"), kUnknownWord);
  TaggedWords all;
  const std::vector<std::string> words = {"Ada", "x"};
  append(all, vocabulary, words);
  EXPECT_TRUE(all.tags.empty());
  const std::vector<std::vector<std::int32_t>> tags = {{0, kNoTag}, {1, 2}};
  TaggedWords tagged;
  for (int i = 0; i < 2; ++i) append(tagged, vocabulary, words, tags);
  EXPECT_THAT(tagged.tags, ElementsAre(ElementsAre(0, kNoTag, 0, kNoTag), ElementsAre(1, 2, 1, 2)));
  EXPECT_THAT(all.character_starts, ElementsAre(0, 3, 4));
  EXPECT_EQ(all.characters[3], byte_token('x'));
  EXPECT_EQ(pieces_of(0, 3).size(), 0u);
  EXPECT_EQ(pieces_of(7, 3)[2].begin, 6);
  EXPECT_EQ(pieces_of(7, 3)[2].end, 7);
}

TEST(ReadTaggedSet, RepairsConvertsAndCuts) {
  const TestFolder folder;
  TaggerTextOptions options;
  options.train = {write_file(folder, "a", "a I-x\nb I-x\nc I-x\nd O\n\ne B-x\nf O\n")};
  options.valid_fraction = 0;
  options.max_length = 2;
  const TaggedSet set = read_tagged_set(options, 1);
  ASSERT_EQ(set.sentences.size(), 3u);
  EXPECT_THAT(set.sentences[0].tags[0], ElementsAre("B-x", "I-x"));
  EXPECT_THAT(set.sentences[1].tags[0],
              ElementsAre("B-x", "O"));  // a piece begins as the scheme says
  EXPECT_THAT(set.notes, ElementsAre(HasSubstr(":1 (1 span does not begin"),
                                     HasSubstr("longer than --max-length (2): 1;")));
  options.scheme = {SchemeChoice::kBioes};
  options.max_length = 9;
  EXPECT_THAT(read_tagged_set(options, 1).sentences[0].tags[0],
              ElementsAre("B-x", "I-x", "E-x", "O"));
  options.scheme = {SchemeChoice::kNone};
  EXPECT_THAT(read_tagged_set(options, 1).tags[0].names(), ElementsAre("B-x", "I-x", "O"));
}

TEST(ReadTaggedSet, EachColumnHasItsOwnTagsAndScheme) {
  const TestFolder folder;
  TaggerTextOptions options;
  options.train = {write_file(folder, "a", "a N B-x\nb V I-x\nc V O\nd N I-x\n")};
  options.valid = {write_file(folder, "b", "a X B-y\n")};
  options.table.tag_column = {2, 3};
  const TaggedSet set = read_tagged_set(options, 1);
  ASSERT_EQ(set.tags.size(), 2u);
  EXPECT_THAT(set.tags[0].names(), ElementsAre("N", "V"));
  EXPECT_EQ(set.tags[0].scheme(), std::nullopt);
  EXPECT_THAT(set.tags[1].names(), ElementsAre("B-x", "I-x", "O"));
  EXPECT_THAT(set.sentences[0].tags[1], ElementsAre("B-x", "I-x", "O", "B-x"));
  EXPECT_EQ(set.unknown_tags, 2);
  EXPECT_THAT(set.overview, ElementsAre(HasSubstr("tags in column 2: 2, each for a word alone"),
                                        HasSubstr("tags in column 3: 3, scheme bio")));
  EXPECT_THAT(set.notes[0], HasSubstr("tags that break the scheme bio in column 3: 1"));
  options.scheme = {SchemeChoice::kNone, SchemeChoice::kBioes};
  EXPECT_THAT(read_tagged_set(options, 1).sentences[0].tags[1],
              ElementsAre("B-x", "E-x", "O", "S-x"));
  options.scheme = {SchemeChoice::kBio, SchemeChoice::kBio};
  EXPECT_THROWS(read_tagged_set(options, 1), kInputFormat,
                "a:1: expected a tag of the scheme bio in column 2, got N");
  options.scheme.push_back(SchemeChoice::kBio);
  EXPECT_THROWS(read_tagged_set(options, 1), kOptionValue,
                "--scheme: expected one for all tag columns, or one for each of the 2, got 3");
  options.scheme = {SchemeChoice::kAuto};
  options.max_length = 3;
  EXPECT_THAT(read_tagged_set(options, 1).sentences[1].tags,
              ElementsAre(ElementsAre("N"), ElementsAre("B-x")));
  options.train.push_back(write_file(folder, "c.conllu", "1\ta\t_\tN\t_\t_\t0\troot\t_\t_\n"));
  EXPECT_THROWS(read_tagged_set(options, 1), kOptionValue,
                "c.conllu: expected 2 tag columns, as in ");
  options.train = {write_file(folder, "d", "a N X\nb N Y\n")};
  EXPECT_THROWS(read_tagged_set(options, 1), kInputTooSmall,
                "every tag to train on in column 2 is N");
}

TEST(ReadTaggedSet, RefusesWhatCannotBeLearned) {
  const TestFolder folder;
  TaggerTextOptions options;
  EXPECT_THROWS(read_tagged_set(options, 1), kUsage, "no sentences");
  options.train = {write_file(folder, "a", "a O\nb O\n")};
  EXPECT_THROWS(read_tagged_set(options, 1), kInputTooSmall, "every tag to train on is O");
  options.train = {write_file(folder, "b", "a B-x\n\nb Y\n")};
  options.scheme = {SchemeChoice::kBio};
  EXPECT_THROWS(read_tagged_set(options, 1), kInputFormat, "b:3: expected a tag of the scheme bio");
}

TEST(TrainTagger, LearnsAndIsLoadedAgain) {
  const TestFolder folder;
  const LoadedTagger loaded = load_tagger(trained(folder, tiny_tagger(folder)));
  EXPECT_THAT(loaded.tags[0].names(),
              ElementsAre("B-person", "B-place", "I-person", "I-place", "O"));
  EXPECT_THAT(loaded.settings.text.scheme, ElementsAre(SchemeChoice::kBio));
  EXPECT_FALSE(loaded.segments());
  EXPECT_EQ(safetensors_bytes(parameter_tensors(loaded.model->parameters())),
            safetensors_bytes(read_model_weights(folder / "model").tensors));
  const TestFolder other;
  const LoadedTagger segmenter = load_tagger(trained(other, tiny_segmenter(other)));
  EXPECT_TRUE(segmenter.segments());
  EXPECT_TRUE(segmenter.vocabulary.knows("计算机"));
  EXPECT_FALSE(segmenter.vocabulary.knows("计算"));
}

TEST(TrainTagger, ReadsSubwordsInsideOfWords) {
  const TestFolder folder;
  TaggerSettings settings = tiny_tagger(folder);
  settings.text.tokenizer = WordCut::kSubwords;
  settings.text.tokenizer_model = write_file(
      folder, "a.model", piece_model_of("Ada saw New York is\n0 1 2 3 4\n", {.vocab_size = 21}));
  settings.model.word_width = settings.model.shape_width = 0;  // the subwords alone
  const LoadedTagger loaded = load_tagger(trained(folder, settings));
  EXPECT_EQ(loaded.settings.model.characters, 21);
  TaggedWords read;
  const std::vector<std::string> words = {"New", "York", "saw", "Adasaw"};
  append(read, loaded.vocabulary, words);
  const auto text_of = [&](std::size_t w) {
    return loaded.vocabulary.characters->decode(
        std::span(read.characters)
            .subspan(
                static_cast<std::size_t>(read.character_starts[w]),
                static_cast<std::size_t>(read.character_starts[w + 1] - read.character_starts[w])));
  };
  EXPECT_EQ(text_of(1), "York");
  EXPECT_EQ(text_of(3), "Adasaw");
  TagPredictor predictor(Context(1), loaded);
  const auto found = predictor.tag({&words, 1})[0][0].tags;
  const auto name = [&](std::size_t w) { return loaded.tags[0].name(found[w]); };
  EXPECT_EQ(name(0), "B-place");
  EXPECT_EQ(name(1), "I-place");
  EXPECT_EQ(name(2), "O");
}

TEST(TrainTagger, RefusesFoldersThatDoNotFit) {
  EXPECT_THROWS(tagger_config_from_text(R"({"kind":"classifier"})", "c.json"), kModelWrongKind,
                "c.json: expected \"kind\": \"tagger\"");
  const TestFolder folder;
  const LoadedTagger loaded = load_tagger(trained(folder, tiny_tagger(folder)));
  const auto fails = [&](std::vector<std::string> tags, const char* words) {
    std::vector<NamedFile> files = {{"config.json", config_text(loaded.settings, {.tags = tags})}};
    write_model_files(folder / "other", files);
    EXPECT_THROWS(load_tagger(folder / "other"), kModelDamaged, words);
  };
  fails({"O"}, "expected 5 tags, got 1");
  fails({"O", "O", "B-a", "I-a", "B-b"}, "differ from each other");
  fails({"O", "x", "B-a", "I-a", "B-b"}, "config.json: the tag 'x'");
}

TEST(TrainTagger, LearnsSeveralColumns) {
  const TestFolder folder;
  const LoadedTagger loaded = load_tagger(trained(folder, tiny_columns(folder)));
  EXPECT_THAT(loaded.columns(), ElementsAre("2", "3"));
  ASSERT_EQ(loaded.tags.size(), 2u);
  EXPECT_THAT(loaded.tags[0].names(), ElementsAre("M", "N", "V"));
  EXPECT_THAT(loaded.settings.model.tags, ElementsAre(3, 5));
  EXPECT_THAT(loaded.settings.text.scheme, ElementsAre(SchemeChoice::kNone, SchemeChoice::kBio));
  TagPredictor predictor(Context(1), loaded);
  const std::vector<std::string> words = {"New", "York", "is", "3"};
  const auto found = predictor.tag({&words, 1})[0];
  const auto names = [&](std::size_t c) {
    std::vector<std::string> all;
    for (const std::int32_t tag : found[c].tags) all.push_back(loaded.tags[c].name(tag));
    return all;
  };
  EXPECT_THAT(names(0), ElementsAre("N", "N", "V", "M"));
  EXPECT_THAT(names(1), ElementsAre("B-place", "I-place", "O", "O"));
}

// What an earlier version wrote of the only column is read, and written again in the same way.
TEST(TrainTagger, ReadsWhatHasOneColumn) {
  const TaggerConfigFile file = tagger_config_from_text(
      R"({"kind":"tagger","tags":["a","b"],"text":{"tag_column":3,"column":"xpos","scheme":"none"},)"
      R"("model":{"head":"softmax","tags":2}})",
      "c.json");
  EXPECT_THAT(file.settings.text.table.tag_column, ElementsAre(3));
  EXPECT_THAT(file.settings.model.tags, ElementsAre(2));
  EXPECT_THAT(file.settings.model.head, ElementsAre(TagHead::kSoftmax));
  const std::string text = config_text(file.settings, file.outputs);
  for (const char* line : {"\"tag_column\": 3,", "\"column\": \"xpos\",", "\"scheme\": \"none\",",
                           "\"head\": \"softmax\",", "\"tags\": 2,"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(TrainTagger, RefusesColumnsThatDoNotFitTogether) {
  const auto fails = [](const char* text, const char* words) {
    const std::string name = "c.json";
    EXPECT_THROWS(tag_sets(tagger_config_from_text(text, name), name), kModelDamaged, words);
  };
  fails(R"({"kind":"tagger","tags":["a","b","a"],"text":{"tag_column":[2,3],"scheme":"none"},)"
        R"("model":{"tags":[2,1]}})",
        "c.json: expected schemes for 2 tag columns, got 1");
  fails(R"({"kind":"tagger","tags":["a","b"],"text":{"scheme":"none"},"model":{"tags":[1,1]}})",
        "expected numbers of tags for 1 tag columns, got 2");
  fails(R"({"kind":"tagger","tags":["a","b"],"text":{"tag_column":[2,3],"scheme":["none","none"]},)"
        R"("model":{"tags":[9223372036854775807,9223372036854775807]}})",
        "expected 9223372036854775807 + 9223372036854775807 tags, got 2");
  fails(R"({"kind":"tagger","tags":["a","b"],"text":{"tag_column":[2,3],"scheme":["none","none"]},)"
        R"("model":{"tags":[3,-1]}})",
        "expected 3 + -1 tags, got 2");
  fails(R"({"kind":"tagger","tags":["a","a","b"],"text":{"tag_column":[2,3],)"
        R"("scheme":["none","none"]},"model":{"tags":[2,1]}})",
        "differ from each other");
  fails(R"({"kind":"tagger","tags":["a","b"],"text":{"tag_column":[2,3],"scheme":["auto","none"]},)"
        R"("model":{"tags":[1,1]}})",
        "expected a scheme, got auto");
  fails(R"({"kind":"tagger","tags":[],"text":{"tag_column":["x",3]}})", "'text.tag_column'");
}

TEST(TrainTagger, CostsWhatItSays) {
  const TestFolder folder;
  const TaggerRun run = prepare_run(tiny_tagger(folder));
  const RunCost cost = cost_of(run);
  EXPECT_EQ(cost.updates, 60);
  EXPECT_GT(flops_of_update(Context(1), run), 0);
  EXPECT_EQ(cost.parameters, parameter_count(run.settings.model));
  EXPECT_GT(training_memory(Context(1), run), model_memory(run.settings.model));
  EXPECT_GT(estimate_run_time(Context(1), run).seconds, 0);
}

TEST(TrainTagger, SaysWhetherARunCanGoOn) {
  const TestFolder folder;
  const TaggerRun run = prepare_run(tiny_tagger(folder));
  TaggerSettings given = run.settings;
  given.recipe.lr = 1e-4;
  require_same_run(run.settings, given);
  given.text.word_dropout = 0.25;
  given.text.batch_size = 3;
  given.recipe.keep = 9;
  EXPECT_THAT(changed_options(run.settings, given),
              testing::ElementsAre(testing::HasSubstr("--word-dropout"),
                                   testing::HasSubstr("--batch-size"), testing::HasSubstr("--lr")));
  given.model.head = {TagHead::kSoftmax};
  EXPECT_THROWS(require_same_run(run.settings, given), kConfig, "--head");
  RunIdentity other = run.identity;
  other.data = "other";
  EXPECT_THROWS(require_same_text(run.settings, other, run), kConfig, "the text has changed");
}

TEST(TaggerObjective, MeasuresSpansAndAccuracy) {
  TaggedWords truth;
  truth.tags = {{0, 1, 2, 0}};
  truth.starts = {0, 4};
  truth.words = {1, 1, 1, 1};
  TaggerRun run;
  run.tags = {TagSet({"B-x", "I-x", "O"}, TagScheme::kBio)};
  const SetTags found{.loss = 8, .words = 4, .tags = {{0, 1, 2, 2}}};
  const Validation all = measure(found, truth, run);
  EXPECT_EQ(all.loss, 2);
  EXPECT_EQ(all.metrics[0].value, 0.75);
  EXPECT_NEAR(all.metrics[1].value, 2.0 / 3, 1e-12);
  EXPECT_NEAR(*all.score, 2.0 / 3, 1e-8);
  truth.tags[0][3] = kNoTag;  // a name of a type that was not trained is not found, either
  EXPECT_NEAR(measure(found, truth, run).metrics[1].value, 2.0 / 3, 1e-12);
  run.settings.text.metric = TaggerMetric::kLoss;
  EXPECT_FALSE(measure(found, truth, run).score.has_value());
}

TEST(TaggerObjective, OfSeveralColumnsTheMeanOfWhatCountsIsTheScore) {
  TaggedWords truth;
  truth.tags = {{0, 1, 2, 0}, {0, 0, 1, 1}};
  truth.starts = {0, 4};
  truth.words = {1, 1, 1, 1};
  TaggerRun run;
  run.tags = {TagSet({"B-x", "I-x", "O"}, TagScheme::kBio), TagSet({"N", "V"}, std::nullopt)};
  run.settings.text.table.format = TaggedFormat::kConllu;
  run.settings.text.table.column = {ConlluColumn::kFeats, ConlluColumn::kUpos};
  const SetTags found{.loss = 8, .words = 4, .tags = {{0, 1, 2, 2}, {0, 0, 1, 0}}};
  const Validation all = measure(found, truth, run);
  std::vector<std::string> names;
  for (const MetricValue& metric : all.metrics) names.push_back(metric.name);
  EXPECT_THAT(names, ElementsAre("accuracy_feats", "span_f1_feats", "accuracy_upos", "mean"));
  EXPECT_NEAR(all.metrics[3].value, (2.0 / 3 + 0.75) / 2, 1e-12);
  EXPECT_NEAR(*all.score, (2.0 / 3 + 0.75) / 2, 1e-8);
  run.settings.text.metric = TaggerMetric::kAccuracy;
  EXPECT_NEAR(*measure(found, truth, run).score, 0.75, 1e-8);
  run.settings.text.metric = TaggerMetric::kSpanF1;
  EXPECT_NEAR(*measure(found, truth, run).score, 2.0 / 3, 1e-8);
  run.settings.text.metric = TaggerMetric::kLoss;
  EXPECT_FALSE(measure(found, truth, run).score.has_value());
}

}  // namespace
}  // namespace fovea
