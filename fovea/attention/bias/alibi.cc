// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bias/alibi.h"

#include <cmath>

#include "fovea/attention/relative/by_distance.h"
#include "fovea/base/check.h"
#include "fovea/base/memory.h"

namespace fovea {

namespace {

// Every step-th of the slopes for `power` heads.
template <class T>
void append_slopes(std::vector<T>& slopes, index power, index step, index count) {
  for (index h = 0; count > 0; h += step, --count) {
    slopes.push_back(
        static_cast<T>(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(power))));
  }
}

}  // namespace

template <class T>
std::vector<T> alibi_slopes(index heads) {
  check(heads > 0, Hint{"ask for the slopes of at least one head"},
        "alibi: there must be a head; got {}", heads);
  index power = 1;
  while (power * 2 <= heads) power *= 2;
  std::vector<T> slopes;
  append_slopes(slopes, power, 1, power);
  append_slopes(slopes, 2 * power, 2, heads - power);
  return slopes;
}

template std::vector<float> alibi_slopes(index);
template std::vector<double> alibi_slopes(index);

}  // namespace fovea

namespace fovea::bias {

namespace {

template <class T>
T distance(const ScoreSite& site) {
  return static_cast<T>(std::abs(site.position() - site.j));
}

}  // namespace

template <class T>
T Alibi<T>::value(const ScoreSite& site, T score) const {
  return score - slopes_[site.head] * distance<T>(site);
}

template <class T>
void Alibi<T>::add_parameters(const ScoreSite& site, T, T dscore, double* sums) const {
  sums[0] -= static_cast<double>(dscore) * static_cast<double>(distance<T>(site));
}

template <class T>
void Alibi<T>::store_gradient(const double* sums, index heads) const {
  for (index h = 0; h < heads && h < dslopes_.size; ++h) dslopes_[h] = static_cast<T>(sums[h]);
}

template <class T>
void Alibi<T>::apply(const TileSite& site, const TileRows<T>&, const ScoreTile<T>& tile) const {
  const auto [first, count] = detail::distances_of(site);
  Scratch scratch;
  T* const values = scratch.allocate<T>(count);
  for (index n = 0; n < count; ++n) {
    values[n] = -(slopes_[site.head] * static_cast<T>(std::abs(first + n)));
  }
  detail::add_by_distance(site, values, tile);
}

template <class T>
void Alibi<T>::pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                    const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const {
  if (dslopes_.empty()) return;
  if (dscores.lanes == TileLanes::kQueries) {
    return BiasPart<T>::pull(site, rows, scores, dscores, gradients);
  }
  const auto [first, count] = detail::distances_of(site);
  Scratch scratch;
  double* const sums = scratch.allocate<double>(count);
  detail::sum_by_distance(site, dscores, sums);
  double total = 0;
  for (index n = 0; n < count; ++n) total += sums[n] * static_cast<double>(std::abs(first + n));
  gradients.parameters[0] -= total;
}

template <class T>
void Alibi<T>::name_parameters(OverlapCheck& memory) const {
  memory.read("slopes", slopes_);
}

template <class T>
void Alibi<T>::name_gradients(OverlapCheck& memory) const {
  memory.write("the gradient of slopes", dslopes_);
}

template <class T>
void Alibi<T>::check_shape(const AttentionSizes& sizes) const {
  const index H = sizes.H;
  constexpr Hint kOneForEachHead{
      "give a slope for each head: alibi_slopes(H) are those of the paper"};
  constexpr Hint kNoData{"give the memory of the slopes, or an empty view"};
  check(slopes_.size == H, kOneForEachHead, "attention: slopes must be [H={}]; they are [{}]", H,
        slopes_.size);
  check(dslopes_.empty() || dslopes_.size == H, kOneForEachHead,
        "attention: dslopes must be [H={}] or empty; they are [{}]", H, dslopes_.size);
  check(slopes_.empty() || slopes_.data != nullptr, kNoData,
        "attention: slopes have a size but no data");
  check(dslopes_.empty() || dslopes_.data != nullptr, kNoData,
        "attention: dslopes have a size but no data");
}

template class Alibi<float>;
template class Alibi<double>;

}  // namespace fovea::bias
