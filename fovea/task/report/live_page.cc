// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/report/live_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "fovea/base/clock.h"
#include "fovea/base/version.h"
#include "fovea/report/run_report.h"
#include "fovea/task/report/collect.h"
#include "fovea/train/run_state.h"

namespace fovea {

namespace {

// Seconds between two pages, at least: after an event, and between updates.
constexpr double kAfterEvent = 2, kBetween = 10;
constexpr double kShare = 50;  // a page may take this part of the time

std::string name_of(const std::filesystem::path& folder) {
  const std::filesystem::path whole = std::filesystem::absolute(folder).lexically_normal();
  const std::filesystem::path name =
      whole.has_filename() ? whole.filename() : whole.parent_path().filename();
  return name.string();
}

}  // namespace

LivePage::LivePage(TrainingObserver& next, std::filesystem::path folder, PageLanguage language)
    : next_(next), folder_(std::move(folder)), held_(folder_), language_(language) {}

void LivePage::begins(const RunState& state) {
  next_.begins(state);
  draw(true);
}

void LivePage::updated(const UpdateRecord& record, double fraction_done) {
  next_.updated(record, fraction_done);
  draw_if_due(kBetween);
}

void LivePage::evaluated(const EvaluationRecord& record) {
  next_.evaluated(record);
  draw_if_due(kAfterEvent);
}

void LivePage::saved(index step, const std::filesystem::path& checkpoint) {
  next_.saved(step, checkpoint);
  draw_if_due(kAfterEvent);
}

void LivePage::finish() { draw(false); }

void LivePage::draw_if_due(double least_seconds) {
  if (monotonic_seconds() - drawn_ >= std::max(least_seconds, kShare * cost_)) draw(true);
}

void LivePage::draw(bool is_running) {
  if (!held_.is_in_place()) return;  // the trainer says so
  const double begin = monotonic_seconds();
  try {
    RunReport report = report_of_run(folder_, name_of(folder_));
    report.is_running = is_running;
    write_file_atomically(
        folder_ / kReportName,
        draw_run_page({&report, 1},
                      {.language = language_, .made = utc_time(), .version = FOVEA_VERSION}));
  } catch (const Error& error) {
    if (!std::exchange(has_failed_, true)) {
      next_.noticed(fmt::format(
          "the page of the run could not be written, the training goes on: {}", error.what()));
    }
  }
  drawn_ = monotonic_seconds();
  cost_ = drawn_ - begin;
}

}  // namespace fovea
