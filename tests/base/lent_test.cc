// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "fovea/base/context.h"
#include "fovea/base/shares.h"

namespace fovea {
namespace {

TEST(Lent, ThingsAreUsedAgain) {
  Lent<int> lent;
  int made = 0;
  const auto make = [&] { return std::make_unique<int>(++made); };
  lent.lend(make, [](int& thing) { thing = 7; });
  lent.lend(make, [](int& thing) { EXPECT_EQ(thing, 7); });
  EXPECT_EQ(made, 1);
  lent.lend(make, [&](int&) { lent.lend(make, [](int& inner) { EXPECT_EQ(inner, 2); }); });
  EXPECT_EQ(made, 2);
}

TEST(Lent, ThrownAwayIfItsUserThrows) {
  Lent<int> lent;
  int made = 0;
  const auto make = [&] { return std::make_unique<int>(++made); };
  EXPECT_THROW(lent.lend(make, [](int&) { throw 1; }), int);
  lent.lend(make, [](int& thing) { EXPECT_EQ(thing, 2); });
}

TEST(Lent, NoTwoThreadsHaveTheSame) {
  struct Thing {
    std::atomic<int> users{0};
  };
  Lent<Thing> lent;
  std::atomic<int> shared{0}, made{0};
  const auto make = [&] {
    ++made;
    return std::make_unique<Thing>();
  };
  Context(4).for_each(400, [&](index) {
    lent.lend(make, [&](Thing& thing) {
      shared += thing.users++ == 0 ? 0 : 1;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      thing.users--;
    });
  });
  EXPECT_EQ(shared, 0);
  EXPECT_GE(made, 1);
  EXPECT_LE(made, 4);
}

}  // namespace
}  // namespace fovea
