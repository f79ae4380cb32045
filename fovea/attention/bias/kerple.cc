// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bias/kerple.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "fovea/attention/relative/by_distance.h"
#include "fovea/base/check.h"
#include "fovea/base/memory.h"

namespace fovea::bias {

namespace {

double size_of(index distance) { return static_cast<double>(std::abs(distance)); }
double size_of(const ScoreSite& site) { return size_of(site.j - site.position()); }

}  // namespace

template <class T>
T KerpleForm<T>::value(const ScoreSite& site, T score) const {
  return score - static_cast<T>(term(numbers(site.head), size_of(site)));
}

template <class T>
void KerpleForm<T>::add_parameters(const ScoreSite& site, T, T dscore, double* sums) const {
  const auto [dr1, dr2] = slopes(numbers(site.head), size_of(site));
  sums[0] -= static_cast<double>(dscore) * dr1;
  sums[1] -= static_cast<double>(dscore) * dr2;
}

template <class T>
void KerpleForm<T>::store_gradient(const double* sums, index heads) const {
  for (index n = 0; n < dr_.rows; ++n) {
    for (index h = 0; h < heads; ++h) dr_[n][h] = static_cast<T>(sums[h * dr_.rows + n]);
  }
}

template <class T>
void KerpleForm<T>::apply(const TileSite& site, const TileRows<T>&,
                          const ScoreTile<T>& tile) const {
  const auto [first, count] = detail::distances_of(site);
  const Numbers of = numbers(site.head);
  Scratch scratch;
  T* const values = scratch.allocate<T>(count);
  for (index n = 0; n < count; ++n) values[n] = -static_cast<T>(term(of, size_of(first + n)));
  detail::add_by_distance(site, values, tile);
}

template <class T>
void KerpleForm<T>::pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                         const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const {
  if (gradient_size() == 0) return;
  if (dscores.lanes == TileLanes::kQueries) {
    return BiasPart<T>::pull(site, rows, scores, dscores, gradients);
  }
  const auto [first, count] = detail::distances_of(site);
  const Numbers of = numbers(site.head);
  Scratch scratch;
  double* const sums = scratch.allocate<double>(count);
  detail::sum_by_distance(site, dscores, sums);
  for (index n = 0; n < count; ++n) {
    const auto [dr1, dr2] = slopes(of, size_of(first + n));
    gradients.parameters[0] -= sums[n] * dr1;
    gradients.parameters[1] -= sums[n] * dr2;
  }
}

template <class T>
void KerpleForm<T>::name_parameters(OverlapCheck& memory) const {
  memory.read(names_.r, r_);
}

template <class T>
void KerpleForm<T>::name_gradients(OverlapCheck& memory) const {
  memory.write(names_.dr, dr_);
}

template <class T>
void KerpleForm<T>::check_shape(const AttentionSizes& sizes) const {
  const index H = sizes.H;
  check(r_.rows == 2 && r_.columns == H,
        "attention: {} must be [2, H={}], r1 and r2; it is [{}, {}]", names_.r, H, r_.rows,
        r_.columns);
  check(H == 0 || r_.data != nullptr, "attention: {} has a shape but no data", names_.r);
  check(dr_.data == nullptr || (dr_.rows == 2 && dr_.columns == H),
        "attention: d{} must be [2, H={}] or empty; it is [{}, {}]", names_.r, H, dr_.rows,
        dr_.columns);
}

// In this order, for NaN must stay NaN.
template <class T>
auto Kerple<T>::counted(double r1, double r2) const -> Numbers {
  return {std::max(r1, kKerpleLeast), std::max(r2, kKerpleLeast)};
}

template <class T>
double Kerple<T>::term(const Numbers& of, double distance) const {
  return of.r1 * std::log1p(of.r2 * distance);
}

template <class T>
auto Kerple<T>::slopes(const Numbers& of, double distance) const -> Numbers {
  return {std::log1p(of.r2 * distance), of.r1 * distance / (1 + of.r2 * distance)};
}

template class KerpleForm<float>;
template class KerpleForm<double>;
template class Kerple<float>;
template class Kerple<double>;

// In this order, for NaN must stay NaN.
template <class T>
auto KerplePower<T>::counted(double r1, double r2) const -> Numbers {
  return {std::max(r1, kKerplePowerLeast),
          std::min(std::max(r2, kKerplePowerLeast), kKerplePowerMost)};
}

template <class T>
double KerplePower<T>::term(const Numbers& of, double distance) const {
  return of.r1 * std::pow(distance, of.r2);
}

template <class T>
auto KerplePower<T>::slopes(const Numbers& of, double distance) const -> Numbers {
  const double power = std::pow(distance, of.r2);
  return {power, distance == 0 ? 0 : of.r1 * power * std::log(distance)};
}

template class KerplePower<float>;
template class KerplePower<double>;

}  // namespace fovea::bias
