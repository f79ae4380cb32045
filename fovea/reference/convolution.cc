// SPDX-License-Identifier: Apache-2.0
#include "fovea/reference/convolution.h"

#include <cmath>

namespace fovea::reference {

namespace {

// Calls f(row of y, tap, row of x) for every tap that meets a row of the same sequence.
template <class F>
void for_each_tap(Vec<const std::int32_t> offsets, const Window& w, F&& f) {
  for (index s = 0; s + 1 < offsets.size; ++s)
    for (index row = offsets[s]; row < offsets[s + 1]; ++row)
      for (index tap = 0; tap < w.width; ++tap) {
        const index seen = row - w.before() + tap * w.dilation;
        if (seen >= offsets[s] && seen < offsets[s + 1]) f(row, tap, seen);
      }
}

}  // namespace

template <class T>
void convolution_forward(const Convolution<T>& c, Rows<T> y) {
  const index in = c.x.columns;
  for (index row = 0; row < y.rows; ++row)
    for (index o = 0; o < y.columns; ++o) y[row][o] = c.bias.empty() ? T{0} : c.bias[o];
  for_each_tap(c.offsets, c.window, [&](index row, index tap, index seen) {
    for (index o = 0; o < y.columns; ++o)
      for (index i = 0; i < in; ++i) y[row][o] += c.weight[o][tap * in + i] * c.x[seen][i];
  });
}

template <class T>
void convolution_backward(const Convolution<T>& c, InRows<T> dy, const ConvolutionGradients<T>& g) {
  const index in = c.x.columns;
  for (const Rows<T>& rows : {g.dx, g.dw})
    for (index r = 0; r < rows.rows; ++r) std::fill_n(rows[r], rows.columns, T{0});
  for_each_tap(c.offsets, c.window, [&](index row, index tap, index seen) {
    for (index o = 0; o < dy.columns; ++o)
      for (index i = 0; i < in; ++i) {
        g.dx[seen][i] += c.weight[o][tap * in + i] * dy[row][o];
        g.dw[o][tap * in + i] += c.x[seen][i] * dy[row][o];
      }
  });
}

template <class T>
void glu_forward(InRows<T> x, Rows<T> y) {
  const index C = y.columns;
  for (index n = 0; n < y.rows; ++n)
    for (index c = 0; c < C; ++c) y[n][c] = x[n][c] / (T{1} + std::exp(-x[n][C + c]));
}

template <class T>
void glu_backward(InRows<T> x, InRows<T> dy, Rows<T> dx) {
  const index C = dy.columns;
  for (index n = 0; n < dy.rows; ++n)
    for (index c = 0; c < C; ++c) {
      const T gate = T{1} / (T{1} + std::exp(-x[n][C + c]));
      dx[n][c] = dy[n][c] * gate;
      dx[n][C + c] = dy[n][c] * x[n][c] * gate * (T{1} - gate);
    }
}

template <class T>
void max_over_time_forward(InRows<T> x, Vec<const std::int32_t> offsets, Rows<T> y) {
  for (index s = 0; s < y.rows; ++s)
    for (index c = 0; c < y.columns; ++c) {
      T most = offsets[s] < offsets[s + 1] ? x[offsets[s]][c] : T{0};
      for (index n = offsets[s]; n < offsets[s + 1]; ++n) {
        if (x[n][c] > most || std::isnan(x[n][c])) most = x[n][c];
      }
      y[s][c] = most;
    }
}

template <class T>
void max_over_time_backward(const MaxOverTimeBackward<T>& a) {
  for (index s = 0; s < a.y.rows; ++s)
    for (index c = 0; c < a.y.columns; ++c) {
      bool found = false;
      for (index n = a.offsets[s]; n < a.offsets[s + 1]; ++n) {
        const T x = a.x[n][c], most = a.y[s][c];
        const bool here = !found && (x == most || (std::isnan(x) && std::isnan(most)));
        a.dx[n][c] = here ? a.dy[s][c] : T{0};
        found = found || here;
      }
    }
}

template <class T>
void mean_over_time_forward(InRows<T> x, Vec<const std::int32_t> offsets, Rows<T> y) {
  for (index s = 0; s < y.rows; ++s)
    for (index c = 0; c < y.columns; ++c) {
      const index count = offsets[s + 1] - offsets[s];
      T sum = 0;
      for (index n = offsets[s]; n < offsets[s + 1]; ++n) sum += x[n][c];
      y[s][c] = count == 0 ? T{0} : sum / static_cast<T>(count);
    }
}

template <class T>
void mean_over_time_backward(InRows<T> dy, Vec<const std::int32_t> offsets, Rows<T> dx) {
  for (index s = 0; s < dy.rows; ++s)
    for (index n = offsets[s]; n < offsets[s + 1]; ++n)
      for (index c = 0; c < dy.columns; ++c)
        dx[n][c] = dy[s][c] / static_cast<T>(offsets[s + 1] - offsets[s]);
}

#define FOVEA_INSTANTIATE(T)                                                             \
  template void convolution_forward(const Convolution<T>&, Rows<T>);                     \
  template void convolution_backward(const Convolution<T>&, Rows<const T>,               \
                                     const ConvolutionGradients<T>&);                    \
  template void glu_forward(Rows<const T>, Rows<T>);                                     \
  template void glu_backward(Rows<const T>, Rows<const T>, Rows<T>);                     \
  template void max_over_time_forward(Rows<const T>, Vec<const std::int32_t>, Rows<T>);  \
  template void max_over_time_backward(const MaxOverTimeBackward<T>&);                   \
  template void mean_over_time_forward(Rows<const T>, Vec<const std::int32_t>, Rows<T>); \
  template void mean_over_time_backward(Rows<const T>, Vec<const std::int32_t>, Rows<T>);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::reference
