// SPDX-License-Identifier: Apache-2.0
// Sums, products, copies and multiples of whole arrays. All are [N,C], rows may be strided, an
// output may be an input. Rows of float32 rounded to bfloat16, and back.
#pragma once

#include "fovea/base/bfloat16.h"
#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

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

}  // namespace fovea
