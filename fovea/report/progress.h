// SPDX-License-Identifier: Apache-2.0
// Shows the progress of a run: on a terminal as one line that is redrawn, elsewhere as a line
// printed now and then.
#pragma once

#include <ctime>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "fovea/base/types.h"
#include "fovea/report/terminal.h"

namespace fovea {

enum class ProgressStyle {
  kNone,
  kPlain,  ///< whole lines, without carriage returns or escape codes
  kBar,    ///< one line that is redrawn; for interactive terminals only
};

struct ProgressOptions {
  ProgressStyle style = ProgressStyle::kPlain;
  Terminal terminal = {};
  double plain_interval = 10;               ///< minimum seconds between two plain lines
  std::string unit = "token";               ///< the unit that is counted by the second
  std::function<int()> columns = {};        ///< of the terminal, asked at every draw; default 80
  std::function<double()> seconds = {};     ///< default monotonic_seconds
  std::function<std::time_t()> today = {};  ///< time of day, default std::time
  /// Puts what a line says into the language of the user; default: English, as it is.
  std::function<std::string(std::string_view)> words = {};
};

/// A validation loss, and the update after which it was measured.
struct ValidLoss {
  double loss = 0;
  index step = 0;
};

struct ProgressState {
  double fraction = 0;    ///< of the whole run, in [0, 1]
  std::string work = {};  ///< what is computed, in a run without updates; else ""
  index step = 0;         ///< updates so far
  index steps = 0;        ///< in the whole run; 0: not known
  double loss = 0;        ///< mean over the last updates
  double tokens_per_second = 0;
  std::optional<double> seconds_left = std::nullopt;  ///< the run's own estimate
  std::optional<ValidLoss> valid = std::nullopt;
};

/// Elapsed time counts from construction.
class Progress {
 public:
  /// `out` must outlive this.
  Progress(std::ostream& out, ProgressOptions options);

  /// A bar is redrawn at most ten times a second, a plain line printed at most once per
  /// plain_interval. The first state is always shown.
  void update(const ProgressState& state);

  /// Sets the validation loss of the last state; the next line shows it.
  void validated(double valid_loss);

  /// Shows an activity during which the state does not change ("evaluating"), at once, until the
  /// next update. Only a bar shows it.
  void busy(std::string_view activity);

  /// A whole line of its own, above the bar.
  void note(std::string_view line);

  /// Shows the last state and ends the line. Later calls begin a new line.
  void finish();

 private:
  double elapsed() const { return options_.seconds() - started_; }
  std::string time_left() const;
  std::string end_time() const;
  std::string valid_text() const;
  std::string bar_line() const;
  std::string bar(index width) const;
  std::string plain_line() const;
  void draw();

  std::ostream& out_;
  ProgressOptions options_;
  double started_;
  std::optional<double> shown_;  // when
  std::optional<ProgressState> state_;
  std::string activity_;
  bool drawn_ = false;    // the last line on the terminal is a bar
  bool current_ = false;  // the last state is the one that is shown
};

/// "0:07", "12:30", "1:02:03", "2d 03:04"; "?" if negative, not finite or above ten years.
std::string format_duration(double seconds);

/// "950", "24.1k", "1.20M".
std::string format_rate(double per_second);

/// The local time at which something ends: "14:32" today, "Tue 14:32" within six days, "2026-12-03
/// 14:32" later.
std::string format_end(std::time_t now, double seconds_left);

}  // namespace fovea
