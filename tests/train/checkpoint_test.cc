// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/checkpoint.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "fovea/base/file.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<NamedFile> files_of(index step) {
  return {{"state.json", "{\"step\":" + std::to_string(step) + "}"},
          {"model.safetensors", std::string(5000, static_cast<char>('a' + step % 23))}};
}

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "fovea_checkpoint_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    run_ = name;
    folder_ = run_ / "checkpoints";
  }
  void TearDown() override { fs::remove_all(run_); }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      found.push_back(entry.path().filename());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  void save(index step, index keep = 2) { save_checkpoint(folder_, step, files_of(step), keep); }

  void damage(index step) {
    write_file_durably(folder_ / fmt::format("step-{:06}", step) / "state.json", "{\"step\":x}");
  }

  fs::path run_, folder_;
};

TEST_F(CheckpointTest, WhatIsSavedIsLoaded) {
  EXPECT_EQ(save_checkpoint(folder_, 500, files_of(500), 2).path, folder_ / "step-000500");
  const NewestCheckpoint newest = load_newest_checkpoint(folder_);
  EXPECT_EQ(newest.checkpoint.step, 500);
  EXPECT_EQ(newest.checkpoint.path, folder_ / "step-000500");
  EXPECT_EQ(newest.checkpoint.bytes("state.json"), "{\"step\":500}");
  EXPECT_EQ(newest.checkpoint.bytes("model.safetensors"), files_of(500)[1].bytes);
  EXPECT_THAT(newest.warnings, IsEmpty());
  EXPECT_THROWS(newest.checkpoint.bytes("none"), kModelDamaged, "step-000500: none is missing");
}

TEST_F(CheckpointTest, KeepsTheNewest) {
  for (const index step : {1, 2, 999999, 1000000, 1000001}) save(step, 3);
  EXPECT_THAT(names(), ElementsAre("step-1000000", "step-1000001", "step-999999"));
  EXPECT_EQ(load_newest_checkpoint(folder_).checkpoint.step, 1000001);
  save(1000002, 1);
  EXPECT_THAT(names(), ElementsAre("step-1000002"));
}

TEST_F(CheckpointTest, GoingOnFromAnEarlierOneGivesUpTheLater) {
  for (const index step : {100, 200, 300}) save(step, 5);
  save(150, 2);
  EXPECT_THAT(names(), ElementsAre("step-000100", "step-000150"));
}

TEST_F(CheckpointTest, AStepMayBeSavedAgain) {
  save(100);
  save_checkpoint(folder_, 100, {{"state.json", "again"}}, 2);
  EXPECT_THAT(names(), ElementsAre("step-000100"));
  const Checkpoint checkpoint = load_checkpoint(folder_ / "step-000100");
  EXPECT_EQ(checkpoint.bytes("state.json"), "again");
  EXPECT_EQ(checkpoint.files.size(), 1u);
}

TEST_F(CheckpointTest, ADamagedOneIsPassedOverWithAWarning) {
  for (const index step : {100, 200, 300}) save(step, 3);
  damage(300);
  fs::remove(folder_ / "step-000200" / kManifestName);
  const NewestCheckpoint newest = load_newest_checkpoint(folder_);
  EXPECT_EQ(newest.checkpoint.step, 100);
  EXPECT_THAT(newest.warnings,
              ElementsAre(HasSubstr("step-000300/state.json: expected 12 bytes, got 10"),
                          HasSubstr("step-000200: no manifest")));
  EXPECT_THROWS(load_checkpoint(folder_ / "step-000300"), kModelDamaged, "step-000300/state.json");
}

TEST_F(CheckpointTest, IfNoneIsWholeTheNewestIsNamed) {
  for (const index step : {100, 200}) save(step);
  damage(100);
  damage(200);
  EXPECT_THROWS(load_newest_checkpoint(folder_), kModelDamaged,
                "no checkpoint is whole; the newest: " + (folder_ / "step-000200").string());
}

TEST_F(CheckpointTest, AnInterruptedFirstSaveLeavesNoCheckpoint) {
  EXPECT_THAT(checkpoint_steps(folder_), IsEmpty());
  fs::create_directories(folder_ / "step-000100.tmp.1");
  EXPECT_THAT(checkpoint_steps(folder_), IsEmpty());
  save(100);
  damage(100);
  EXPECT_THAT(checkpoint_steps(folder_), ElementsAre(100));
}

