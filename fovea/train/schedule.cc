// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

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

}  // namespace fovea
