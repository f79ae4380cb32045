// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/score.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace fovea {

template <class T>
std::string name_of(const Score<T>& score) {
  constexpr std::array<const char*, std::variant_size_v<Score<T>>> kNames = {
      "dot", "cosine", "concat", "l2", "additive"};
  return kNames[score.index()];
}
template std::string name_of(const Score<float>&);
template std::string name_of(const Score<double>&);

}  // namespace fovea

namespace fovea::detail {

template <class T>
double scale_of(const Score<T>& score, index D) {
  const bool grows_with_width =
      std::holds_alternative<score::Dot>(score) || std::holds_alternative<score::L2>(score);
  const double otherwise = grows_with_width ? 1.0 / std::sqrt(static_cast<double>(D)) : 1.0;
  return std::visit([&](const auto& one) { return one.scale.value_or(otherwise); }, score);
}

template <class T>
bool is_pair_score(const Score<T>& score) {
  return std::holds_alternative<score::L2>(score) ||
         std::holds_alternative<score::Additive<T>>(score);
}

std::vector<double> rotary_angles(const Rotary& rotary, index D) {
  std::vector<double> angles;
  for (index c = 0; c < D / 2; ++c) {
    const double power = 2 * static_cast<double>(c) / static_cast<double>(D);
    angles.push_back(std::pow(rotary.base, -power));
    if (!rotary.divisors.empty()) angles.back() /= rotary.divisors[static_cast<std::size_t>(c)];
  }
  return angles;
}

template <class T>
index made_width(const Score<T>& score, index D) {
  return std::holds_alternative<score::Concat<T>>(score) ? D + 1 : D;
}

#define FOVEA_INSTANTIATE(T)                        \
  template double scale_of(const Score<T>&, index); \
  template bool is_pair_score(const Score<T>&);     \
  template index made_width(const Score<T>&, index);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail
