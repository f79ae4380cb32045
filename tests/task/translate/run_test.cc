// SPDX-License-Identifier: Apache-2.0
// Translators from file to folder, which reaches all of fovea/task/translate, and its parts by
// themselves.
#include "fovea/task/translate/run.h"

#include <gmock/gmock.h>

#include <cstring>

#include "fovea/task/translate/line_translator.h"
#include "fovea/train/average.h"
#include "fovea/train/checkpoint.h"
#include "fovea/train/model_folder.h"
#include "tests/support/throws.h"
#include "tests/task/translate/tiny.h"

namespace fovea {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(TrainTranslator, LearnsAndIsLoadedAgain) {
  const TestFolder folder;
  const LoadedTranslator loaded = load_translator(trained(folder, tiny_translator(folder)));
  EXPECT_EQ(loaded.settings.text.target_tokenizer, "word");
  EXPECT_EQ(loaded.vocabulary.source().vocabulary_size(), 8);  // four marks, four numbers
  EXPECT_EQ(safetensors_bytes(parameter_tensors(loaded.model->parameters())),
            safetensors_bytes(read_model_weights(folder / "model").tensors));
}

TEST(TrainTranslator, OneVocabularyAndOneTableAreStoredOnce) {
  const TestFolder folder;
  TranslatorSettings settings = tiny_translator(folder);
  settings.text.shared_vocabulary = settings.model.share_embeddings = true;
  const LoadedTranslator loaded = load_translator(trained(folder, settings));
  EXPECT_EQ(loaded.vocabulary.of_target, nullptr);
  EXPECT_EQ(loaded.settings.model.target_vocabulary, 12);
  EXPECT_FALSE(std::filesystem::exists(folder / "model" / kTargetTokenizerName));
}

TEST(TrainTranslator, RefusesFoldersThatDoNotFit) {
  EXPECT_THROWS(translator_settings_from_text(R"({"kind":"tagger"})", "c.json"), kModelWrongKind,
                "c.json: expected \"kind\": \"translator\"");
  const TestFolder folder;
  const TranslatorRun run = prepare_run(tiny_translator(folder));
  const auto write = [&](const TranslatorSettings& settings, const Tokenizer& source) {
    const std::vector<NamedFile> files = {
        {"config.json", config_text(settings)},
        {"tokenizer.txt", to_text(source.data())},
        {std::string(kTargetTokenizerName), to_text(run.vocabulary.target().data())}};
    write_model_files(folder / "other", files);
    return folder / "other";
  };
  TranslatorSettings other = run.settings;
  other.model.target_vocabulary = 9;
  EXPECT_THROWS(load_translator(write(other, run.vocabulary.source())), kModelDamaged,
                "the tokenizer has 8 tokens, the model 9");
  const TokenizerKind& kind = tokenizer_kind("word");
  const auto markless =
      kind.make(kind.learn("a b c d e f", "text", {.marks = false, .min_count = 1}));
  EXPECT_THROWS(load_translator(write(run.settings, *markless)), kModelDamaged,
                "begin and end marks");
}

TEST(TrainTranslator, SaysWhatIsLeftOut) {
  const TestFolder folder;
  TranslatorSettings settings = tiny_translator(folder);
  settings.text.train = {
      write_file(folder, "p.tsv", tiny_pairs(40) + "one\t \none one one one one one\teins\n")};
  settings.model.block = 6;
  settings.text.valid_fraction = 0;
  const TranslatorRun run = prepare_run(settings);
  EXPECT_EQ(run.training->pairs().size(), 40);
  EXPECT_THAT(run.notes, Contains(HasSubstr("empty side: 1")));
  EXPECT_THAT(run.notes, Contains(HasSubstr("longer than --block (6 tokens): 1")));
  EXPECT_THAT(run.notes, Contains(HasSubstr("--patience and --metric have no effect")));
  settings.model.block = 2;
  settings.text.train = {write_file(folder, "long.tsv", "one one\teins eins\n")};
  EXPECT_THROWS(prepare_run(settings), kInputTooSmall, "no pair is left");
  settings.text.train = {write_file(folder, "empty.tsv", "one\t \n")};
  EXPECT_THROWS(prepare_run(settings), kInputTooSmall, "1 have an empty side");
  settings.text.train.clear();
  EXPECT_THROWS(prepare_run(settings), kUsage, "no sentences to train on");
}

TEST(TrainTranslator, CostsWhatItSays) {
  const TestFolder folder;
  const TranslatorRun run = prepare_run(tiny_translator(folder));
  const RunCost cost = cost_of(run);
  EXPECT_EQ(cost.updates, 200);
  EXPECT_EQ(cost.parameters, parameter_count(run.settings.model));
  EXPECT_GT(flops_of_update(Context(1), run), 0);
  EXPECT_GT(training_memory(Context(1), run), model_memory(run.settings.model));
  EXPECT_GT(estimate_run_time(Context(1), run).seconds, 0);
}

TEST(TrainTranslator, SaysWhetherARunCanGoOn) {
  const TestFolder folder;
  const TranslatorRun run = prepare_run(tiny_translator(folder));
  TranslatorSettings given = run.settings;
  require_same_run(run.settings, given);
  given.text.target_tokenizer = "";
  given.recipe.lr = 1;
  given.text.label_smoothing = 0.1;
  require_same_run(run.settings, given);
  EXPECT_THAT(changed_options(run.settings, given),
              testing::ElementsAre(HasSubstr("--label-smoothing"), HasSubstr("--lr")));
  given.text.tokenizer = "char";
  EXPECT_THROWS(require_same_run(run.settings, given), kConfig, "--tokenizer");
  given = run.settings;
  given.model.decoder_layers = 2;
  EXPECT_THROWS(require_same_run(run.settings, given), kConfig, "--decoder-layers");
  RunIdentity other = run.identity;
  other.data = "x";
  EXPECT_THROWS(require_same_text(run.settings, other, run), kConfig, "the text has changed");
}

// Without validation the mean is taken; with it the better of the two.
TEST(TrainTranslator, TakesTheMeanOfTheLastCheckpoints) {
  struct Notices : TrainingObserver {
    void noticed(const std::string& what) override { all.push_back(what); }
    std::vector<std::string> all;
  };
  const TestFolder folder;
  TranslatorSettings settings = tiny_translator(folder);
  settings.recipe.stop_after = "60u";
  settings.recipe.eval_every = settings.recipe.save_every = "20u";
  settings.recipe.average = 3;
  for (const double fraction : {0.0, 0.2}) {
    settings.text.valid_fraction = fraction;
    Notices notices;
    const TranslatorRun run = prepare_run(settings);
    train_translator(Context(2), run, folder / "m", {}, notices);
    const std::string said = testing::PrintToString(notices.all);
    EXPECT_THAT(said, HasSubstr("of updates 20, 40, 60"));
    const Safetensors stored = read_model_weights(folder / "m");
    const Translator model(run.settings.model, 1);
    const std::vector<index> steps = {20, 40, 60};
    const auto mean = mean_of_checkpoints(folder / "m", steps, model.parameters());
    const bool taken = said.find("the model is the mean") != std::string::npos;
    EXPECT_TRUE(taken || fraction > 0);
    EXPECT_EQ(std::memcmp(stored.at(mean[0].name).data<float>(), mean[0].tensor.data<float>(),
                          static_cast<std::size_t>(mean[0].tensor.size()) * sizeof(float)) == 0,
              taken);
    remove_checkpoints(checkpoints_of(folder / "m"));
  }
}

TEST(TrainTranslator, TakesTheMeanOfTheBestEvaluations) {
  struct Losses : TrainingObserver {
    void evaluated(const EvaluationRecord& record) override {
      all.emplace_back(record.valid_loss, record.step);
    }
    void noticed(const std::string& what) override { said += what; }
    std::vector<std::pair<double, index>> all;
    std::string said;
  };
  const TestFolder folder;
  TranslatorSettings settings = tiny_translator(folder);
  settings.recipe.stop_after = "60u";
  settings.recipe.eval_every = "10u";
  settings.recipe.keep = 1;
  settings.recipe.average_best = 2;
  Losses seen;
  train_translator(Context(2), prepare_run(settings), folder / "m", {}, seen);
  ASSERT_EQ(seen.all.size(), 6u);
  std::sort(seen.all.begin(), seen.all.end());
  const auto [first, second] = std::minmax(seen.all[0].second, seen.all[1].second);
  EXPECT_THAT(seen.said, HasSubstr(fmt::format("of updates {}, {}", first, second)));
  settings.text.valid_fraction = 0;
  EXPECT_THROWS(prepare_run(settings), kOptionValue, "--average-best");
  settings = tiny_translator(folder);
  settings.recipe.average = settings.recipe.average_best = 2;
  EXPECT_THROWS(prepare_run(settings), kOptionValue, "a model has one mean");
}

TEST(TranslatorObjective, TheLossIsTheMeanOfAllTargets) {
  const TestFolder folder;
  TranslatorRun run = prepare_run(tiny_translator(folder));
  run.settings.text.label_smoothing = 0;
  run.trained = run.validation;
  const Translator model(run.settings.model, 1);
  TranslatorObjective objective(Context(1), model, run);
  const index targets = objective.begin_update(0);
  EXPECT_EQ(targets, run.training->batch(0, 0).target_count());
  // A fresh model finds all eight tokens about as likely.
  EXPECT_NEAR(objective.forward(0), std::log(8.0), 0.2);
  objective.backward();
  const auto valid = objective.validate([] { return false; });
  EXPECT_NEAR(valid->loss, std::log(8.0), 0.2);
  EXPECT_EQ(objective.validate_training([] { return false; })->loss, valid->loss);
  EXPECT_FALSE(objective.validate([] { return true; }).has_value());
  objective.observe_attention(true);
  objective.begin_update(1);
  objective.forward(0);
  EXPECT_EQ(objective.observed_attention().entropy.size(), 3u);
}

// Greedy translations of the validation are measured, and choose the best weights.
TEST(TrainTranslator, BleuMayChooseTheBestWeights) {
  struct Metrics : TrainingObserver {
    void measured(const MetricsRecord& record) override { all.push_back(record); }
    std::vector<MetricsRecord> all;
  };
  const TestFolder folder;
  TranslatorSettings settings = tiny_translator(folder);
  settings.text.metric = TranslatorMetric::kChrf;
  Metrics metrics;
  const TranslatorRun run = prepare_run(settings);
  ASSERT_EQ(run.validation_texts.size(), run.validation->pairs().size());
  train_translator(Context(2), run, folder / "m", {}, metrics);
  ASSERT_EQ(metrics.all.size(), 4u);
  EXPECT_EQ(metrics.all[0].values[0].name, "bleu");
  EXPECT_EQ(metrics.all[0].values[1].name, "chrf");
  EXPECT_GT(metrics.all[3].values[1].value, 90);
  // With perfect translations a metric is 100, and the score that, less what breaks ties.
  const LoadedTranslator loaded = load_translator(folder / "m");
  Validation found{.loss = 2};
  SentencePairs own;
  LineTranslator translator(Context(1), *loaded.model, loaded.vocabulary, {.search = {.beam = 1}},
                            "x");
  for (const char* line : {"one two", "three", "four four one two"}) {
    own.source.emplace_back(line);
    translator.add({line, 1});
  }
  for (const auto& line : translator.translate()) own.target.push_back(line[0].text);
  settings.text.metric = TranslatorMetric::kBleu;
  TranslatorRun perfect = prepare_run(settings);
  perfect.validation_texts = own;
  EXPECT_TRUE(measure_translations(
      Context(1), *loaded.model, perfect, [] { return false; }, found));
  EXPECT_NEAR(found.metrics[1].value, 100, 1e-9);
  EXPECT_NEAR(*found.score, found.metrics[0].value, 1e-8);
  EXPECT_FALSE(measure_translations(
      Context(1), *loaded.model, perfect, [] { return true; }, found));
}

// Each token is linked to a token of the source, never to its end.
TEST(Alignment, FollowsAttention) {
  const LoadedTranslator loaded = untrained_translator();
  const std::vector<token> source = {260, 261, 262, kEndToken}, target = {kBeginToken, 260, 261};
  const auto links = align(Context(1), *loaded.model, {source, target}, 1);
  ASSERT_EQ(links.size(), 2u);
  for (index n = 0; n < 2; ++n) {
    EXPECT_EQ(links[static_cast<std::size_t>(n)].second, n);
    EXPECT_LT(links[static_cast<std::size_t>(n)].first, 3);
  }
  EXPECT_TRUE(align(Context(1), *loaded.model, {source, std::span(target).first(1)}, 1).empty());
}

TEST(TranslationOptions, NamesWhatIsOutOfRange) {
  TranslationOptions options;
  check_options(options);
  options.max_ratio = 0;
  EXPECT_THROWS(check_options(options), kOptionValue, "--max-ratio");
  options = {};
  options.alignment_layer = 1;
  EXPECT_THROWS(check_options(options), kOptionValue,
                "--alignment-layer 1: has no effect without --alignments");
  options.search.coverage_penalty = 0.5;
  check_options(options);
  options = {};
  options.temperature = 0.5;
  EXPECT_THROWS(check_options(options), kOptionValue,
                "--temperature 0.5: has no effect without --sample");
  options = {};
  options.search.nbest = 9;
  EXPECT_THROWS(check_options(options), kOptionValue, "--nbest");
  options.sample = true;
  check_options(options);
}

}  // namespace
}  // namespace fovea
