// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/rotary.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace fovea::detail {

namespace {

// (x, y), turned by an angle.
template <class T>
std::pair<T, T> turned(T x, T y, T cosine, T sine) {
  return {x * cosine - y * sine, x * sine + y * cosine};
}

}  // namespace

template <class T>
RotaryTable<T>::RotaryTable(const Context& ctx, const Rotary& rotary, index D, index first,
                            index last)
    : pairs_(rotary.pairs), half_(D / 2), first_(first) {
  std::vector<double> frequencies(static_cast<std::size_t>(half_));
  for (index c = 0; c < half_; ++c) {
    const double power = 2 * static_cast<double>(c) / static_cast<double>(D);
    frequencies[static_cast<std::size_t>(c)] = std::pow(rotary.base, -power);
  }
  cosines_.resize(static_cast<std::size_t>((last - first + 1) * half_));
  sines_.resize(cosines_.size());
  constexpr double kTurnFlops = 100;  // a sine and a cosine
  const double cost = kTurnFlops * static_cast<double>(half_);
  ctx.for_ranges(last - first + 1, cost, [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      T *cosine = cosines_.data() + n * half_, *sine = sines_.data() + n * half_;
      for (const double frequency : frequencies) {
        const double angle = static_cast<double>(rotary.first + first + n) * frequency;
        *cosine++ = static_cast<T>(std::cos(angle));
        *sine++ = static_cast<T>(std::sin(angle));
      }
    }
  });
}

template <class T>
void RotaryTable<T>::turn_by(const T* row, index position, T sign, T* to) const {
  const T* const cosines = cosines_.data() + (position - first_) * half_;
  const T* const sines = sines_.data() + (position - first_) * half_;
  const bool halves = pairs_ == RotaryPairs::kHalves;
  // A few pairs at a time in local memory: the compiler then knows that `to` is no operand, and
  // takes vectors.
  constexpr index kStep = 8;
  index c = 0;
  for (; halves && c + kStep <= half_; c += kStep) {
    T x[kStep], y[kStep];
    for (index n = 0; n < kStep; ++n) {
      const index at = c + n;
      std::tie(x[n], y[n]) = turned(row[at], row[half_ + at], cosines[at], sign * sines[at]);
    }
    std::copy_n(x, kStep, to + c);
    std::copy_n(y, kStep, to + half_ + c);
  }
  for (; c < half_; ++c) {
    const index one = halves ? c : 2 * c, other = halves ? c + half_ : 2 * c + 1;
    std::tie(to[one], to[other]) = turned(row[one], row[other], cosines[c], sign * sines[c]);
  }
}

template class RotaryTable<float>;
template class RotaryTable<double>;

}  // namespace fovea::detail
