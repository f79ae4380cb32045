// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/run_report.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <string>

#include "tests/report/xml.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

RunReport run_of(std::string name, int updates) {
  RunReport run{.name = std::move(name),
                .kind = {"classifier", "分类器"},
                .unit = {"nats per text", "nat/文本"},
                .updates = updates};
  for (int i = 1; i <= updates; ++i) {
    const PlotPoint p{static_cast<double>(i), 1 + std::sin(i * 0.7) / i};
    run.losses.last_batch.push_back(p);
    run.losses.running_mean.push_back(p);
    run.lr.push_back(p);
    run.gradient_norm.push_back(p);
    run.speed.push_back(p);
  }
  run.losses.validation = {{static_cast<double>(updates), 0.5}};
  run.losses.best = updates;
  run.settings = {{"recipe.lr", "0.1", "0.1"}};
  run.data = {{{kDataFingerprint, "数据指纹"}, "abc"}};
  return run;
}

std::string main_of(const std::string& page) {
  const std::size_t begin = page.find("<main>"), end = page.find("</main>");
  return page.substr(begin, end - begin + 7);
}

TEST(RunPage, IsWellFormedAndSelfContained) {
  const std::vector<RunReport> runs = {run_of("a", 30), run_of("b", 20)};
  const std::string page = draw_run_page(runs, {.made = "2026-01-01", .version = "1"});
  EXPECT_EQ(xml_error(main_of(page)), "");
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* outside : {"src=\"http", "href=\"http", "url(http", "@import"}) {
    EXPECT_FALSE(page.find(outside) != page.npos) << outside;
  }
  EXPECT_EQ(page, draw_run_page(runs, {.made = "2026-01-01", .version = "1"}));
}

TEST(RunPage, HasNoIdTwice) {
  std::vector<RunReport> runs = {run_of("a", 30), run_of("b", 20)};
  for (RunReport& run : runs) {
    run.entropy = run.max_logit = run.distance = {{{{1, 2}, {2, 1}}}};
    run.metrics = run.training_metrics = {{"accuracy", {{1, 2}}}, {"macro_f1", {{1, 2}}}};
  }
  runs[1].unit = {"nats per token", "nat/词元"};
  const std::string page = draw_run_page(runs, {});
  std::set<std::string> ids;
  const std::string mark = " id=\"";
  for (std::size_t at = page.find(mark); at != page.npos; at = page.find(mark, at + 1)) {
    const std::size_t begin = at + mark.size();
    EXPECT_TRUE(ids.insert(page.substr(begin, page.find('"', begin) - begin)).second);
  }
  EXPECT_GE(ids.size(), 12u);
}

TEST(RunPage, HostileNamesStayText) {
  const std::string hostile = "</script><img src=x onerror=alert(1)>\"'&";
  RunReport run = run_of(hostile, 5);
  run.settings = {{hostile, hostile, hostile + "2"}};
  run.metrics = {{hostile, {{5, 1}}}};
  run.evaluation =
      ReportEvaluation{.source = hostile,
                       .numbers = {{hostile, 1}},
                       .confusion = ConfusionPlot{.title = "", .labels = {hostile}, .counts = {5}}};
  const std::string page = draw_run_page({&run, 1}, {.made = hostile, .version = hostile});
  EXPECT_EQ(xml_error(main_of(page)), "");
  EXPECT_THAT(page, Not(HasSubstr("<img")));
}

TEST(RunPage, SaysThatATrainingGoesOn) {
  RunReport run = run_of("a", 5);
  EXPECT_THAT(draw_run_page({&run, 1}, {}), Not(HasSubstr("The training goes on")));
  run.is_running = true;
  EXPECT_THAT(draw_run_page({&run, 1}, {}), HasSubstr("The training goes on"));
  EXPECT_THAT(draw_run_page({&run, 1}, {.language = PageLanguage::kChinese}),
              HasSubstr("训练仍在进行"));
}

TEST(RunPage, SaysThatDataDiffer) {
  std::vector<RunReport> runs = {run_of("a", 5), run_of("b", 5)};
  EXPECT_THAT(draw_run_page(runs, {}), Not(HasSubstr("These runs have different data")));
  runs[1].data[0].value = "other";
  EXPECT_THAT(draw_run_page(runs, {}), HasSubstr("These runs have different data"));
}

TEST(RunPage, OfALongRunOrManyRunsStaysBelowItsLimit) {
  const RunReport run = run_of("long", 100000);
  EXPECT_LT(draw_run_page({&run, 1}, {}).size(), std::size_t{1'500'000});
  std::vector<RunReport> runs;
  for (int n = 0; n < 50; ++n) runs.push_back(run_of("run " + std::to_string(n), 5000));
  const std::string page = draw_run_page(runs, {});
  EXPECT_LT(page.size(), kMostPageBytes);
  EXPECT_THAT(page, HasSubstr("are left out for more than 8 runs"));
}

TEST(RunPage, NeedsARun) { EXPECT_THROWS(draw_run_page({}, {}), kShape, "needs a run"); }

}  // namespace
}  // namespace fovea
