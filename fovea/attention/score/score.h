// SPDX-License-Identifier: Apache-2.0
// How a query and a key become a score.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fovea/base/view.h"

namespace fovea {

namespace score {

/// scale * q.k (Vaswani et al. 2017, eq. 1). Default scale: 1 / sqrt(D); 1: unscaled.
struct Dot {
  std::optional<double> scale = {};
};

/// scale * cos(q, k); 0, with gradient 0, if q or k is 0. Default scale: 1.
struct Cosine {
  std::optional<double> scale = {};
};

/// scale * w.[q; k], a row w per head: Additive without its tanh. Default scale: 1. Views.
template <class T>
struct Concat {
  Rows<const T> w;  ///< [H, 2 D]
  Rows<T> dw = {};  ///< [H, 2 D], overwritten by backward; or empty
  std::optional<double> scale = {};
};

/// -scale |q - k|^2 (Kim, Papamakarios, Mnih 2021, sec. 4.1). Default scale: 1 / sqrt(D).
struct L2 {
  std::optional<double> scale = {};
};

/// scale * v . tanh(q + k), a row v per head (Bahdanau et al. 2015, A.1.2). Default scale: 1. Views
/// of the caller's memory.
template <class T>
struct Additive {
  Rows<const T> v;  ///< [H, D]
  Rows<T> dv = {};  ///< [H, D], overwritten by backward; or empty
  std::optional<double> scale = {};
};

}  // namespace score

template <class T>
using Score =
    std::variant<score::Dot, score::Cosine, score::Concat<T>, score::L2, score::Additive<T>>;

/// Which columns of a row form a pair: c and c + D / 2 (GPT-NeoX), or 2 c and 2 c + 1 (Su et al.
/// 2021, GPT-J).
enum class RotaryPairs { kNone, kHalves, kInterleaved };

/// Rotary positions (Su et al. 2021): pair c of q and k is rotated by the angle position / (base^(2
/// c / D) divisors[c]), and multiplied by amplitude. The position of a query is first + p, that of
/// a key first + j.
struct Rotary {
  RotaryPairs pairs = RotaryPairs::kNone;
  double base = 10000;
  index first = 0;  ///< position of key 0, as in a cache that has dropped earlier keys
  /// [D / 2], as models have them that were stretched to more positions (Chen et al. 2023; YaRN,
  /// Peng et al. 2023; Llama 3.1); empty: all are 1.
  std::vector<double> divisors = {};
  double amplitude = 1;
};

/// "dot", "cosine", "concat", "l2" or "additive".
template <class T>
std::string name_of(const Score<T>& score);

}  // namespace fovea

namespace fovea::detail {

/// The scale of a call: the given one, or the default.
template <class T>
double scale_of(const Score<T>& score, index D);

/// Is it computed from pairs of columns by the first part of the bias (pair_score.h)?
template <class T>
bool is_pair_score(const Score<T>& score);

/// The angle of position 1, for each of the D / 2 pairs.
std::vector<double> rotary_angles(const Rotary& rotary, index D);

/// The width of the rows whose dot product the score is, given rows of D values (made_rows.h).
template <class T>
index made_width(const Score<T>& score, index D);

}  // namespace fovea::detail
