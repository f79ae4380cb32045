// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/schedule.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace fovea {

namespace {

double share_done(const TrainOptions& options, const Horizon& horizon, index step, double seconds) {
  if (horizon.in_hours()) return std::clamp(horizon.fraction(step, seconds), 0.0, 1.0);
  const index rest = horizon.updates() - options.warmup;
  if (rest <= 0) return 1;
  return std::clamp(static_cast<double>(step - options.warmup) / static_cast<double>(rest), 0.0,
                    1.0);
}

}  // namespace

double learning_rate(const TrainOptions& options, const Horizon& horizon, index step,
                     double seconds) {
  const double done_after_this = static_cast<double>(step + 1);
  if (step < options.warmup) {
    return options.lr * done_after_this / static_cast<double>(options.warmup);
  }
  const double r = share_done(options, horizon, step, seconds);
  const double range = options.lr - options.min_lr;
  switch (options.schedule) {
    case ScheduleKind::kCosine:
      return options.min_lr + range * 0.5 * (1 + std::cos(std::numbers::pi * r));
    case ScheduleKind::kLinear:
      return options.min_lr + range * (1 - r);
    case ScheduleKind::kInverseSqrt: {
      const double warmup = static_cast<double>(std::max<index>(options.warmup, 1));
      return std::max(options.min_lr, options.lr * std::sqrt(warmup / done_after_this));
    }
    case ScheduleKind::kWsd: {
      const double left = 1 - std::min(horizon.fraction(step, seconds), 1.0);
      const double q = std::max(0.0, 1 - left / options.decay_share);
      return options.min_lr + range * (1 - std::sqrt(q));
    }
    case ScheduleKind::kConstant:
      break;
  }
  return options.lr;
}

std::string warmup_note(index warmup, index updates) {
  if (updates <= 0 || warmup <= updates / 2) return {};
  return fmt::format(
      "the learning rate rises for {} of the {} updates; --warmup {} would be a tenth of them",
      std::min(warmup, updates), updates, std::max<index>(1, updates / 10));
}

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
  return ways.empty() ? text : fmt::format("{}; without that jump: {}", text, ways);
}

}  // namespace fovea
