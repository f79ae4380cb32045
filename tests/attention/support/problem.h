// SPDX-License-Identifier: Apache-2.0
// Random attention problems, and the bound that every fast result must meet.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "fovea/attention/attention.h"
#include "fovea/attention/reference.h"
#include "fovea/base/random.h"

namespace fovea::testing {

/// How a tensor lies in memory: the order of its axes, and what lies between its rows.
struct Layout {
  enum class Order { kLengthHeads, kHeadsLength, kLengthBatch };
  Order order = Order::kLengthHeads;
  index gap = 0;      ///< values between one row and the next
  index row_gap = 0;  ///< between one group of rows and the next, as in columns of a wider matrix
};

/// A tensor in any layout: what lies between its rows must not be touched.
template <class T>
struct Padded {
  std::vector<T> values;
  View<T> shape;  // without data

  Padded(index B, index L, index H, index W, const Layout& layout, T fill) {
    const index row = W + layout.gap, room = layout.row_gap;
    switch (layout.order) {
      case Layout::Order::kLengthHeads:
        shape = {nullptr, B, L, H, W, L * (H * row + room), H * row + room, row};
        break;
      case Layout::Order::kHeadsLength:
        shape = {nullptr, B, L, H, W, H * (L * row + room), row, L * row + room};
        break;
      case Layout::Order::kLengthBatch:
        shape = {nullptr, B, L, H, W, H * row + room, B * (H * row + room), row};
        break;
    }
    values.assign(static_cast<std::size_t>(B * L * H * row + (B * (L + H)) * room), fill);
  }
  View<T> view() {
    View<T> view = shape;
    view.data = values.data();
    return view;
  }
  /// Calls f(number of the value in [B, L, H, W], its place in `values`).
  template <class F>
  void for_each(F&& f) const {
    index n = 0;
    for (index b = 0; b < shape.batch; ++b) {
      for (index l = 0; l < shape.length; ++l) {
        for (index h = 0; h < shape.heads; ++h) {
          const index at = b * shape.batch_stride + l * shape.length_stride + h * shape.head_stride;
          for (index c = 0; c < shape.width; ++c) {
            f(static_cast<std::size_t>(n++), static_cast<std::size_t>(at + c));
          }
        }
      }
    }
  }
};

enum class ScoreKind { kDot, kCosine, kConcat, kL2, kAdditive };

/// What observes a problem. Weights of every score count as observers.
enum class Watch { kAll, kRows, kNothing };

/// Everything that a problem is, without values.
struct ProblemShape {
  index B = 1, T = 1, S = 1, H = 1, G = 1, D = 1, Dv = 1;
  Layout queries, keys;         // of q, o, dO and of k, v
  bool broadcast_keys = false;  // one k and v for the whole batch, by stride 0
  bool rows_first = false;      // lse lies as [B, T, H], weights as [B, T, H, S]
  double deviation = 1;         // of the scores, if they are products
  ScoreKind score = ScoreKind::kDot;
  bool causal = false, top_left = false, window = false, key_lengths = false, query_lengths = false;
  bool keep = false, drop = false, alibi = false, packed = false, relative = false;
  bool t5 = false, dense = false, dense_batch = false, dense_heads = false, dense_queries = false;
  bool shaw_keys = false, shaw_values = false;
  ShawOrder order = ShawOrder::kQueryMinusKey;
  double softcap = 0;  // 0: none
  index left = 0, right = 0;
  double dropout = 0;
  Watch watch = Watch::kAll;
  std::uint64_t seed = 0;

