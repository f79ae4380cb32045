// SPDX-License-Identifier: Apache-2.0
// Lengths of training: "10e" (epochs), "5000u" (updates), "2h" (hours).
#pragma once

#include <string_view>

#include "fovea/base/types.h"

namespace fovea {

enum class LengthUnit { kUpdates, kEpochs, kHours };

struct Length {
  double value = 0;
  LengthUnit unit = LengthUnit::kUpdates;
};

/// "10e", "0.5e", "5000u", "5000" (updates), "2h", "30m" (minutes), "90s". `option` is named in
/// errors. Throws kOptionValue for any other text and unless the length is greater than 0.
Length parse_length(std::string_view text, std::string_view option);

/// A length counted in updates: epochs are rounded up to whole updates. Throws kOptionValue for
/// hours and for more updates than can be counted.
index to_updates(Length length, index updates_per_epoch, std::string_view option);

/// When a run ends, and which share of it is done. A run that ends by updates or epochs depends on
/// its options alone. If it ends by hours, its learning rates and its bits depend on the machine
/// too.
class Horizon {
 public:
  Horizon(Length stop_after, index updates_per_epoch);

  bool reached(index step, double seconds) const { return fraction(step, seconds) >= 1; }
  /// Share of the run that is done after `step` updates which took `seconds`; 1 at the end.
  double fraction(index step, double seconds) const;
  bool in_hours() const { return updates_ == 0; }
  /// Updates in the whole run; 0 if it ends by hours.
  index updates() const { return updates_; }

 private:
  index updates_ = 0;
  double seconds_ = 0;
};

}  // namespace fovea
