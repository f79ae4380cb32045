// SPDX-License-Identifier: Apache-2.0
// The random numbers of PyTorch, for examples that are to be compared with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace fovea {

/// The numbers of torch.manual_seed(seed) on a CPU: the 32-bit Mersenne Twister (Matsumoto,
/// Nishimura 1998), of which each float32 takes the low 24 bits of a word. PyTorch keeps these
/// numbers between versions; test values are those of 2.13. Nothing that fovea trains uses them.
class TorchRandom {
 public:
  /// Seeds that differ in their upper 32 bits alone give the same numbers, as in PyTorch.
  explicit TorchRandom(std::uint64_t seed) : words_(static_cast<std::uint32_t>(seed)) {}

  /// torch.rand: in [0, 1).
  std::vector<float> rand(std::size_t count) { return uniform(count, 0, 1); }
  /// Tensor.uniform_(low, high), in float32.
  std::vector<float> uniform(std::size_t count, float low, float high) {
    std::vector<float> numbers(count);
    for (float& x : numbers) {
      const auto bits = static_cast<std::uint32_t>(words_() & 0xFFFFFF);
      x = static_cast<float>(bits * 0x1p-24 * (high - low) + low);  // PyTorch computes in double
    }
    return numbers;
  }

 private:
  std::mt19937 words_;
};

}  // namespace fovea
