// SPDX-License-Identifier: Apache-2.0
// Layer normalisation (Ba, Kiros, Hinton 2016, eq. 4, and the variant of The Annotated Transformer)
// and root mean square normalisation (Zhang, Sennrich 2019, eq. 4), forward and backward.
#pragma once

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

/// The divisor of x - mu. Mean and variance are taken over the last axis.
enum class LayerNormVariant {
  kStandard,  ///< sqrt(var + epsilon), var = sum (x - mu)^2 / C: what every framework does
  kUnbiased,  ///< sqrt(sum (x - mu)^2 / (C - 1)) + epsilon: The Annotated Transformer and
              ///< Hands-on NLP, chapter 6
};

struct LayerNormOptions {
  LayerNormVariant variant = LayerNormVariant::kStandard;
  double epsilon = 1e-5;
};

/// gain and bias [C]; each may be left out (empty): gain 1, bias 0.
template <class T>
struct NormParameters {
  Vec<const T> gain = {};
  Vec<const T> bias = {};
};

/// y[n,c] = gain[c] * xhat[n,c] + bias[c],  xhat = (x - mu) / divisor.
///
/// x, y [N,C], rows may be strided; y may be x. `saved` [N,2] receives mu and the deviation of each
/// row (the root above, without kUnbiased's epsilon): all that backward needs besides x.
/// In a constant row xhat is exactly 0, and every gradient is finite.
/// Throws Error if a shape disagrees, or if kUnbiased is asked for fewer than 2 columns.
template <class T>
void layer_norm_forward(const Context& ctx, InRows<T> x,
                        const NormParameters<std::type_identity_t<T>>& parameters,
                        const LayerNormOptions& options, Rows<T> y, Rows<T> saved);

/// The arguments of layer_norm_backward: those of forward and what it wrote, dy [N,C], and the
/// gradients to compute. dx may be dy, unless dx_store is kAdd, which adds to dx (for the residual
/// connection). dgain and dbias [C] are added to; either may be left out.
template <class T>
struct LayerNormBackward {
  Rows<const T> x = {};
  Vec<const T> gain = {};
  LayerNormOptions options = {};
  Rows<const T> saved = {};
  Rows<const T> dy = {};
  Rows<T> dx = {};
  Vec<T> dgain = {};
  Vec<T> dbias = {};
  Store dx_store = Store::kWrite;
};

/// The sums over rows have the same bits for any number of threads.
template <class T>
void layer_norm_backward(const Context& ctx, const LayerNormBackward<T>& a);

/// y[n,c] = gain[c] * x[n,c] / rms[n],  rms = sqrt(sum_c x^2 / C + epsilon). gain may be left out.
/// x, y [N,C]; y may be x. `saved` [N] receives rms.
template <class T>
void rms_norm_forward(const Context& ctx, InRows<T> x, InVec<T> gain, double epsilon, Rows<T> y,
                      Vec<T> saved);

/// As LayerNormBackward.
template <class T>
struct RmsNormBackward {
  Rows<const T> x = {};
  Vec<const T> gain = {};
  Vec<const T> saved = {};
  Rows<const T> dy = {};
  Rows<T> dx = {};
  Vec<T> dgain = {};
  Store dx_store = Store::kWrite;
};

template <class T>
void rms_norm_backward(const Context& ctx, const RmsNormBackward<T>& a);

}  // namespace fovea
