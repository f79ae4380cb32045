// SPDX-License-Identifier: Apache-2.0
// How far a run is: one line, drawn again and again on a terminal, printed now and then elsewhere.
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
  kBar,    ///< one line that is drawn again; for interactive terminals only
};

struct ProgressOptions {
  ProgressStyle style = ProgressStyle::kPlain;
  Terminal terminal = {};
  double plain_interval = 10;               ///< least seconds between two plain lines
  std::function<int()> columns = {};        ///< of the terminal, asked at every draw; default 80
  std::function<double()> seconds = {};     ///< default monotonic_seconds
  std::function<std::time_t()> today = {};  ///< time of day, default std::time
};

/// A validation loss, and the update after which it was measured: the weights of that moment.
struct ValidLoss {
  double loss = 0;
  index step = 0;
};

struct ProgressState {
  double fraction = 0;  ///< of the whole run, in [0, 1]
  index step = 0;       ///< updates so far
  index steps = 0;      ///< in the whole run; 0: not known
  double loss = 0;      ///< mean over the last updates
  double tokens_per_second = 0;
  std::optional<double> seconds_left = std::nullopt;  ///< as the run itself reckons
  std::optional<ValidLoss> valid = std::nullopt;
};

/// Elapsed time counts from construction.
class Progress {
 public:
  /// `out` must outlive this.
  Progress(std::ostream& out, ProgressOptions options);

  /// Draws at most ten times a second, prints at most once in plain_interval; the first state is
  /// always shown.
  void update(const ProgressState& state);

  /// The validation loss of the last state is known now: it is shown with the next line.
  void validated(double valid_loss);

  /// What is being done while the state does not change ("evaluating"); drawn at once, on a bar
  /// only, until the next update.
  void busy(std::string_view activity);

  /// A whole line of its own, above the bar.
  void note(std::string_view line);

  /// Shows the last state and ends the line. Later calls begin a new one.
  void finish();

 private:
  double elapsed() const { return options_.seconds() - started_; }
  std::string times() const;
  std::string ending() const;
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
  bool drawn_ = false;    // a bar stands on the last line
  bool current_ = false;  // what is shown is the last state
};

/// "0:07", "12:30", "1:02:03", "2d 03:04"; "?" if negative, not finite or above ten years.
std::string format_duration(double seconds);

/// "950", "24.1k", "1.20M".
std::string format_rate(double per_second);

/// The local time of day at which something ends: "14:32", on another day "Tue 14:32", later than
/// in six days "2026-12-03 14:32".
std::string format_end(std::time_t now, double seconds_left);

}  // namespace fovea
