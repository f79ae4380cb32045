// SPDX-License-Identifier: Apache-2.0
// Adam with decoupled weight decay (Kingma, Ba 2015, algorithm 1; Loshchilov, Hutter 2019,
// algorithm 2), and clipping by the global norm (Pascanu, Mikolov, Bengio 2013, algorithm 1).
#pragma once

#include <cstdint>
#include <span>

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;  ///< outside the root, as in PyTorch
  double weight_decay = 0;
};

/// Row `row` of a table has its gradient in row `place` of a list.
struct GradientRow {
  std::int32_t row = 0, place = 0;
};

/// One parameter with its gradient and moments, all of one size. `decay` multiplies weight_decay:
/// it is 0 for gains, biases and other parameters without decay.
///
/// With `columns` > 0 the parameter is a table of rows of so many columns, and `gradient` holds
/// `rows` alone, [rows.size, columns], ascending by `row`: all others have a gradient of zero, are
/// not touched, and are for adamw_catch_up (kernel/adamw_rows.h).
template <class T>
struct AdamWSlot {
  Vec<T> value = {};
  Vec<const T> gradient = {};
  Vec<T> m = {};
  Vec<T> v = {};
  double decay = 1;
  Vec<const GradientRow> rows = {};
  index columns = 0;
};

struct AdamWStep {
  AdamWOptions options = {};
  index step = 1;             ///< 1 for the first update: the exponent of the bias corrections
  double gradient_scale = 1;  ///< multiplies every gradient as it is read: clip_scale()
};

/// One update, in one pass over memory:
///   g = gradient_scale * gradient;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
///   value -= lr (m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) + epsilon)
///                + decay weight_decay value).
/// Throws Error if the sizes of a slot disagree or its rows do not ascend within the table (kShape)
/// or step < 1 (kOptionValue).
template <class T>
void adamw(const Context& ctx, std::span<const AdamWSlot<T>> slots, const AdamWStep& step);

/// The square root of the sum of squares of all gradients, summed in double in a fixed order; the
/// rest of a slot is not read. Inf or NaN if any gradient is (or if the sum overflows): then skip
/// the update. A slot with rows gives the bits of the whole gradient.
template <class T>
double global_norm(const Context& ctx, std::span<const AdamWSlot<T>> slots);

/// The factor for all gradients that makes their norm at most `limit`: limit / norm if norm >
/// limit, else 1. A limit <= 0 means no clipping.
double clip_scale(double norm, double limit);

}  // namespace fovea