TEST_F(CheckpointTest, StepsAreOrderedAsNumbers) {
  for (const index step : {999999, 1000000, 5})
    fs::create_directories(checkpoint_path(folder_, step));
  EXPECT_THAT(checkpoint_steps(folder_), ElementsAre(5, 999999, 1000000));
}

TEST_F(CheckpointTest, RemovingAllLeavesWhatIsNotOurs) {
  for (const index step : {100, 200}) save(step);
  damage(200);
  fs::create_directories(folder_ / "step-000300.tmp.12" / "x");
  for (const char* theirs : {"step-by-step", "step-000100.old", "step-5", "notes"}) {
    fs::create_directories(folder_ / theirs);
  }
  remove_checkpoints(folder_);
  EXPECT_THAT(names(), ElementsAre("notes", "step-000100.old", "step-5", "step-by-step"));
  for (const std::string& theirs : names()) fs::remove(folder_ / theirs);
  remove_checkpoints(folder_);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(CheckpointTest, LaterOnesCanBeRemoved) {
  for (const index step : {100, 200}) save(step);
  remove_checkpoints_after(folder_, 200);
  EXPECT_THAT(checkpoint_steps(folder_), ElementsAre(100, 200));
  remove_checkpoints_after(folder_, 100);
  EXPECT_THAT(checkpoint_steps(folder_), ElementsAre(100));
  remove_checkpoints_after(folder_ / "nowhere", 0);
}

TEST_F(CheckpointTest, WithoutAnyThereIsNothingToResume) {
  EXPECT_THROWS(load_newest_checkpoint(folder_), kNoCheckpoint, "no checkpoint to resume from");
  fs::create_directories(folder_ / "step-12");  // not a name that we give
  fs::create_directories(folder_ / "step-000012x");
  EXPECT_THROWS(load_newest_checkpoint(folder_), kNoCheckpoint, "no checkpoint to resume from");
  EXPECT_THROWS(load_checkpoint(folder_ / "step-000001"), kNoCheckpoint, "no such checkpoint");
}

// Folders may be renamed by hand, files may not change places between them.
TEST_F(CheckpointTest, FilesOfAnotherCheckpointAreFound) {
  for (const index step : {100, 200}) save(step);
  const fs::path one = folder_ / "step-000100", other = folder_ / "step-000200";
  fs::copy_file(one / "model.safetensors", other / "model.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_THROWS(load_checkpoint(other), kModelDamaged, "model.safetensors: wrong checksum");
}

// Whoever holds the lock is the only one who saves: a process that lives has its number by chance.
TEST_F(CheckpointTest, InterruptedSavesAreRemovedAndNothingElse) {
  const std::string ours = "step-000200.tmp.12",
                    living = fmt::format("step-000300.tmp.{}", getppid());
  const auto leave = [&] {
    for (const std::string& name : {ours, ours + ".aside", living, std::string("notes.tmp.1"),
                                    std::string("step-000300.tmp.old")}) {
      fs::create_directories(folder_ / name / "x");
    }
  };
  leave();
  EXPECT_THAT(prune_checkpoints(folder_, 100, 2), IsEmpty());
  EXPECT_THAT(names(), ElementsAre("notes.tmp.1", "step-000300.tmp.old"));
  leave();
  save(100);
  EXPECT_THAT(names(), ElementsAre("notes.tmp.1", "step-000100", "step-000300.tmp.old"));
}

TEST_F(CheckpointTest, PruningKeepsTheNewestUpToAStepAndWhatIsLater) {
  for (const index step : {1, 2, 3, 4}) save(step, 9);
  EXPECT_THAT(prune_checkpoints(folder_, 3, 2), IsEmpty());
  EXPECT_THAT(checkpoint_steps(folder_), ElementsAre(2, 3, 4));
  EXPECT_THAT(prune_checkpoints(folder_ / "nowhere", 3, 2), IsEmpty());
}

// Root may remove anything: it has to be somebody else.
TEST_F(CheckpointTest, APruningThatFailsIsSaidAndTriedAgain) {
  save(1);
  save(2);
  const fs::path step = folder_ / "step-000001", kept = step / "kept";
  fs::create_directories(kept / "x");
  for (const fs::path& path : {run_, folder_, step}) fs::permissions(path, fs::perms::all);
  fs::permissions(kept, fs::perms::owner_read | fs::perms::owner_exec);
  const bool root = geteuid() == 0 && seteuid(65534) == 0;
  const SavedCheckpoint saved = save_checkpoint(folder_, 3, files_of(3), 2);
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_THAT(saved.warnings, ElementsAre(HasSubstr("cannot be removed: Permission denied")));
  EXPECT_THAT(checkpoint_steps(folder_), ElementsAre(2, 3));
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    fs::permissions(entry.path(), fs::perms::owner_all);
  }
  EXPECT_THAT(save_checkpoint(folder_, 4, files_of(4), 2).warnings, IsEmpty());
  EXPECT_THAT(names(), ElementsAre("step-000003", "step-000004"));
}

TEST_F(CheckpointTest, AFolderThatCannotBeListedIsNotEmpty) {
  write_file_durably(folder_, "a file");
  EXPECT_THROWS(checkpoint_steps(folder_), kRead, "cannot list the folder");
}

TEST_F(CheckpointTest, LoadingRemovesNothing) {
  save(100);
  const std::string dead = "step-000200.tmp.12";
  fs::create_directories(folder_ / dead / "x");
  EXPECT_EQ(load_newest_checkpoint(folder_).checkpoint.step, 100);
  EXPECT_THAT(names(), ElementsAre("step-000100", dead));
}

TEST_F(CheckpointTest, AFailedSaveChangesNothing) {
  save(100);
  const std::vector<NamedFile> bad = {{"state.json", "{}"}, {"../escape", ""}};
  EXPECT_THROWS(save_checkpoint(folder_, 200, bad, 2), kInternal, "cannot list");
  const std::vector<NamedFile> long_name = {{"a", "x"}, {std::string(300, 'n'), "x"}};
  EXPECT_THROWS(save_checkpoint(folder_, 200, long_name, 2), kWrite, "cannot create");
  EXPECT_THROWS(save_checkpoint(folder_, -1, {}, 2), kShape, "step -1");
  EXPECT_THROWS(save_checkpoint(folder_, 200, {}, 0), kShape, "keeping 0");
  EXPECT_THAT(names(), ElementsAre("step-000100"));
  EXPECT_EQ(load_newest_checkpoint(folder_).checkpoint.step, 100);
}

TEST_F(CheckpointTest, ASaveCreatesNoRun) {
  const fs::path moved = run_ / "moved";
  EXPECT_THROWS(save_checkpoint(moved / "checkpoints", 1, files_of(1), 2), kWrite, "moved");
  EXPECT_FALSE(fs::exists(moved));
}

TEST_F(CheckpointTest, AFirstSaveThatFailsLeavesNoFolder) {
  const std::vector<NamedFile> long_name = {{std::string(300, 'n'), "x"}};
  EXPECT_THROWS(save_checkpoint(folder_, 200, long_name, 2), kWrite, "cannot create");
  EXPECT_FALSE(fs::exists(folder_));
}

// Killed at a random moment, again and again: there is always a whole checkpoint, and at most the
// one that was being saved is lost.
TEST_F(CheckpointTest, AKillLosesAtMostTheSaveUnderWay) {
  save(0);
  index last = 0;
  for (int round = 0; round < 40; ++round) {
    int progress[2];
    ASSERT_EQ(pipe(progress), 0);
    const pid_t child = fork();
    if (child == 0) {
      for (index step = last + 1;; ++step) {
        save_checkpoint(folder_, step, files_of(step), 2);
        if (write(progress[1], &step, sizeof step) < 0) _exit(1);
      }
    }
    close(progress[1]);
    index saved = last;
    if (read(progress[0], &saved, sizeof saved) < 0) saved = last;
    usleep(static_cast<useconds_t>(997 * round % 7919));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (index step; read(progress[0], &step, sizeof step) == sizeof step;) saved = step;
    close(progress[0]);

    const NewestCheckpoint newest = load_newest_checkpoint(folder_);
    EXPECT_THAT(newest.warnings, IsEmpty());
    EXPECT_GE(newest.checkpoint.step, saved);
    EXPECT_LE(newest.checkpoint.step, saved + 1);
    EXPECT_EQ(newest.checkpoint.files[1].bytes, files_of(newest.checkpoint.step)[1].bytes);
    last = newest.checkpoint.step;
  }
  save(last + 1);
  EXPECT_EQ(names().size(), 2u);
}

}  // namespace
}  // namespace fovea
