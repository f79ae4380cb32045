// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/curve.h"

#include <gmock/gmock.h>

#include "tests/support/folder.h"

namespace fovea {
namespace {

TEST(Curve, ShowsEveryLossThereIs) {
  const TestFolder folder;
  History history(folder / "m.jsonl");
  for (index step = 1; step <= 20; ++step) {
    history.add(
        UpdateRecord{.step = step, .loss = 4.0 / static_cast<double>(step), .mean16_loss = 3});
  }
  history.add(EvaluationRecord{.step = 20, .train_loss = 2, .valid_loss = 2.125});
  EXPECT_THAT(loss_curve(history),
              testing::AllOf(testing::StartsWith("<"), testing::HasSubstr("</svg>"),
                             testing::HasSubstr("2.125")));
}

TEST(Curve, OfNothingIsStillAPicture) {
  const TestFolder folder;
  EXPECT_THAT(loss_curve(History(folder / "m.jsonl")), testing::HasSubstr("</svg>"));
}

}  // namespace
}  // namespace fovea
