// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/parts.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/attention/support/call.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

struct Letter {
  using Family = Letter;
  static constexpr const char* kFamily = "a letter";
  virtual ~Letter() = default;
  virtual std::string name() const = 0;
};
struct A final : Letter {
  std::string name() const override { return "a"; }
};
struct B final : Letter {
  std::string name() const override { return "b"; }
};

TEST(Parts, KeepTheirOrder) {
  EXPECT_EQ(Parts<Letter>().name(), "none");
  EXPECT_EQ((A() + B()).name(), "a + b");
  EXPECT_EQ((B() + A()).name(), "b + a");
  EXPECT_EQ((A() + B() + A()).name(), "a + b + a");
  EXPECT_EQ((A() + (B() + A())).parts().size(), 3u);
  EXPECT_TRUE(Parts<Letter>().empty());
}

TEST(Parts, ANullPointerIsNone) {
  EXPECT_THROWS(Parts<Letter>(std::shared_ptr<const Letter>()), kShape,
                "a letter was given as a null pointer");
}

// Whether attention made of vectors computes the same after they have changed.
template <class Make>
void expect_keeps(const Sizes& sizes, std::vector<std::int32_t> counts, const Make& make) {
  std::vector<double> logits = {0.5, -1};
  const Attention<double> attention = make(counts, logits);
  Call<double> before(sizes), after(sizes);
  before.forward(attention);
  std::fill(counts.begin(), counts.end(), 0);
  std::fill(logits.begin(), logits.end(), 9);
  after.forward(attention);
  EXPECT_EQ(before.o, after.o);
}

// Attention that a function returns lives longer than the vectors of the function.
TEST(Parts, KeepTheFewNumbersOfVectors) {
  using Counts = std::vector<std::int32_t>;
  using Logits = std::vector<double>;
  const Sizes padded{.B = 2, .T = 5, .S = 5, .H = 2, .G = 2, .D = 3, .Dv = 3};
  const Sizes packed{.B = 1, .T = 5, .S = 5, .H = 2, .G = 2, .D = 3, .Dv = 3};
  expect_keeps(padded, {2, 4}, [](const Counts& counts, const Logits& logits) {
    return Attention<double>{.mask = mask::lengths(counts), .sink = {logits}};
  });
  expect_keeps(packed, {0, 2, 5}, [](const Counts& counts, const Logits&) {
    return Attention<double>{.packed = {counts, counts}};
  });
  expect_keeps(packed, {0, 2, 5}, [](const Counts&, const Logits& slopes) {
    return Attention<double>{.bias = bias::Alibi<double>(slopes)};
  });
}

// What is learned changes: a vector with a gradient is viewed, and so is what is no vector.
TEST(Parts, ViewWhatIsLearned) {
  std::vector<double> logits = {0.5, -1}, gradient(2);
  const Sink<double> learned(logits, gradient), kept(logits), view({logits.data(), 2});
  logits[1] = 7;
  EXPECT_EQ(learned.logits[1], 7);
  EXPECT_EQ(view.logits[1], 7);
  EXPECT_EQ(kept.logits[1], -1);
  EXPECT_EQ(Sink<double>(kept).logits[1], -1) << "of a copy of a part, too";
}

}  // namespace
}  // namespace fovea::testing
