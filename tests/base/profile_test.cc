// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/profile.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "tests/support/throws.h"

namespace fovea {
namespace {

void sleep(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(Profile, AddsUpWhatIsAlike) {
  Profile profile;
  const Context ctx = Context(1).profiled(profile);
  for (int n = 0; n < 3; ++n) {
    const ProfileScope scope(ctx, {.what = "a", .shape = {2, 3}, .flops = 5, .bytes = 7});
  }
  { const ProfileScope scope(ctx, {.what = "a", .shape = {2, 4}}); }
  ASSERT_EQ(profile.parts().size(), 2u);
  EXPECT_EQ(profile.parts()[0].calls, 3);
  EXPECT_EQ(profile.parts()[0].work.flops, 15);
  EXPECT_EQ(profile.parts()[0].work.bytes, 21);
  EXPECT_EQ(profile.parts()[1].calls, 1);
  profile.clear();
  EXPECT_TRUE(profile.parts().empty());
}

TEST(Profile, IsNotClearedWhileAScopeIsOpen) {
  Profile profile;
  const Context ctx = Context(1).profiled(profile);
  {
    const ProfileScope outer(ctx, {.what = "outer"});
    { const ProfileScope inner(ctx, {.what = "inner"}); }
    EXPECT_THROWS(profile.clear(), kInternal, "1 scopes");
    EXPECT_EQ(profile.parts().size(), 2u);
  }
  profile.clear();
  EXPECT_TRUE(profile.parts().empty());
}

TEST(Profile, CountsTimeForTheInnermostScope) {
  Profile profile;
  const Context ctx = Context(1).profiled(profile);
  {
    const ProfileScope outer(ctx, {.what = "outer"});
    const ProfileScope inner(ctx, {.what = "inner"});
    sleep(50);
  }
  ASSERT_EQ(profile.parts().size(), 2u);
  EXPECT_EQ(profile.parts()[1].work.what, "inner");
  EXPECT_GE(profile.parts()[1].seconds, 0.05);
  EXPECT_LT(profile.parts()[0].seconds, 0.05);
}

// The other thread takes long for its item; the caller has none left.
TEST(Profile, KnowsWaitingFromWork) {
  Profile profile;
  const Context ctx = Context(2).profiled(profile);
  const auto caller = std::this_thread::get_id();
  for (int tries = 0; profile.waiting_seconds() < 0.04 && tries < 100; ++tries) {
    const ProfileScope scope(ctx, {.what = "work"});
    ctx.for_each(2, [&](index) { sleep(std::this_thread::get_id() == caller ? 1 : 60); });
  }
  EXPECT_GE(profile.waiting_seconds(), 0.04);
  ASSERT_EQ(profile.parts().size(), 1u);
}

TEST(Profile, LeavesOutOtherThreads) {
  Profile profile;
  const Context ctx = Context(2).profiled(profile);
  EXPECT_EQ(ctx.profile(), &profile);
  EXPECT_EQ(Context(2).profile(), nullptr);
  std::thread([&] {
    EXPECT_EQ(ctx.profile(), nullptr);
    const ProfileScope scope(ctx, {.what = "elsewhere"});
  }).join();
  EXPECT_TRUE(profile.parts().empty());
}

}  // namespace
}  // namespace fovea
