// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/task/report/run_page.h"
#include "tests/task/classify/tiny.h"
#include "tests/train/toy.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

struct LivePageTest : testing::Test {
  LivePageTest() { std::filesystem::create_directories(run); }

  void train(TrainingObserver& live) {
    train_classifier(Context(1), prepare_run(tiny_classifier(folder)), run, {}, live);
  }
  std::string page() { return read_file(run / kReportName); }

  const TestFolder folder;
  const std::filesystem::path run = folder / "run";
  ToyObserver observer;
};

TEST_F(LivePageTest, IsThereFromTheBeginning) {
  std::string first;
  struct Looks : ToyObserver {
    void evaluation_begins(index) override { look(); }
    std::function<void()> look;
  } looks;
  looks.look = [&] { first = page(); };
  LivePage live(looks, run, PageLanguage::kEnglish);
  train(live);
  EXPECT_THAT(first, HasSubstr("The training goes on"));
  live.finish();
  EXPECT_THAT(page(), Not(HasSubstr("The training goes on")));
  EXPECT_THAT(page(), HasSubstr("Training report: run"));
  EXPECT_THAT(page(), HasSubstr("<th scope=\"row\">60</th>"));
  EXPECT_EQ(looks.updates.size(), 60u);  // it hands on what it is told
  EXPECT_EQ(looks.evaluations.size(), 3u);
  EXPECT_EQ(looks.saves.size(), 3u);
}

TEST_F(LivePageTest, ThatCannotBeWrittenIsNoticedOnceAndTheTrainingGoesOn) {
  std::filesystem::create_directories(run / kReportName);
  LivePage live(observer, run, PageLanguage::kChinese);
  train(live);
  live.finish();
  EXPECT_EQ(observer.updates.size(), 60u);
  ASSERT_EQ(observer.notices.size(), 1u);
  EXPECT_THAT(observer.notices[0], HasSubstr("the training goes on"));
}

TEST_F(LivePageTest, WritesNothingIntoAnotherFolderOfThatName) {
  LivePage live(observer, run, PageLanguage::kEnglish);
  std::filesystem::rename(run, folder / "moved");
  std::filesystem::create_directories(run);
  live.finish();
  EXPECT_FALSE(std::filesystem::exists(run / kReportName));
}

}  // namespace
}  // namespace fovea
