// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bias/bias.h"

namespace fovea {

template <class T>
T BiasPart<T>::derivative(const ScoreSite&, T) const {
  return T{1};
}

template <class T>
void BiasPart<T>::add_parameters(const ScoreSite&, T, T, double*) const {}

template <class T>
void BiasPart<T>::store_gradient(const double*, index) const {}

template <class T>
void BiasPart<T>::check_shape(index, index, index, index) const {}

template <class T>
void BiasPart<T>::apply(const TileSite& site, const TileRows<T>&, const ScoreTile<T>& tile) const {
  for (index r = 0; r < site.queries; ++r) {
    for (index c = 0; c < site.keys; ++c) tile.at(r, c) = value(site.at(r, c), tile.at(r, c));
  }
}

template <class T>
void BiasPart<T>::pull(const TileSite& site, const TileRows<T>&, const ScoreTile<T>& scores,
                       const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const {
  for (index r = 0; r < site.queries; ++r) {
    for (index c = 0; c < site.keys; ++c) {
      const ScoreSite one = site.at(r, c);
      T& dscore = dscores.at(r, c);
      // A dropped score is skipped, not multiplied by 0: its value may be anything.
      if (dscore == T{0}) continue;
      const T score = needs_scores() ? scores.at(r, c) : T{0};
      if (gradient_size() > 0) add_parameters(one, score, dscore, gradients.parameters);
      dscore *= derivative(one, score);
    }
  }
}

template <class T>
std::string Bias<T>::name() const {
  std::string text;
  for (const auto& part : parts_) text += (text.empty() ? "" : " + ") + part->name();
  return text.empty() ? "none" : text;
}

template class BiasPart<float>;
template class BiasPart<double>;
template class Bias<float>;
template class Bias<double>;

}  // namespace fovea
