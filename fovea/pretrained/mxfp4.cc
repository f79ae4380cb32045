// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/mxfp4.h"

#include <cmath>
#include <cstdint>

#include "fovea/base/check.h"

namespace fovea {

namespace {

constexpr index kBlock = 32, kBytes = kBlock / 2;

// Sign, two bits of exponent, one of mantissa.
constexpr float kNumbers[] = {0,    0.5F,  1,   1.5F,  2,   3,   4,   6,
                              -0.F, -0.5F, -1., -1.5F, -2., -3., -4., -6.};

}  // namespace

Shape mxfp4_shape(const Shape& blocks, const Shape& scales, const std::string& name) {
  const bool fits = blocks.axes() == 4 && blocks[3] == kBytes && scales.axes() == 3 &&
                    scales == Shape{blocks[0], blocks[1], blocks[2]};
  if (!fits) {
    fail(ErrorCode::kModelDamaged,
         "tensor {} is {}, and its scales are {}; expected [experts, out, in / 32, 16] and "
         "[experts, out, in / 32]",
         name, to_string(blocks), to_string(scales));
  }
  return {blocks[0], checked_product(blocks[2], kBlock, name), blocks[1]};
}

void widen_mxfp4(std::string_view blocks, std::string_view scales, Tensor& to) {
  constexpr int kBias = 127;
  const index experts = to.shape()[0], in = to.shape()[1], out = to.shape()[2];
  const index parts = in / kBlock;
  if (std::ssize(scales) != experts * out * parts ||
      std::ssize(blocks) != std::ssize(scales) * kBytes) {
    fail(ErrorCode::kModelDamaged, "MXFP4: {} bytes of blocks and {} scales for {}", blocks.size(),
         scales.size(), to_string(to.shape()));
  }
  float* const values = to.data<float>();
  for (index e = 0; e < experts; ++e) {
    for (index row = 0; row < out; ++row) {
      for (index part = 0; part < parts; ++part) {
        const auto block = static_cast<std::size_t>((e * out + row) * parts + part);
        const float scale = std::ldexp(1.F, static_cast<std::uint8_t>(scales[block]) - kBias);
        for (index n = 0; n < kBlock; ++n) {
          const auto byte =
              static_cast<std::uint8_t>(blocks[block * kBytes + static_cast<std::size_t>(n / 2)]);
          const int number = n % 2 == 0 ? byte & 15 : byte >> 4;
          values[(e * in + part * kBlock + n) * out + row] = kNumbers[number] * scale;
        }
      }
    }
  }
}

}  // namespace fovea
