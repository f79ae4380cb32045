// SPDX-License-Identifier: Apache-2.0
// One value at a time: sums, products, roundings, and activations.
#pragma once

#include <string_view>

#include "fovea/base/context.h"
#include "fovea/base/precision.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

// Sums, products, copies and multiples of whole arrays. All are [N,C], rows may be strided, an
// output may be an input. Rows of float32 rounded to bfloat16, and back.

/// y = a + b.
template <class T>
void add_forward(const Context& ctx, InRows<T> a, InRows<T> b, Rows<T> y);

/// y += x.
template <class T>
void accumulate(const Context& ctx, InRows<T> x, Rows<T> y);

/// y = factor * x.
template <class T>
void scale(const Context& ctx, double factor, InRows<T> x, Rows<T> y);

/// y = a * b, element by element (gates).
template <class T>
void multiply(const Context& ctx, InRows<T> a, InRows<T> b, Rows<T> y);

/// y = x.
template <class T>
void copy_rows(const Context& ctx, InRows<T> x, Rows<T> y);

/// y = value.
template <class T>
void fill(const Context& ctx, std::type_identity_t<T> value, Rows<T> y);

/// y[n] = x[n] + bias: bias [C]. Its gradient is column_sums (gemm.h).
template <class T>
void add_bias(const Context& ctx, InRows<T> x, InVec<T> bias, Rows<T> y);

/// y = x, rounded as to_bfloat16() does. Throws Error(kShape) unless both have one shape.
void round_rows(const Context& ctx, Rows<const float> x, Rows<BFloat16> y);

/// y = x.
void widen_rows(const Context& ctx, Rows<const BFloat16> x, Rows<float> y);

/// y += x.
void accumulate(const Context& ctx, Rows<const BFloat16> x, Rows<float> y);

// Activation functions, element by element, forward and backward. activation-inl.h has the same
// functions for one vector, for the epilogues of products.
//
// Gated linear units (Dauphin, Fan, Auli, Grangier 2017, "Language modeling with gated
// convolutional networks", eq. 1).

enum class Activation {
  kNone,      ///< x
  kRelu,      ///< max(x, 0); the gradient at 0 is 0
  kGelu,      ///< x Phi(x) = x (1 + erf(x / sqrt 2)) / 2 (Hendrycks, Gimpel 2016)
  kGeluTanh,  ///< x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, as in GPT-2
  kSilu,      ///< x / (1 + exp(-x))
  kTanh,      ///< tanh(x)
};

/// y[n,c] = f(x[n,c]). x, y [N,C], rows may be strided; y may be x. NaN stays NaN.
template <class T>
void activation_forward(const Context& ctx, Activation f, InRows<T> x, Rows<T> y);

/// dx[n,c] = f'(x[n,c]) dy[n,c], from the x that forward saw. All [N,C]; dx may be dy or x.
template <class T>
void activation_backward(const Context& ctx, Activation f, InRows<T> x, InRows<T> dy, Rows<T> dx);

/// y = a * sigmoid(b), for x = [a, b]: x [N, 2C], y [N, C].
template <class T>
void glu_forward(const Context& ctx, InRows<T> x, Rows<T> y);

/// da = dy sigmoid(b), db = dy a sigmoid'(b): dx [N, 2C], which may be x.
template <class T>
void glu_backward(const Context& ctx, InRows<T> x, InRows<T> dy, Rows<T> dx);

}  // namespace fovea
