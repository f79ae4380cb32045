// SPDX-License-Identifier: Apache-2.0
// Convolution over time, gated linear units, and the maximum and mean over time as simple loops on
// one thread: in double the reference of the kernels' tests, in float the plain implementation with
// whose error the kernels' error is compared.
#pragma once

#include "fovea/kernel/convolution.h"
#include "fovea/kernel/over_time.h"

namespace fovea::reference {

/// y = bias + the sum over taps j of W_j x_(t - before + j dilation), for each sequence.
template <class T>
struct Convolution {
  Rows<const T> x;       ///< [N, in]
  Rows<const T> weight;  ///< [out, width in]
  Vec<const T> bias;     ///< [out], or empty
  Vec<const std::int32_t> offsets;
  Window window;
};
template <class T>
void convolution_forward(const Convolution<T>& c, Rows<T> y);

/// All are written. The bias's gradient is the column sums of dy.
template <class T>
struct ConvolutionGradients {
  Rows<T> dx, dw;
};
template <class T>
void convolution_backward(const Convolution<T>& c, InRows<T> dy, const ConvolutionGradients<T>& g);

template <class T>
void glu_forward(InRows<T> x, Rows<T> y);
template <class T>
void glu_backward(InRows<T> x, InRows<T> dy, Rows<T> dx);

template <class T>
void max_over_time_forward(InRows<T> x, Vec<const std::int32_t> offsets, Rows<T> y);
template <class T>
void max_over_time_backward(const MaxOverTimeBackward<T>& a);

template <class T>
void mean_over_time_forward(InRows<T> x, Vec<const std::int32_t> offsets, Rows<T> y);
template <class T>
void mean_over_time_backward(InRows<T> dy, Vec<const std::int32_t> offsets, Rows<T> dx);

}  // namespace fovea::reference
