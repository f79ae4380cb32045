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

// What one head subtracts, by the distance j - p.
struct Decay {
  double r1, r2;

  template <class T>
  Decay(Rows<const T> r, index head) : r1(counted(r[0][head])), r2(counted(r[1][head])) {}

  double at(index distance) const { return r1 * dr1(distance); }
  // d / d r1 and d / d r2.
  double dr1(index distance) const { return std::log1p(r2 * size(distance)); }
  double dr2(index distance) const { return r1 * size(distance) / (1 + r2 * size(distance)); }

 private:
  // In this order, for NaN must stay NaN.
  static double counted(double r) { return std::max(r, kKerpleLeast); }
  static double size(index distance) { return static_cast<double>(std::abs(distance)); }
};

index distance_of(const ScoreSite& site) { return site.j - site.position(); }

}  // namespace

template <class T>
T Kerple<T>::value(const ScoreSite& site, T score) const {
  return score - static_cast<T>(Decay(r_, site.head).at(distance_of(site)));
}

template <class T>
void Kerple<T>::add_parameters(const ScoreSite& site, T, T dscore, double* sums) const {
  const Decay decay(r_, site.head);
  sums[0] -= static_cast<double>(dscore) * decay.dr1(distance_of(site));
  sums[1] -= static_cast<double>(dscore) * decay.dr2(distance_of(site));
}

template <class T>
void Kerple<T>::store_gradient(const double* sums, index heads) const {
  for (index n = 0; n < dr_.rows; ++n) {
    for (index h = 0; h < heads; ++h) dr_[n][h] = static_cast<T>(sums[h * dr_.rows + n]);
  }
}

template <class T>
void Kerple<T>::apply(const TileSite& site, const TileRows<T>&, const ScoreTile<T>& tile) const {
  const auto [first, count] = detail::distances_of(site);
  const Decay decay(r_, site.head);
  Scratch scratch;
  T* const values = scratch.allocate<T>(count);
  for (index n = 0; n < count; ++n) values[n] = -static_cast<T>(decay.at(first + n));
  detail::add_by_distance(site, values, tile);
}

template <class T>
void Kerple<T>::pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                     const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const {
  if (gradient_size() == 0) return;
  if (dscores.lanes == TileLanes::kQueries) {
    return BiasPart<T>::pull(site, rows, scores, dscores, gradients);
  }
  const auto [first, count] = detail::distances_of(site);
  const Decay decay(r_, site.head);
  Scratch scratch;
  double* const sums = scratch.allocate<double>(count);
  detail::sum_by_distance(site, dscores, sums);
  for (index n = 0; n < count; ++n) {
    gradients.parameters[0] -= sums[n] * decay.dr1(first + n);
    gradients.parameters[1] -= sums[n] * decay.dr2(first + n);
  }
}

template <class T>
void Kerple<T>::name_parameters(OverlapCheck& memory) const {
  memory.read("r of kerple", r_);
}

template <class T>
void Kerple<T>::name_gradients(OverlapCheck& memory) const {
  memory.write("the gradient of r of kerple", dr_);
}

template <class T>
void Kerple<T>::check_shape(const AttentionSizes& sizes) const {
  const index H = sizes.H;
  check(r_.rows == 2 && r_.columns == H,
        "attention: r of kerple must be [2, H={}], r1 and r2; it is [{}, {}]", H, r_.rows,
        r_.columns);
  check(H == 0 || r_.data != nullptr, "attention: r of kerple has a shape but no data");
  check(dr_.data == nullptr || (dr_.rows == 2 && dr_.columns == H),
        "attention: dr of kerple must be [2, H={}] or empty; it is [{}, {}]", H, dr_.rows,
        dr_.columns);
}

template class Kerple<float>;
template class Kerple<double>;

}  // namespace fovea::bias
