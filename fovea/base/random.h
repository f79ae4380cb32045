// SPDX-License-Identifier: Apache-2.0
// Random numbers as a function of what they are for, not of when they were drawn: Philox4x32-10
// (Salmon, Moraes, Dror, Shaw 2011). Nothing has to be saved to resume.
#pragma once

#include <array>
#include <cstdint>

#include "fovea/base/types.h"

namespace fovea {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Four random words for a counter and a key; the known-answer vectors of Random123 hold.
PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

/// What a stream of numbers is for; streams of different use or number are independent. A new use
/// goes to the end: the values are part of what makes a run repeatable.
enum class RandomUse : std::uint32_t { kInit, kDropout, kBatches, kSampling, kTest };

/// Names the masks of one dropout in one training step; what names an element within is said where
/// it is used (kernel/dropout.h, attention). Different layers of a model have different numbers.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t layer = 0;
};

/// The key under which the counters of a mask are drawn: the first two words of
/// philox4x32({step low, step high, layer, RandomUse::kDropout}, {seed low, seed high}).
PhiloxKey philox_key(const DropoutKey& key);

/// A stream: draws are numbered, so a copy repeats them. (seed, use, number) names it. It repeats
/// after 2^34 words.
class Random {
 public:
  Random(std::uint64_t seed, RandomUse use, std::uint64_t number = 0);

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  /// Uniform in [0, n), without bias. Throws Error(kShape) unless n >= 1.
  index below(index n);
  /// Uniform in [0, 1).
  double uniform();
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Standard normal (Box-Muller).
  double normal();

 private:
  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter block_{};
  int left_ = 0;
};

}  // namespace fovea
