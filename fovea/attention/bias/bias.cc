// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bias/bias.h"

namespace fovea {

template <class T>
void BiasPart<T>::store_gradient(const double*, index) const {}

template <class T>
void BiasPart<T>::start_gradient(const Context&) const {}

template <class T>
void BiasPart<T>::check_shape(const AttentionSizes&) const {}

template <class T>
void BiasPart<T>::apply(const TileSite& site, const TileRows<T>& rows,
                        const ScoreTile<T>& tile) const {
  for (index r = 0; r < site.queries; ++r) {
    for (index c = 0; c < site.keys; ++c) {
      tile.at(r, c) = apply_one(site.at(r, c), rows.at(r, c), tile.at(r, c));
    }
  }
}

template <class T>
void BiasPart<T>::pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                       const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const {
  for (index r = 0; r < site.queries; ++r) {
    for (index c = 0; c < site.keys; ++c) {
      T& dscore = dscores.at(r, c);
      // A masked score is skipped, not multiplied by 0: it may be NaN or infinite.
      if (dscore == T{0}) continue;
      const T score = needs_scores() ? scores.at(r, c) : T{0};
      dscore = pull_one(site.at(r, c), rows.at(r, c), score, dscore, gradients.at(r, c));
    }
  }
}

template <class T>
T ScoreFunction<T>::derivative(const ScoreSite&, T) const {
  return T{1};
}

template <class T>
void ScoreFunction<T>::add_parameters(const ScoreSite&, T, T, double*) const {}

template <class T>
T ScoreFunction<T>::apply_one(const ScoreSite& site, const ScoreRows<T>&, T score) const {
  return value(site, score);
}

template <class T>
T ScoreFunction<T>::pull_one(const ScoreSite& site, const ScoreRows<T>&, T score, T dscore,
                             const ScoreGradients<T>& gradients) const {
  if (this->gradient_size() > 0) add_parameters(site, score, dscore, gradients.parameters);
  return dscore * derivative(site, score);
}

template class BiasPart<float>;
template class BiasPart<double>;
template class ScoreFunction<float>;
template class ScoreFunction<double>;

}  // namespace fovea
