// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/base/machine.h"
#include "fovea/base/sanitizer.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/task/load_parts.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

constexpr double kMiB = 1 << 20;

// What whole processes take is compared with what was foreseen in tests/cli/test_memory.py.
class MemoryTest : public testing::Test {
 protected:
  MemoryTest() { settings.text.valid_fraction = 0.1; }

  double foreseen(index checkpoint_bytes = 0) {
    return training_memory(Context(2), prepare_run(settings), checkpoint_bytes);
  }
  // A change of some hundred megabytes counts, whatever this process did before.
  double added(void (*change)(LanguageModelSettings&)) {
    change(settings);
    return foreseen() - static_cast<double>(resident_memory_bytes());
  }

  TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
};

TEST_F(MemoryTest, OfTrainingCountsParametersWithGradientsAndMoments) {
  const double bytes = added([](auto& s) { s.model.width = 1024, s.model.layers = 2; });
  const LanguageModelRun run = prepare_run(settings);
  const auto parameters = static_cast<double>(parameter_count(run.settings.model));
  EXPECT_GT(bytes, 4 * 4 * parameters);
  EXPECT_LT(bytes, 4 * 5 * parameters + 60 * kMiB);
}

TEST_F(MemoryTest, OfTrainingCountsTheTokensOfABatch) {
  EXPECT_GT(added([](auto& s) { s.model.width = 64, s.model.heads = 1, s.text.batch_size = 8000; }),
            4.0 * 8000 * 12 * 18 * 64);
}

// Beside the checkpoint, which is in memory already: values and moments, the moments once more,
// and the best model with its file.
TEST_F(MemoryTest, OfResumingCountsTheCheckpoint) {
  const double from_start = added([](auto& s) { s.model.width = 1024, s.model.layers = 2; });
  const LanguageModelRun run = prepare_run(settings);
  const auto parameters = static_cast<double>(parameter_count(run.settings.model));
  const index checkpoint = index{1} << 27;
  const double resumed = foreseen(checkpoint) - static_cast<double>(resident_memory_bytes());
  EXPECT_GT(resumed, std::max(from_start, 4 * 7 * parameters));
  EXPECT_LT(resumed, 4 * 7 * parameters + 60 * kMiB);
}

LanguageModel planned(const LanguageModelConfig& config) {
  return LanguageModel(config, ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
}

// They are neither widened nor packed.
TEST_F(MemoryTest, OfWeightsThatStayAsTheyLie) {
  settings.model.width = 512;
  settings.model.layers = 8;
  settings.model.vocabulary = 300;
  const LanguageModelConfig c = resolve(settings.model);
  const LanguageModel widened = planned(c), lies = planned(c);
  double values = 0;
  for (Parameter* const one : lies.parameters()) {
    if (one->value.shape().axes() != 2) continue;
    auto blocks = std::make_shared<BlockMatrix>(one->value.shape()[1]);
    blocks->append_planned(BlockType::kQ4_0, one->value.shape()[0]);
    one->blocks = std::move(blocks);
    values += static_cast<double>(one->value.size());
  }
  for (const index prompt : {1, 100}) {
    EXPECT_LT(generation_memory(Context(2), lies, prompt, 10),
              generation_memory(Context(2), widened, prompt, 10) - (prompt > 96 ? 3 * values : 0));
  }
}

TEST_F(MemoryTest, OfEvaluationAndGeneration) {
  settings.model.width = 512;
  settings.model.layers = 8;
  settings.model.block = 4096;
  settings.model.vocabulary = 300;
  const LanguageModelConfig c = resolve(settings.model);
  const Context context(2);
  const double values = 4 * static_cast<double>(parameter_count(c));
  EXPECT_EQ(model_memory(c), values);
  settings.model.position = PositionKind::kSinusoidal;
  EXPECT_GE(model_memory(resolve(settings.model)), values);
  const double caches = 4.0 * 2 * 8 * 512;
  const LanguageModel model = planned(c);
  const double first = generation_memory(context, model, 1, 1);
  EXPECT_GE(generation_memory(context, model, 1, 2000), first + 1999 * caches);
  EXPECT_LT(generation_memory(context, model, 1, 2000), first + 2001 * caches);
  // The window moves on: all it holds is encoded again, one layer after another.
  const double layer = 4 * 13 * 512;  // bytes of a token
  EXPECT_GT(generation_memory(context, model, 1, 5000), first + 4096 * layer);
  EXPECT_LT(generation_memory(context, model, 1, 5000), first + 4096 * 8 * layer);
  EXPECT_GT(generation_memory(context, model, 4000, 1), first + 4000 * layer);
  const std::vector<token> stream(3000, 65);
  const EvaluationBatches set({stream, {{0, 1000}, {1000, 1000}, {2000, 999}}}, 2);
  EXPECT_EQ(set.largest_batch(), 2000);
  EXPECT_GT(evaluation_memory(context, model, set), 2000 * layer);
  EXPECT_LT(evaluation_memory(context, model, set), 2000 * 8 * layer);
}

// The keys of a window are `dilation` apart: all rows between the first and the last are kept.
TEST_F(MemoryTest, OfGenerationCountsTheReachOfADilatedWindow) {
  settings.model.kind = LanguageModelKind::kEncoder;
  settings.model.width = 512;
  settings.model.heads = 8;
  settings.model.block = 4096;
  settings.model.vocabulary = 300;
  const auto cache = [&](const char* encoder) {
    settings.model.encoder = encoder;
    const LanguageModel model = planned(resolve(settings.model));
    return generation_memory(Context(1), model, 1, 4095) -
           generation_memory(Context(1), model, 1, 1);
  };
  EXPECT_EQ(cache("attention:window=100:dilation=20"), cache("attention:window=2000"));
  EXPECT_LT(cache("attention:window=2000"), cache("attention"));
}

// A convolution puts rows of zeros around each sequence, however short it is.
TEST_F(MemoryTest, OfEvaluationCountsTheSequencesOfABatch) {
  settings.model.kind = LanguageModelKind::kEncoder;
  settings.model.encoder = "conv3:dilation=100";
  settings.model.width = 256;
  settings.model.block = 1000;
  settings.model.vocabulary = 300;
  const LanguageModel model = planned(resolve(settings.model));
  const std::vector<token> stream(1001, 65);
  std::vector<Slice> pairs;
  for (index begin = 0; begin < 1000; begin += 2) pairs.push_back({begin, 2});
  const auto bytes = [&](const std::vector<Slice>& slices, index batch_size) {
    return evaluation_memory(Context(1), model, EvaluationBatches({stream, slices}, batch_size));
  };
  const double one = bytes({{0, 1000}}, 1), short_ones = bytes(pairs, 500);
  EXPECT_GT(short_ones, one + 4.0 * 499 * 200 * 256);
  EXPECT_LT(short_ones, one + 1.2 * 4.0 * 501 * 200 * 256);
  EXPECT_EQ(bytes(pairs, 1 << 20), bytes(pairs, 1000)) << "each sequence has a token";
}

using testing::HasSubstr;

RunTime time_of(const LanguageModelSettings& settings) {
  return estimate_run_time(Context(1), prepare_run(settings));
}

TEST(RunTime, OfAShortUpdateIsTriedOut) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.stop_after = "600u";
  const RunTime time = time_of(settings);
  EXPECT_THAT(time.basis, HasSubstr("updates were tried"));
  EXPECT_GT(time.seconds, 0);
}

