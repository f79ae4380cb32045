// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/file.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/throws.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "fovea_file_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path path(const std::string& name) const { return folder_ / name; }

  /// The names in the folder: what a failure must not add to.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }

  fs::path folder_;
};

// Root may write anywhere; a test of permissions has to be somebody else.
class AsNobody {
 public:
  AsNobody() : was_(geteuid()) { changed_ = was_ == 0 && seteuid(65534) == 0; }
  ~AsNobody() {
    if (changed_ && seteuid(was_) != 0) std::abort();
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  uid_t was_;
  bool changed_ = false;
};

TEST_F(FileTest, ReadsWhatWasWritten) {
  const std::string binary("\0\xff\n\r\n\0", 6);
  const std::string large(3 << 20, 'x');
  for (const std::string& bytes : {std::string(), std::string("a"), binary, large}) {
    write_file_atomically(path("a"), bytes);
    EXPECT_EQ(read_file(path("a")), bytes);
    write_file_durably(path("b"), bytes);
    EXPECT_EQ(read_file(path("b")), bytes);
  }
  EXPECT_THAT(names(), testing::ElementsAre("a", "b"));
}

TEST_F(FileTest, ReadsFilesWhoseSizeIsNotToldBeforehand) {
  EXPECT_THAT(read_file("/proc/self/status"), testing::HasSubstr("Name:"));
}

TEST_F(FileTest, ReplacesAFileAsAWhole) {
  write_file_atomically(path("a"), "long old content");
  const std::ifstream reader(path("a"));
  write_file_atomically(path("a"), "new");
  EXPECT_EQ(read_file(path("a")), "new");
  std::string old(std::istreambuf_iterator<char>(reader.rdbuf()), {});
  EXPECT_EQ(old, "long old content") << "who had it open keeps the old one";
}

TEST_F(FileTest, ALinkStaysALinkAndAModeAMode) {
  write_file_atomically(folder_ / "real", "old");
  fs::permissions(folder_ / "real", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("real", folder_ / "link");
  write_file_atomically(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "real"), "new");
  EXPECT_EQ(fs::status(folder_ / "real").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(FileTest, WritesRelativeNamesInTheCurrentFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  write_file_atomically("a", "bytes");
  create_folders("b/c");
  fs::current_path(before);
  EXPECT_THAT(names(), testing::ElementsAre("a", "b"));
  EXPECT_TRUE(fs::is_directory(path("b/c")));
}

TEST_F(FileTest, AReaderSeesOneVersionOrAnotherNeverAMixture) {
  const std::string versions[] = {std::string(100000, 'a'), std::string(50000, 'b')};
  write_file_atomically(path("a"), versions[0]);
  std::atomic<int> writing{2};
  std::vector<std::thread> writers;
  for (const std::string& version : versions) {
    writers.emplace_back([&] {
      for (int i = 0; i < 20; ++i) write_file_atomically(path("a"), version);
      --writing;
    });
  }
  while (writing > 0) EXPECT_THAT(read_file(path("a")), testing::AnyOfArray(versions));
  for (std::thread& writer : writers) writer.join();
  EXPECT_THAT(names(), testing::ElementsAre("a"));
}

TEST_F(FileTest, SaysWhyItCannotRead) {
  fs::create_directory(path("folder"));
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0666), 0);
  EXPECT_THROWS(read_file(path("none")), kMissingInput, "none: cannot open: No such file");
  EXPECT_THROWS(read_file(""), kMissingInput, "cannot open");
  EXPECT_THROWS(read_file(path("folder")), kNotARegularFile, "expected a regular file, got a dir");
  EXPECT_THROWS(read_file(path("fifo")), kNotARegularFile, "got a FIFO");
  EXPECT_THROWS(read_file("/dev/zero"), kNotARegularFile, "got a device or socket");
  write_file_durably(path("file"), "x");
  EXPECT_THROWS(read_file(path("file/below")), kMissingInput, "Not a directory");
}

TEST_F(FileTest, SaysThatItMayNotReadOrWrite) {
  write_file_durably(path("secret"), "x");
  fs::permissions(path("secret"), fs::perms::none);
  fs::permissions(folder_, fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  if (geteuid() != 0) fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  {
    const AsNobody nobody;
    EXPECT_THROWS(read_file(path("secret")), kRead, "secret: cannot open: Permission denied");
    EXPECT_THROWS(write_file_atomically(path("a"), "x"), kWrite, "Permission denied");
    EXPECT_THROWS(write_file_durably(path("a"), "x"), kWrite, "Permission denied");
    EXPECT_THROWS(create_folders(path("b/c")), kWrite, "Permission denied");
  }
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_THAT(names(), testing::ElementsAre("secret"));
}

TEST_F(FileTest, WritesOnlyWhereARegularFileIsOrCanBe) {
  fs::create_directory(path("folder"));
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0666), 0);
  fs::create_symlink("/dev/full", path("full"));
  const auto before = names();
  using Write = std::function<void(const fs::path&, std::string_view)>;
  const Write durably = [](const fs::path& to, std::string_view x) { write_file_durably(to, x); };
  const Write whole = [](const fs::path& to, std::string_view x) { write_file_atomically(to, x); };
  for (const Write& write : {whole, durably}) {
    EXPECT_THROWS(write(path("none/a"), "x"), kWrite, "No such file or directory");
    EXPECT_THROWS(write(path("folder"), "x"), kWrite, "irectory");
    EXPECT_THROWS(write(path("fifo"), "x"), kWrite, "fifo");
    EXPECT_THROWS(write(path("full"), "x"), kWrite, "got a device or socket");
    EXPECT_THROWS(write("/dev/full", "x"), kWrite, "got a device or socket");
  }
  EXPECT_EQ(names(), before);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(FileTest, WritesPiecesOneBehindAnother) {
  const std::vector<std::string_view> more = {"bc", "", "def"};
  write_file_durably(path("a"), "a", more);
  EXPECT_EQ(read_file(path("a")), "abcdef");
}

// A limit on the size of files stops a write in its middle.
TEST_F(FileTest, AFailedWriteLeavesTheOldFileAndNothingElse) {
  write_file_atomically(path("a"), "old");
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100000, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string bytes(200000, 'x');
  const auto atomically = error_of([&] { write_file_atomically(path("a"), bytes); });
  const auto durably = error_of([&] { write_file_durably(path("b"), bytes); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(atomically && durably);
  EXPECT_EQ(atomically->code(), ErrorCode::kWrite);
  EXPECT_THAT(atomically->what(), testing::HasSubstr("cannot write: File too large"));
  EXPECT_EQ(read_file(path("a")), "old");
  EXPECT_THAT(names(), testing::ElementsAre("a"));
}

// Runs in a child, which mounts a tiny file system for itself alone.
int write_to_a_full_disk(const fs::path& disk) {
  constexpr int kCannotMount = 77;
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return kCannotMount;
  mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0) return kCannotMount;
  write_file_atomically(disk / "a", "old");
  const auto error =
      error_of([&] { write_file_atomically(disk / "a", std::string(1 << 20, 'x')); });
  if (!error || error->code() != ErrorCode::kDiskFull) return 1;
  if (error->hint().empty()) return 2;
  if (read_file(disk / "a") != "old") return 3;
  return std::distance(fs::directory_iterator(disk), {}) == 1 ? 0 : 4;
}

TEST_F(FileTest, AFullDiskIsSaidAndLeavesTheOldFile) {
  const pid_t child = fork();
  if (child == 0) _exit(write_to_a_full_disk(folder_));
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this system lets us mount nothing";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(FileTest, PublishesAFolderAsAWholeAndReplacesNone) {
  create_folders(path("run/step.tmp"));
  write_file_durably(path("run/step.tmp/model"), "weights");
  publish_folder(path("run/step.tmp"), path("run/step-1"));
  EXPECT_EQ(read_file(path("run/step-1/model")), "weights");
  EXPECT_FALSE(fs::exists(path("run/step.tmp")));

  create_folders(path("run/next.tmp"));
  create_folders(path("run/empty"));
  EXPECT_THROWS(publish_folder(path("run/next.tmp"), path("run/step-1")), kOutputExists, "step-1");
  EXPECT_THROWS(publish_folder(path("run/next.tmp"), path("run/empty")), kOutputExists, "empty");
  EXPECT_THROWS(publish_folder(path("run/none"), path("run/step-2")), kWrite, "none");
  EXPECT_THROWS(publish_folder(path("run/next.tmp"), path("none/step")), kWrite, "none");
}

TEST_F(FileTest, ExchangesFolders) {
  fs::create_directory(path("a"));
  fs::create_directory(path("b"));
  write_file_durably(path("a") / "x", "from a");
  exchange_folders(path("a"), path("b"));
  EXPECT_EQ(read_file(path("b") / "x"), "from a");
  EXPECT_TRUE(fs::is_empty(path("a")));
  EXPECT_THROWS(exchange_folders(path("a"), path("c")), kWrite, "cannot exchange");
  EXPECT_THAT(names(), testing::ElementsAre("a", "b"));
}

TEST_F(FileTest, CreatesFoldersWithTheirParents) {
  create_folders(path("a/b/c/"));
  create_folders(path("a/b/c"));
  EXPECT_TRUE(fs::is_directory(path("a/b/c")));
  write_file_durably(path("file"), "x");
  EXPECT_THROWS(create_folders(path("file")), kWrite, "file: cannot create the folder");
  EXPECT_THROWS(create_folders(path("file/below")), kWrite, "file: cannot create the folder");
}

TEST(FailedWrite, TellsAFullDiskFromTheRest) {
  EXPECT_EQ(code_of_failed_write(ENOSPC), ErrorCode::kDiskFull);
  EXPECT_EQ(code_of_failed_write(EDQUOT), ErrorCode::kDiskFull);
  EXPECT_EQ(code_of_failed_write(EFBIG), ErrorCode::kWrite);
  EXPECT_EQ(code_of_failed_write(EACCES), ErrorCode::kWrite);
}

TEST_F(FileTest, CreatesOneFolder) {
  EXPECT_TRUE(create_folder(path("a/")));
  EXPECT_FALSE(create_folder(path("a")));
  EXPECT_THROWS(create_folder(path("none/b")), kWrite, "none");
  EXPECT_FALSE(fs::exists(path("none")));
  write_file_durably(path("file"), "x");
  EXPECT_THROWS(create_folder(path("file")), kWrite, "file: cannot create the folder");
}

TEST_F(FileTest, FoldersThatWereMadeAreKnownAndGoWhereNobodyUsedThem) {
  fs::create_directory(path("a"));
  const std::vector<fs::path> made = create_folders(path("a/b/c"));
  EXPECT_THAT(made, testing::ElementsAre(path("a/b"), path("a/b/c")));
  EXPECT_THAT(create_folders(path("a/b/c")), testing::IsEmpty());
  write_file_durably(path("a/b/file"), "x");
  remove_empty_folders(made);
  EXPECT_FALSE(fs::exists(path("a/b/c")));
  EXPECT_TRUE(fs::exists(path("a/b/file")));
  const std::string long_name(300, 'n');
  EXPECT_THROWS(create_folders(path("d/e") / long_name), kWrite, "cannot create the folder");
  EXPECT_FALSE(fs::exists(path("d")));
}

TEST_F(FileTest, RemovesAFile) {
  write_file_durably(path("file"), "x");
  remove_file(path("file"));
  remove_file(path("file"));
  EXPECT_THAT(names(), testing::IsEmpty());
  fs::create_directory(path("folder"));
  EXPECT_THROWS(remove_file(path("folder")), kWrite, "folder: cannot remove");
}

TEST_F(FileTest, AFolderThatIsMovedIsNotInPlace) {
  EXPECT_THROWS(HeldFolder(path("none")), kWrite, "none: cannot open the folder");
  fs::create_directory(path("a"));
  const HeldFolder folder(path("a"));
  EXPECT_TRUE(folder.is_in_place());
  fs::rename(path("a"), path("b"));
  EXPECT_FALSE(folder.is_in_place());
  fs::create_directory(path("a"));
  EXPECT_FALSE(folder.is_in_place());
  fs::remove(path("a"));
  fs::rename(path("b"), path("a"));
  EXPECT_TRUE(folder.is_in_place());
}

TEST_F(FileTest, FreeSpaceIsThatOfTheNearestExistingParent) {
  const std::uintmax_t here = free_disk_bytes(folder_);
  EXPECT_GT(here, 0u);
  EXPECT_LE(here, fs::space(folder_).capacity);
  EXPECT_LE(free_disk_bytes(path("not/yet/there")), fs::space(folder_).capacity);
}

}  // namespace
}  // namespace fovea
