// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <vector>

#include "fovea/base/clock.h"

namespace fovea {

namespace {

constexpr double kDrawInterval = 0.1;
constexpr index kWidestBar = 40;
constexpr index kNarrowestBar = 8;
constexpr double kTenYears = 3652.5 * 86400;

constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr std::string_view kCyan = "\x1b[36m";
constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";

// Rounded down, so that 100 appears only when the run is complete.
int percent(double fraction) {
  return static_cast<int>(std::floor(100 * std::clamp(fraction, 0.0, 1.0)));
}

std::string steps(const ProgressState& state) {
  return state.steps > 0 ? fmt::format("{}/{}", state.step, state.steps)
                         : fmt::format("{}", state.step);
}

std::string number(double loss) {
  return std::abs(loss) < 1e6 ? fmt::format("{:.4f}", loss) : fmt::format("{:.4g}", loss);
}

std::string repeated(std::string_view glyph, index n) {
  std::string text;
  for (index i = 0; i < n; ++i) text += glyph;
  return text;
}

}  // namespace

std::string format_duration(double seconds) {
  if (!(seconds >= 0 && seconds < kTenYears)) return "?";
  const auto s = static_cast<index>(seconds);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}d {:02}:{:02}", s / 86400, s / 3600 % 24, s / 60 % 60);
}

std::string format_rate(double per_second) {
  if (!(per_second >= 0 && per_second < 1e15)) return "?";
  if (per_second < 999.5) return fmt::format("{:.0f}", per_second);
  if (per_second < 999950) return fmt::format("{:.1f}k", per_second / 1e3);
  return fmt::format("{:.2f}M", per_second / 1e6);
}

std::string format_end(std::time_t now, double seconds_left) {
  constexpr const char* kDays[] = {"Sun {}", "Mon {}", "Tue {}", "Wed {}",
                                   "Thu {}", "Fri {}", "Sat {}"};
  if (!(seconds_left >= 0 && seconds_left < kTenYears)) return "?";
  const std::time_t end = now + static_cast<std::time_t>(std::llround(seconds_left));
  std::tm today{}, day{};
  ::localtime_r(&now, &today);
  ::localtime_r(&end, &day);
  std::string clock = fmt::format("{:02}:{:02}", day.tm_hour, day.tm_min);
  if (day.tm_year == today.tm_year && day.tm_yday == today.tm_yday) return clock;
  if (seconds_left < 6 * 86400) return fmt::format(fmt::runtime(kDays[day.tm_wday]), clock);
  return fmt::format("{}-{:02}-{:02} {}", 1900 + day.tm_year, 1 + day.tm_mon, day.tm_mday, clock);
}

Progress::Progress(std::ostream& out, ProgressOptions options)
    : out_(out), options_(std::move(options)) {
  if (!options_.columns) options_.columns = [] { return 80; };
  if (!options_.seconds) options_.seconds = monotonic_seconds;
  if (!options_.today) options_.today = [] { return std::time(nullptr); };
  if (!options_.words) options_.words = [](std::string_view words) { return std::string(words); };
  started_ = options_.seconds();
}

void Progress::update(const ProgressState& state) {
  state_ = state;
  activity_.clear();
  current_ = false;
  const double interval =
      options_.style == ProgressStyle::kBar ? kDrawInterval : options_.plain_interval;
  if (!shown_ || options_.seconds() - *shown_ >= interval) draw();
}

void Progress::validated(double valid_loss) {
  if (!state_) return;
  state_->valid = {valid_loss, state_->step};
  activity_.clear();
}

void Progress::busy(std::string_view activity) {
  activity_ = activity;
  if (options_.style == ProgressStyle::kBar && state_) draw();
}

void Progress::note(std::string_view line) {
  if (drawn_) out_ << kEraseLine;
  out_ << line << '\n';
  if (drawn_) draw();
  out_.flush();
}

void Progress::finish() {
  activity_.clear();
  if (state_ && (!current_ || drawn_)) draw();
  if (drawn_) out_ << '\n' << std::flush;
  drawn_ = false;
  shown_.reset();
}

