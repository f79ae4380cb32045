// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/text_batch.h"

#include <gtest/gtest.h>

#include "tests/model/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(TextBatch, LaysOutTextsThatAreShortEnough) {
  Tape tape{Context(1)};
  const OwnedBatch batch({3, 0, 5}, 11);
  const PackedRows rows = lay_out_texts(tape, batch.view().sequences(), 5);
  EXPECT_EQ(rows.count(), 3);
  EXPECT_EQ(rows.positions[7], 4);
  EXPECT_THROWS(lay_out_texts(tape, batch.view().sequences(), 4), kShape,
                "sequence 2 has 5 tokens; the model sees at most 4");
}

TEST(TextBatch, AnEmptyBatchHasALossOfZero) {
  Tape tape{Context(1)};
  EXPECT_EQ(zero_loss(tape).value<float>()[0][0], 0);
}

}  // namespace
}  // namespace fovea
