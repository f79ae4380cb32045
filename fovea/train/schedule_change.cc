// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/schedule_change.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fovea/train/schedule.h"

namespace fovea {

namespace {

bool near(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance * b; }

// Rounded to three digits, as a user would type it.
double rounded(double rate) { return std::stod(fmt::format("{:.2e}", rate)); }

class Change {
 public:
  Change(index updates_per_epoch, const RunState& state)
      : updates_per_epoch_(updates_per_epoch), state_(state) {}

  double rate(const TrainOptions& options) const {
    const Horizon horizon(parse_length(options.stop_after, "--stop-after"), updates_per_epoch_);
    return learning_rate(options, horizon, state_.step, state_.seconds);
  }

  // Options that continue at the learning rate `reached`. Those with which it would jump too are
  // left out.
  std::string ways(TrainOptions options, double reached) const {
    std::vector<std::string> ways;
    if (rounded(reached) <= 0) return {};  // the learning rate is 0 from there on
    options.lr = std::max(rounded(reached), options.min_lr);
    options.schedule = ScheduleKind::kConstant;
    if (near(rate(options), reached, 0.01)) {
      ways.push_back(fmt::format("--schedule constant --lr {}", options.lr));
    }
    options.schedule = ScheduleKind::kWsd;
    // At the end of its schedule a run is at min_lr; to decrease further it needs a lower min_lr.
    const bool lower = options.lr <= 1.01 * options.min_lr;
    if (lower) options.min_lr = rounded(options.lr / 10);
    if (near(rate(options), reached, 0.01)) {
      ways.push_back(fmt::format("--schedule wsd --lr {}{}", options.lr,
                                 lower ? fmt::format(" --min-lr {}", options.min_lr) : ""));
    }
    std::string text;
    for (const std::string& way : ways) text += (text.empty() ? "" : ", or ") + way;
    return text;
  }

 private:
  const index updates_per_epoch_;
  const RunState& state_;
};

}  // namespace

std::string schedule_change(const TrainOptions& before, const TrainOptions& now,
                            index updates_per_epoch, const RunState& state) {
  const Change change(updates_per_epoch, state);
  const double was = change.rate(before), is = change.rate(now);
  if (near(is, was, 1e-9)) return {};
  const std::string text = fmt::format(
      "the schedule changes: learning rate {:.3g} -> {:.3g} at update {}", was, is, state.step + 1);
  const bool asked_for = now.lr != before.lr || now.min_lr != before.min_lr ||
                         now.schedule != before.schedule || now.warmup != before.warmup ||
                         now.decay_share != before.decay_share;
  if (asked_for || near(is, was, 0.01)) return text;
  const std::string ways = change.ways(now, was);
  return ways.empty() ? text : text + "; without that jump: " + ways;
}

}  // namespace fovea
