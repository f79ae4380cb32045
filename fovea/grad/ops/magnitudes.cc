// SPDX-License-Identifier: Apache-2.0
// What magnitudes of adapters make of a product (DoRA).
#include <algorithm>
#include <span>

#include "fovea/base/memory.h"
#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"
#include "fovea/grad/row_norms.h"
#include "fovea/kernel/elementwise.h"
#include "fovea/kernel/gemm.h"

namespace fovea {

namespace {

/// The magnitudes of a change, on the tape.
template <class T>
struct MagnitudeCall {
  Variable m;
  Vec<const T> norms;
  index first;
};

template <class T>
struct ScaledCall {
  Variable u, bias, z;
  Vec<const T> factors;  // of the columns: m / norm, or 1
  std::span<const MagnitudeCall<T>> magnitudes;
};

// y[n, c] = x[n, c] factors[c].
template <class T>
void scale_columns(const Context& context, Rows<const T> x, Vec<const T> factors, Rows<T> y) {
  context.for_ranges(x.rows, 2 * static_cast<double>(x.columns), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      const T* const from = x[n];
      T* const to = y[n];
      for (index c = 0; c < x.columns; ++c) to[c] = from[c] * factors[c];
    }
  });
}

template <class T>
std::span<const MagnitudeCall<T>> magnitudes_of(Tape& tape, const Parameter& weight) {
  auto* const calls = tape.saved<MagnitudeCall<T>>(std::ssize(weight.changes));
  std::size_t count = 0;
  for (const LowRank& change : weight.changes) {
    if (change.magnitudes == nullptr) continue;
    const Vec<const T> norms = change.norms->get<T>(tape.context(), weight, change);
    // The tape keeps them, for A and B may change before backward reads them.
    auto* const kept = tape.saved<T>(norms.size);
    tape.context().run_here([&] { std::copy_n(norms.data, norms.size, kept); });
    calls[count++] = {tape.parameter(*change.magnitudes), {kept, norms.size}, change.first};
  }
  return {calls, count};
}

template <class T>
Vec<const T> factors_of(Tape& tape, std::span<const MagnitudeCall<T>> magnitudes, index columns) {
  auto* const factors = tape.saved<T>(columns);
  tape.context().run_here([&] {
    std::fill_n(factors, columns, T{1});
    for (const MagnitudeCall<T>& one : magnitudes) {
      const Vec<const T> m = one.m.template vec<T>();
      for (index c = 0; c < m.size; ++c) factors[one.first + c] = over_norm(m[c], one.norms[c]);
    }
  });
  return {factors, columns};
}

// dm = sum over rows of dz u / norm: the norm counts as a constant (Liu et al. 2024, section 4.3).
template <class T>
void pull_magnitudes(Tape& tape, const MagnitudeCall<T>& one, Rows<const T> dz, Rows<const T> u) {
  const auto dm = tape.gradient_for<T>(one.m);
  if (!dm) return;
  const Context& context = tape.context();
  const index end = one.first + one.norms.size;
  Scratch scratch;
  const Rows<T> products(scratch.allocate<T>(dz.rows * one.norms.size), dz.rows, one.norms.size);
  const Vec<T> sums(scratch.allocate<T>(one.norms.size), one.norms.size);
  multiply<T>(context, dz.columns_slice(one.first, end), u.columns_slice(one.first, end), products);
  column_sums<T>(context, Rows<const T>(products), sums);
  context.run_here([&] {
    T* const to = dm.vec().data;
    for (index c = 0; c < sums.size; ++c) {
      const T value = over_norm(sums[c], one.norms[c]);
      to[c] = dm.store == Store::kAdd ? to[c] + value : value;
    }
  });
}

template <class T>
void pull_scaled(Tape& tape, const ScaledCall<T>& call) {
  const Context& context = tape.context();
  const Rows<const T> dz = tape.gradient_of<T>(call.z);
  for (const MagnitudeCall<T>& one : call.magnitudes) {
    pull_magnitudes<T>(tape, one, dz, call.u.template value<T>());
  }
  if (const auto db = tape.gradient_for<T>(call.bias)) {
    column_sums<T>(context, dz, db.vec(), db.store);
  }
  write_or_add(context, tape.gradient_for<T>(call.u),
               [&](Rows<T> du) { scale_columns<T>(context, dz, call.factors, du); });
}

}  // namespace

Variable scaled_by_magnitudes(Tape& tape, Variable u, const Parameter& weight, Variable bias) {
  check_vector("magnitudes", "bias", bias, u.columns(), u.dtype());
  const Variable z = tape.result(u.rows(), u.columns(), u.dtype());
  with_type(u.dtype(), [&]<class T>(std::type_identity<T>) {
    const std::span<const MagnitudeCall<T>> magnitudes = magnitudes_of<T>(tape, weight);
    const Vec<const T> factors = factors_of<T>(tape, magnitudes, u.columns());
    scale_columns<T>(tape.context(), u.value<T>(), factors, z.value<T>());
    if (bias.defined()) add_bias<T>(tape.context(), z.value<T>(), bias.vec<T>(), z.value<T>());
    auto* const inputs = tape.saved<Variable>(2 + std::ssize(magnitudes));
    Variable* next = inputs;
    *next++ = u;
    *next++ = bias;
    for (const MagnitudeCall<T>& one : magnitudes) *next++ = one.m;
    tape.record(z, std::span<const Variable>(inputs, next),
                [call = ScaledCall<T>{u, bias, z, factors, magnitudes}](Tape& t) {
                  pull_scaled<T>(t, call);
                });
  });
  return z;
}

}  // namespace fovea