TEST(RunTime, OfALongUpdateIsReckoned) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.model.width = 1536;
  settings.model.block = 64;
  settings.text.batch_size = 64;
  settings.recipe.stop_after = "100u";
  const RunTime time = time_of(settings);
  EXPECT_THAT(time.basis, HasSubstr("GFLOP/s"));
  EXPECT_GT(time.seconds, 0);
}

double to_come(const LanguageModelSettings& settings, index done = 0) {
  return updates_to_come(prepare_run(settings), {.step = done});
}

TEST(UpdatesToCome, AreThoseOfTheRunAndOfItsEvaluations) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.valid_fraction = 0;
  settings.recipe.stop_after = "100u";
  EXPECT_EQ(to_come(settings), 100);
  settings.recipe.stop_after = "1000u";
  EXPECT_EQ(to_come(settings), 1000);
  settings.text.valid_fraction = 0.5;
  settings.recipe.eval_every = "1000u";
  const double once = to_come(settings) - 1000;
  EXPECT_GT(once, 0);
  settings.recipe.eval_every = "250u";
  EXPECT_NEAR(to_come(settings) - 1000, 4 * once, 1e-9);
}

TEST(UpdatesToCome, OfAResumedRunAreWhatIsLeft) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.stop_after = "40000u";
  settings.recipe.eval_every = "1000u";
  EXPECT_NEAR(to_come(settings, 39000), to_come(settings) / 40, 1e-6);
  EXPECT_EQ(to_come(settings, 40000), 0);
  EXPECT_EQ(to_come(settings, 50000), 0);
}

// 21 million parameters, sixteen tokens: hardly any FLOPs.
TEST(RunTime, OfManyParametersIsToldWithoutMakingThem) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.model.width = 512;
  settings.model.layers = 7;
  settings.text.batch_size = 1;
  settings.text.valid_fraction = 0;
  settings.recipe.stop_after = "100u";
  const LanguageModelRun run = prepare_run(settings);
  [[maybe_unused]] const std::int64_t before = peak_memory_bytes();
  const RunTime time = estimate_run_time(Context(1), run);
  EXPECT_THAT(time.basis, HasSubstr("ns a parameter"));
  // The sample takes 32 MiB; the model, its gradients and moments would take 340.
#if !defined(FOVEA_THREAD_SANITIZER)  // which keeps a multiple of it beside
  EXPECT_LT(peak_memory_bytes() - before, 100 << 20);
#endif
  // 21 million parameters of 28 bytes at a terabyte a second, a hundred times.
  EXPECT_GT(time.seconds, 0.06);
}

TEST(RunTime, OfHoursIsThose) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.stop_after = "30m";
  const RunTime time = time_of(settings);
  EXPECT_EQ(time.seconds, 1800);
  const LanguageModelRun run = prepare_run(settings);
  EXPECT_EQ(estimate_run_time(Context(1), run, {.seconds = 600}).seconds, 1200);
  EXPECT_EQ(estimate_run_time(Context(1), run, {.seconds = 6000}).seconds, 0);
  EXPECT_EQ(time.basis, "as --stop-after says");
}

}  // namespace
}  // namespace fovea