  std::string text() const;
};

/// Sizes that straddle every tile; half of the problems span three key blocks or more.
ProblemShape draw_shape(std::uint64_t seed);

inline constexpr index kClip = 5, kBuckets = 12;
inline constexpr index kTop = 4;

struct Results {
  std::vector<double> o, lse, weights, dq, dk, dv, dslopes, dtable, entropy, maximum, distance;
  std::vector<double> topk_weight, column_mass, dt5, ddense, dscore, dshaw_k, dshaw_v;
};

/// Each result by its name.
struct NamedResult {
  const char* name;
  std::vector<double> Results::*values;
};
inline constexpr NamedResult kResults[] = {{"o", &Results::o},
                                           {"lse", &Results::lse},
                                           {"weights", &Results::weights},
                                           {"dq", &Results::dq},
                                           {"dk", &Results::dk},
                                           {"dv", &Results::dv},
                                           {"dslopes", &Results::dslopes},
                                           {"dtable", &Results::dtable},
                                           {"dt5", &Results::dt5},
                                           {"ddense", &Results::ddense},
                                           {"dscore", &Results::dscore},
                                           {"dshaw_k", &Results::dshaw_k},
                                           {"dshaw_v", &Results::dshaw_v},
                                           {"entropy", &Results::entropy},
                                           {"maximum", &Results::maximum},
                                           {"distance", &Results::distance},
                                           {"topk_weight", &Results::topk_weight},
                                           {"column_mass", &Results::column_mass}};

enum class Method { kReference, kFused };

/// The problem's values, drawn in float so that every precision sees the same numbers.
class Problem {
 public:
  explicit Problem(const ProblemShape& shape);

  template <class T>
  Results run(Method method, int threads = 1) const;

  /// The same problem with the columns of D and Dv in another order, and its results in this one.
  Problem permuted(std::uint64_t order) const;
  /// The same problem with q, k, v and dO rounded to bfloat16.
  Problem rounded() const;
  Results restored(const Results& results) const;

  const ProblemShape shape;
  std::vector<index> column_of, value_column_of;  // where each column of D and Dv was taken from
  std::vector<float> q, k, v, d_o;                // without gaps
  std::vector<float> slopes;
  std::vector<float> table;           // [2 kClip + 1, Dv], relative positions on the values
  std::vector<float> t5;              // [kBuckets, H]
  std::vector<float> dense;           // axes of size 1 as the shape says
  std::vector<float> shaw_k, shaw_v;  // [2 kClip + 1, D] and [2 kClip + 1, Dv]
  std::vector<float> score;           // weights of the score, [H, D] or [H, 2 D]; empty without
  std::vector<std::int32_t> key_lengths, query_lengths, query_offsets, key_offsets;
  std::vector<std::uint8_t> keep, drop;

 private:
  Mask mask() const;
};

/// Largest |a - b|; infinite where exactly one is not finite or they are different infinities.
double largest_difference(const std::vector<double>& a, const std::vector<double>& b);
double largest_magnitude(const std::vector<double>& a);

/// The largest error of each result over several runs of the plain implementation: one as it is,
/// the others with the columns of D and Dv summed in other orders, and, where it rounds to
/// bfloat16, with other values. Where a row nearly has a tie, the error of one run alone is a
/// matter of luck.
///
/// A run is made only for a result that is worse than those before it allow: more runs only raise
/// the bound.
class PlainErrors {
 public:
  enum class Plain { kFloat32, kBFloat16 };  ///< rounding weights and gradients of scores

  PlainErrors(const Problem& problem, const Results& exact, Plain plain = Plain::kFloat32);

  /// no_worse_than_plain() for every result.
  ::testing::AssertionResult no_worse(const Results& fast);

 private:
  ::testing::AssertionResult compare(const Results& fast) const;
  void run_next();
  void run_other_values();
  void add(const Results& plain, const Results& exact);

  const Problem& problem_;
  const Results& exact_;
  std::uint64_t orders_, made_ = 0;
  Plain plain_;
  std::array<double, std::size(kResults)> errors_{};
};

/// At most twice the error of the plain float32 implementation plus 4 ulp of the largest value.
::testing::AssertionResult no_worse_than_plain(const char* name, const std::vector<double>& fast,
                                               double plain_error,
                                               const std::vector<double>& exact);

}  // namespace fovea::testing