void Progress::draw() {
  if (options_.style == ProgressStyle::kNone) return;
  if (options_.style == ProgressStyle::kBar) {
    out_ << kEraseLine << bar_line() << std::flush;
    drawn_ = true;
  } else {
    out_ << plain_line() << std::endl;
  }
  shown_ = options_.seconds();
  current_ = true;
}

std::string Progress::time_left() const {
  const auto left = state_->seconds_left;
  return left ? format_duration(*left + 0.5) : "?";
}

std::string Progress::end_time() const {
  const auto left = state_->seconds_left;
  return left ? format_end(options_.today(), *left) : "?";
}

// The validation loss belongs to earlier weights than the training loss beside it, so the text
// names the update.
std::string Progress::valid_text() const {
  return fmt::format("valid {} at update {}", number(state_->valid->loss), state_->valid->step);
}

// Each line is one sentence of one format, so that it can be said in another language.
std::string Progress::plain_line() const {
  const std::string took = format_duration(elapsed()), left = time_left(), end = end_time();
  if (!state_->work.empty()) {
    return options_.words(fmt::format("{} ({}%): {} elapsed, {} left, ends {}", state_->work,
                                      percent(state_->fraction), took, left, end));
  }
  const std::string done =
      fmt::format("update {} ({}%)", steps(*state_), percent(state_->fraction));
  const std::string loss = number(state_->loss), rate = format_rate(state_->tokens_per_second);
  if (!state_->valid) {
    return options_.words(fmt::format("{}: train loss {}, {} {}s/s, {} elapsed, {} left, ends {}",
                                      done, loss, rate, options_.unit, took, left, end));
  }
  return options_.words(fmt::format(
      "{}: train loss {}, valid {} at update {}, {} {}s/s, {} elapsed, {} left, ends {}", done,
      loss, number(state_->valid->loss), state_->valid->step, rate, options_.unit, took, left,
      end));
}

// Fields that do not fit beside a bar of the smallest width are left out, the least important
// first.
std::string Progress::bar_line() const {
  struct Field {
    std::string text;
    int leave_out;  // 1 is left out first; 0 never
  };
  std::vector<Field> fields;
  if (state_->work.empty()) {
    fields = {{steps(*state_), 4}, {fmt::format("loss {}", number(state_->loss)), 0}};
    if (state_->valid) fields.push_back({valid_text(), 2});
    fields.push_back(
        {fmt::format("{} {}s/s", format_rate(state_->tokens_per_second), options_.unit), 3});
  } else {
    fields.push_back({state_->work, 0});
  }
  fields.push_back(
      {fmt::format("{} elapsed, {} left", format_duration(elapsed()), time_left()), 5});
  fields.push_back({fmt::format("ends {}", end_time()), 1});
  if (!activity_.empty()) fields.push_back({activity_, 0});
  for (Field& field : fields) field.text = options_.words(field.text);
  const std::string head = fmt::format("{:3}% ", percent(state_->fraction));
  const auto width = [&] {
    index columns = display_width(head);
    for (const Field& field : fields) columns += 2 + display_width(field.text);
    return columns;
  };
  const index room = options_.columns() - 1;  // writing to the last column would wrap the line
  for (int next = 1; next <= 5 && width() + kNarrowestBar > room; ++next) {
    std::erase_if(fields, [&](const Field& field) { return field.leave_out == next; });
  }
  std::string tail;
  for (const Field& field : fields) tail += "  " + field.text;
  const index left_over = room - width();
  if (left_over < kNarrowestBar) return fit_columns(head + tail, room);
  return head + bar(std::min(left_over, kWidestBar)) + tail;
}

// If the glyphs allow it, the bar moves in steps of half a column.
std::string Progress::bar(index width) const {
  const double fraction = std::clamp(state_->fraction, 0.0, 1.0);
  const auto halves = static_cast<index>(fraction * static_cast<double>(2 * width));
  const index full = halves / 2;
  std::string done, rest;
  if (options_.terminal.unicode) {
    done = repeated("━", full) + (halves % 2 == 1 ? "╸" : "");
    rest = repeated("─", width - full - halves % 2);
  } else {
    done = repeated("#", full);
    rest = repeated(".", width - full);
  }
  if (!options_.terminal.color) return done + rest;
  return fmt::format("{}{}{}{}{}{}", kCyan, done, kPlain, kDim, rest, kPlain);
}

}  // namespace fovea
