// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/run_lock.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <optional>
#include <string>

#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(RunLock, IsHeldByOneAtATime) {
  const TestFolder folder;
  const std::string process = "process " + std::to_string(::getpid());
  std::optional<RunLock> lock(std::in_place, folder.path());
  EXPECT_THROWS(RunLock(folder.path()), kOutputExists, process);
  EXPECT_THROWS(require_unlocked(folder.path()), kOutputExists, "another training");
  lock.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  require_unlocked(folder.path());
  const RunLock again(folder.path());
}

TEST(RunLock, IsReleasedByDeath) {
  const TestFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(folder.path());
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THROWS(require_unlocked(folder.path()), kOutputExists, "process " + std::to_string(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / kLockName));
  const RunLock lock(folder.path());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(RunLock, OfAFolderThatWasMovedLeavesTheOneInItsPlaceAlone) {
  const TestFolder top;
  const auto folder = top / "run";
  std::filesystem::create_directory(folder);
  {
    const RunLock lock(folder);
    EXPECT_TRUE(lock.is_in_place());
    std::filesystem::rename(folder, top / "moved");
    EXPECT_FALSE(lock.is_in_place());
    std::filesystem::create_directory(folder);
    std::ofstream(folder / kLockName) << "of another";
  }
  EXPECT_TRUE(std::filesystem::exists(folder / kLockName));
}

TEST(RunLock, OfAFolderThatIsNotThere) {
  const TestFolder folder;
  EXPECT_THROWS(RunLock(folder.path() / "no"), kWrite, "run.lock");
  require_unlocked(folder.path() / "no");
}

}  // namespace
}  // namespace fovea
