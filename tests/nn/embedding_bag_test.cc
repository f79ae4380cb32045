// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/embedding_bag.h"

#include <gmock/gmock.h>

#include "tests/nn/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

const std::vector<std::int32_t> kIds = {4, 0, 4, 3, 2}, kOffsets = {0, 3, 3, 5};

TEST(EmbeddingBag, HasOneWeightOfWhichAStepUsesFewRows) {
  ParameterSet set({});
  const EmbeddingBag layer({.rows = 5, .width = 3}, ParameterScope(set)["words"]);
  EXPECT_EQ(set.find("words.weight"), &layer.weight());
  EXPECT_EQ(set.size(), 15);
  EXPECT_EQ(layer.weight().row_use, RowUse::kSparse);
  const EmbeddingBag dense({.rows = 2, .width = 3, .row_use = RowUse::kDense},
                           ParameterScope(set)["few"]);
  EXPECT_EQ(dense.weight().row_use, RowUse::kDense);
}

TEST(EmbeddingBag, IsTheMeanOfTheRowsOfABag) {
  ParameterSet set({});
  const EmbeddingBag layer({.rows = 5, .width = 2, .padding = 3}, ParameterScope(set));
  const auto y = output_of([&](Tape& tape) { return layer.forward(tape, kIds, kOffsets); });
  const auto w = layer.weight().value.vec<float>();
  EXPECT_NEAR(y[0], (2 * w[8] + w[0]) / 3, 1e-8);
  EXPECT_EQ(y[2], 0);
  EXPECT_EQ(y[5], w[5]) << "the padding does not count";
}

TEST(EmbeddingBag, GradientIsThatOfTheForward) {
  for (const BagMode mode : {BagMode::kSum, BagMode::kMean})
    for (const RowUse use : {RowUse::kSparse, RowUse::kDense}) {
      auto set = float64_set();
      const EmbeddingBag layer({.rows = 5, .width = 4, .mode = mode, .padding = 2, .row_use = use},
                               ParameterScope(set));
      expect_gradients(set, [&](Tape& tape) { return layer.forward(tape, kIds, kOffsets); });
    }
}

TEST(EmbeddingBag, SaysWhatIsWrong) {
  ParameterSet set({});
  const EmbeddingBag layer({.rows = 4, .width = 2}, ParameterScope(set)["a"]);
  Tape tape{Context(1)};
  EXPECT_THROWS(layer.forward(tape, kIds, kOffsets), kShape, "ids[0] is 4");
  EXPECT_THROWS(layer.forward(tape, kIds, {}), kShape, "offsets are [B + 1]; there are none");
  const EmbeddingBag padded({.rows = 4, .width = 2, .padding = 4}, ParameterScope(set)["b"]);
  EXPECT_THROWS(padded.forward(tape, kIds, kOffsets), kShape, "the padding 4 is not in the table");
}

}  // namespace
}  // namespace fovea
