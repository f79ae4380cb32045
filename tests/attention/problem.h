// SPDX-License-Identifier: Apache-2.0
// Random attention problems, and the bound that every fast result must meet.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "fovea/attention/attention.h"
#include "fovea/attention/reference.h"
#include "fovea/base/random.h"

namespace fovea::testing {

/// A tensor with room around its rows: strides are free, and what lies between must not be touched.
template <class T>
struct Padded {
  std::vector<T> values;
  index B, L, H, W;
  index gap;  // values between one row and the next

  Padded() = default;
  Padded(index b, index l, index h, index w, index g, T fill = T{0})
      : values(static_cast<std::size_t>(b * l * h * (w + g)), fill),
        B(b),
        L(l),
        H(h),
        W(w),
        gap(g) {}
  View<T> view() { return {values.data(), B, L, H, W, L * H * (W + gap), H * (W + gap), W + gap}; }
};

/// Everything that a problem is, without values.
struct ProblemShape {
  index B = 1, T = 1, S = 1, H = 1, G = 1, D = 1, Dv = 1;
  index gap = 0;
  double deviation = 1;  // of the scores
  bool causal = false, top_left = false, window = false, key_lengths = false, query_lengths = false;
  bool keep = false, drop = false, alibi = false, packed = false;
  index left = 0, right = 0;
  double dropout = 0;
  std::uint64_t seed = 0;

  std::string text() const;
};

/// Sizes that straddle every tile; half of the problems span three key blocks or more.
ProblemShape draw_shape(std::uint64_t seed);

struct Results {
  std::vector<double> o, lse, weights, dq, dk, dv, dslopes;
};

enum class Method { kReference, kFused };

/// The problem's values, drawn in float so that every precision sees the same numbers.
class Problem {
 public:
  explicit Problem(const ProblemShape& shape);

  template <class T>
  Results run(Method method, int threads = 1) const;

  /// The same problem with the columns of D and Dv in another order, and its results in this one.
  Problem permuted(std::uint64_t order) const;
  Results restored(const Results& results) const;

  const ProblemShape shape;
  std::vector<index> column_of, value_column_of;  // where each column of D and Dv was taken from
  std::vector<float> q, k, v, d_o;                // without gaps
  std::vector<float> slopes;
  std::vector<std::int32_t> key_lengths, query_lengths, query_offsets, key_offsets;
  std::vector<std::uint8_t> keep, drop;

 private:
  Mask mask() const;
};

/// Largest |a - b|; infinite where exactly one is not finite or they are different infinities.
double largest_difference(const std::vector<double>& a, const std::vector<double>& b);
double largest_magnitude(const std::vector<double>& a);

/// The largest error of each result over several runs of the plain float32 implementation.
struct PlainErrors {
  double o = 0, lse = 0, weights = 0, dq = 0, dk = 0, dv = 0, dslopes = 0;
};

/// The plain float32 implementation runs once as it is, and again with the columns of D and Dv
/// summed in other orders: where a row nearly has a tie, the error of one run alone is a matter of
/// luck.
PlainErrors plain_errors(const Problem& problem, const Results& exact);

/// At most twice the error of the plain float32 implementation plus 4 ulp of the largest value.
::testing::AssertionResult no_worse_than_plain(const char* name, const std::vector<double>& fast,
                                               double plain_error,
                                               const std::vector<double>& exact);

}  // namespace fovea::testing
