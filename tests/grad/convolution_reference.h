// SPDX-License-Identifier: Apache-2.0
// Convolution over time, gates and the maximum over time in plain loops, over the three sequences
// of kOffsets.
#pragma once

#include <algorithm>

#include "fovea/kernel/convolution.h"
#include "tests/grad/op_references.h"

namespace fovea {

/// in: x [6, in], weight [out, width in], and a bias or none.
template <index width, Padding padding, index dilation, Activation f>
struct ConvolutionFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    const index C = in[0].columns;
    const T* const weights = in[1].data;  // [out, width, in], in either shape
    const index before = (width - 1) * dilation / (padding == Padding::kSame ? 2 : 1);
    fill(y, [&](index n, index o) {
      const auto* const end = std::upper_bound(kOffsets, kOffsets + 4, n);
      T sum = in.size() > 2 ? in[2][0][o] : T(0);
      for (index tap = 0; tap < width; ++tap) {
        const index seen = n - before + tap * dilation;
        if (seen < end[-1] || seen >= end[0]) continue;
        for (index c = 0; c < C; ++c) {
          sum += in[0][seen][c] * weights[(o * width + tap) * C + c];
        }
      }
      return activate(f, sum);
    });
  }
};

struct GluFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    using std::exp;
    fill(y, [&](index n, index c) { return in[0][n][c] / (T(1) + exp(-in[0][n][y.columns + c])); });
  }
};

struct MaxOverTimeFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index s, index c) {
      if (kOffsets[s] == kOffsets[s + 1]) return T(0);
      T most = in[0][kOffsets[s]][c];
      for (index n = kOffsets[s]; n < kOffsets[s + 1]; ++n) {
        if (in[0][n][c] > most) most = in[0][n][c];
      }
      return most;
    });
  }
};

}  // namespace fovea
