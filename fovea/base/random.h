// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: a value depends on its purpose and position, not on what was drawn
// before, so a checkpoint stores no generator state. Philox4x32-10 from "Parallel random numbers:
// as easy as 1, 2, 3" (Salmon, Moraes, Dror, Shaw 2011).
#pragma once

#include <array>
#include <cstdint>

#include "fovea/base/types.h"

namespace fovea {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Four random words for a counter and a key. Tests compare it with the known-answer vectors of
/// Random123.
PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

/// The purpose of a stream of numbers. Streams of different use or number are independent. Add a
/// new use at the end: the numeric values decide which numbers a seed gives.
enum class RandomUse : std::uint32_t {
  kInit,
  kDropout,
  kBatches,
  kSampling,
  kTest,
  kBootstrap,
  kSeeds  ///< of other streams
};

/// Names the masks of one dropout layer in one training step. How an element of a mask is numbered
/// is said where masks are used (kernel/dropout.h, attention). Each dropout layer of a model has
/// its own number.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t layer = 0;
};

/// The key under which the counters of a mask are drawn: the first two words of
/// philox4x32({step low, step high, layer, RandomUse::kDropout}, {seed low, seed high}).
PhiloxKey philox_key(const DropoutKey& key);

/// A stream of random numbers, named by (seed, use, number). A copy goes on with the same numbers.
/// The stream repeats after 2^34 words.
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
