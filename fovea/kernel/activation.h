// SPDX-License-Identifier: Apache-2.0
// Activation functions, element by element, forward and backward. activation-inl.h has the same
// functions for one vector, for the epilogues of products.
//
// Gated linear units (Dauphin, Fan, Auli, Grangier 2017, "Language modeling with gated
// convolutional networks", eq. 1).
#pragma once

#include <string_view>

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

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
