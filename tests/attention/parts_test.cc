// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/parts.h"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace fovea::testing
