// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/dropout.h"

#include <algorithm>
#include <cmath>

#include "fovea/base/random.h"

namespace fovea {

DropoutRule dropout_rule(const Dropout& dropout) {
  const double scaled = dropout.probability * 65536.0, whole = std::floor(scaled);
  const double rest = std::min(std::floor((scaled - whole) * 4294967296.0), 4294967295.0);
  return {static_cast<std::uint32_t>(whole), static_cast<std::uint32_t>(rest),
          1.0 / (1.0 - dropout.probability)};
}

DropoutStream dropout_stream(const Dropout& dropout, const Sequence& sequence, index head) {
  const std::uint64_t sample = dropout.samples.empty() ? static_cast<std::uint64_t>(sequence.number)
                                                       : dropout.samples[sequence.number];
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  // Two calls of Philox reduce the 256 bits that name the stream to the 128 bits that are left for
  // it.
  const PhiloxCounter step = philox4x32({low(dropout.step), high(dropout.step), dropout.layer,
                                         static_cast<std::uint32_t>(RandomUse::kDropout)},
                                        {low(dropout.seed), high(dropout.seed)});
  const PhiloxCounter stream = philox4x32(
      {low(sample), high(sample), static_cast<std::uint32_t>(head), step[2]}, {step[0], step[1]});
  return {{stream[0], stream[1]}, {stream[2], stream[3]}};
}

std::uint32_t dropout_bits(const DropoutStream& stream, index i, index j) {
  const PhiloxCounter words =
      philox4x32({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j / 8),
                  stream.counter[0], stream.counter[1]},
                 {stream.key[0], stream.key[1]});
  return words[static_cast<std::size_t>(j % 8 / 2)] >> (j % 2 * 16) & 0xFFFFu;
}

bool drops_tie(const DropoutRule& rule, const DropoutStream& stream, index i, index j) {
  const PhiloxCounter words =
      philox4x32({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j), stream.counter[0],
                  ~stream.counter[1]},
                 {stream.key[0], stream.key[1]});
  return words[0] < rule.rest;
}

bool drops(const DropoutRule& rule, const DropoutStream& stream, index i, index j) {
  const std::uint32_t bits = dropout_bits(stream, i, j);
  return bits < rule.threshold || (bits == rule.threshold && drops_tie(rule, stream, i, j));
}

}  // namespace fovea
