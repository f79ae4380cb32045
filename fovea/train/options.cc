// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/options.h"

#include <charconv>
#include <cmath>
#include <string>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/config/field.h"

namespace fovea {

namespace {

// More than any run needs, and exact in a double.
constexpr double kMostUpdates = 1e15;

[[noreturn]] void fail_length(std::string_view text, std::string_view option) {
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{}: '{}' is not a length of training", option, text),
              "write a number above 0 and its unit: 10e (epochs), 5000u (updates), 2h (hours), 30m "
              "(minutes) or 90s (seconds)");
}

}  // namespace

Length parse_length(std::string_view text, std::string_view option) {
  Length length;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, length.value);
  if (error != std::errc{} || !std::isfinite(length.value) || length.value <= 0) {
    fail_length(text, option);
  }
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit == "e") {
    length.unit = LengthUnit::kEpochs;
  } else if (unit == "h" || unit == "m" || unit == "s") {
    length.unit = LengthUnit::kHours;
    if (unit == "m") length.value /= 60;
    if (unit == "s") length.value /= 3600;
  } else if (!unit.empty() && unit != "u") {
    fail_length(text, option);
  }
  if (length.unit == LengthUnit::kUpdates && length.value != std::floor(length.value)) {
    fail_length(text, option);
  }
  return length;
}

index to_updates(Length length, index updates_per_epoch, std::string_view option) {
  if (length.unit == LengthUnit::kHours) {
    throw Error(ErrorCode::kOptionValue, fmt::format("{}: a time cannot be used here", option),
                "count in updates (250u) or epochs (1e): then every run does the same");
  }
  const double per_unit =
      length.unit == LengthUnit::kEpochs ? static_cast<double>(updates_per_epoch) : 1.0;
  const double updates = std::ceil(length.value * per_unit);
  if (updates > kMostUpdates) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("{}: {:g} updates are too many", option, updates),
                "choose a length that a run can reach");
  }
  return static_cast<index>(updates);
}

Horizon::Horizon(Length stop_after, index updates_per_epoch) {
  if (stop_after.unit == LengthUnit::kHours) {
    seconds_ = stop_after.value * 3600;
  } else {
    updates_ = to_updates(stop_after, updates_per_epoch, "--stop-after");
  }
}

double Horizon::fraction(index step, double seconds) const {
  return in_hours() ? seconds / seconds_
                    : static_cast<double>(step) / static_cast<double>(updates_);
}

void check_options(const TrainOptions& o) {
  check_ranges(o);
  require_option(o.min_lr >= 0 && o.min_lr <= o.lr, "min_lr", o.min_lr, "between 0 and --lr ({})",
                 o.lr);
  parse_length(o.stop_after, "--stop-after");
  to_updates(parse_length(o.eval_every, "--eval-every"), 1, "--eval-every");
  to_updates(parse_length(o.save_every, "--save-every"), 1, "--save-every");
}

}  // namespace fovea
