// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/rotary.h"

#include <cmath>

namespace fovea::detail {

template <class T>
RotaryTable<T>::RotaryTable(const Context& ctx, const Rotary& rotary, index D, index first,
                            index last)
    : pairs_(rotary.pairs), half_(D / 2), first_(first) {
  std::vector<double> frequencies(static_cast<std::size_t>(half_));
  for (index c = 0; c < half_; ++c) {
    const double power = 2 * static_cast<double>(c) / static_cast<double>(D);
    frequencies[static_cast<std::size_t>(c)] = std::pow(rotary.base, -power);
  }
  turns_.resize(static_cast<std::size_t>((last - first + 1) * half_));
  constexpr double kTurnFlops = 100;  // a sine and a cosine
  const double cost = kTurnFlops * static_cast<double>(half_);
  ctx.for_ranges(last - first + 1, cost, [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      Turn* turn = turns_.data() + n * half_;
      for (const double frequency : frequencies) {
        const double angle = static_cast<double>(rotary.first + first + n) * frequency;
        *turn++ = {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
      }
    }
  });
}

template <class T>
void RotaryTable<T>::turn_by(const T* row, index position, T sign, T* to) const {
  const Turn* const turns = turns_.data() + (position - first_) * half_;
  const bool halves = pairs_ == RotaryPairs::kHalves;
  for (index c = 0; c < half_; ++c) {
    const index one = halves ? c : 2 * c, other = halves ? c + half_ : 2 * c + 1;
    const T x = row[one], y = row[other];
    const T cosine = turns[c].cosine, sine = sign * turns[c].sine;
    to[one] = x * cosine - y * sine;
    to[other] = x * sine + y * cosine;
  }
}

template class RotaryTable<float>;
template class RotaryTable<double>;

}  // namespace fovea::detail
