// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "fovea/base/memory.h"
#include "fovea/base/profile.h"
#include "fovea/kernel/block_matrix.h"
#include "fovea/kernel/elementwise.h"
#include "fovea/kernel/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/cross_entropy.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// Stores max and the sum of exp(logits - max), and writes dlogits if they are not null:
// dlogits = scale softmax(logits) - rest; the caller corrects the target's column. kLog2E explains
// why it computes 2^(x log2 e) and not e^x.
template <class T>
void SoftmaxRow(const T* logits, index V, T scale, T rest, T* dlogits, T* max_and_sum) {
  const T max = Max(logits, V);
  const T sum = SumOf<T>(V, [=](auto lanes, index v) {
    const auto below = hn::Sub(lanes.Load(logits + v), lanes.Set(max));
    const auto e = Exp2OfWeight(lanes.d, hn::Mul(below, lanes.Set(kLog2E<T>)));
    if (dlogits != nullptr) lanes.Store(e, dlogits + v);
    return e;
  });
  max_and_sum[0] = max;
  max_and_sum[1] = sum;
  if (dlogits == nullptr) return;
  const T factor = sum == T{0} ? T{0} : scale / sum;
  ForEachLane<T>(V, [=](auto lanes, index v) {
    const auto scaled = hn::Mul(lanes.Load(dlogits + v), lanes.Set(factor));
    lanes.Store(hn::Sub(scaled, lanes.Set(rest)), dlogits + v);
  });
}

// The sum of x[v] - from.
template <class T>
double DifferencesRow(const T* x, index V, T from) {
  return static_cast<double>(SumOf<T>(
      V, [=](auto lanes, index v) { return hn::Sub(lanes.Load(x + v), lanes.Set(from)); }));
}

auto SoftmaxRowKernel() { return PerPrecision{SoftmaxRow<float>, SoftmaxRow<double>}; }
auto DifferencesRowKernel() { return PerPrecision{DifferencesRow<float>, DifferencesRow<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {

namespace {

HWY_EXPORT(SoftmaxRowKernel);
HWY_EXPORT(DifferencesRowKernel);

// log(sum) - (x - max), not (log(sum) + max) - x, which would lose digits: the difference of two
// large numbers is small.
template <class T>
T loss_of(T target_logit, T max, T sum) {
  if (sum == T{0}) return std::numeric_limits<T>::infinity();
  return std::log(sum) - (target_logit - max);
}

double weight_of(const Targets& targets, index v) {
  return targets.weights.empty() ? 1 : targets.weights[v];
}

// The part of the target that smoothing gives to class v.
double rest_of(const Targets& targets, index V, index v) {
  return targets.smoothing / static_cast<double>(V) * weight_of(targets, v);
}

double sum_of_rests(const Targets& targets, index V) {
  if (targets.smoothing == 0) return 0;
  double sum = 0;
  for (index v = 0; v < V; ++v) sum += rest_of(targets, V, v);
  return sum;
}

// How much larger the logits of all classes are than that of the target, by the shares that
// smoothing gives them.
template <class T>
double rest_of_loss(const Targets& targets, const T* logits, index V, T target_logit) {
  if (targets.smoothing == 0) return 0;
  double sum = 0;
  for (index v = 0; v < V; ++v) {
    const double share = rest_of(targets, V, v);
    if (share > 0) sum += share * (static_cast<double>(logits[v]) - target_logit);
  }
  return sum;
}

void check_targets(const Targets& targets, index V) {
  check_optional("cross_entropy", "weights", targets.weights, "V", V);
  for (const double w : targets.weights) {
    if (w >= 0 && w <= std::numeric_limits<double>::max()) continue;
    fail(ErrorCode::kOptionValue,
         "cross_entropy: the weight of a class is {}; it must be finite and at least 0", w);
  }
  if (targets.smoothing >= 0 && targets.smoothing < 1) return;
  fail(ErrorCode::kOptionValue, "cross_entropy: smoothing is {}; it must be in [0, 1)",
       targets.smoothing);
}

// A row of the call: `rests` is the sum of what smoothing gives to the classes. Without weights
// they all get the same, so vectors add it up and subtract it.
template <class T>
struct LossRow {
  const Targets& targets;
  double scale, rests;
  void (*softmax)(const T* logits, index V, T scale, T rest, T* dlogits, T* max_and_sum);
  double (*differences)(const T* logits, index V, T from);

  bool is_even() const { return targets.weights.empty(); }

  double rest_of_row(const T* logits, index V, T target_logit) const {
    if (targets.smoothing == 0 || !is_even()) {
      return rest_of_loss(targets, logits, V, target_logit);
    }
    return rest_of(targets, V, 0) * differences(logits, V, target_logit);
  }

  // The loss of the row; dx, if not null, gets its gradient and may be the logits.
  T run(const T* logits, index V, std::int32_t target, T* dx) const {
    const double share = (1 - targets.smoothing) * weight_of(targets, target);
    const double all = share + rests;
    const T target_logit = logits[target];
    const double rest = rest_of_row(logits, V, target_logit);
    const double of_each = is_even() ? rest_of(targets, V, 0) : 0;
    T max_and_sum[2];
    softmax(logits, V, static_cast<T>(scale * all), static_cast<T>(scale * of_each), dx,
            max_and_sum);
    if (dx != nullptr) {
      for (index v = 0; !is_even() && targets.smoothing > 0 && v < V; ++v) {
        if (v != target) dx[v] -= static_cast<T>(scale * rest_of(targets, V, v));
      }
      const double of_target = is_even() ? 0 : rest_of(targets, V, target);
      dx[target] -= static_cast<T>(scale * (share + of_target));
    }
    const auto& [max, sum] = max_and_sum;
    const double loss = loss_of(target_logit, max, sum);
    return static_cast<T>(all == 0 ? 0 : std::isinf(loss) ? loss : all * loss - rest);
  }
};

}  // namespace

index count_targets(const Targets& targets, index V) {
  check_targets(targets, V);
  index count = 0;
  for (index n = 0; n < targets.ids.size; ++n) {
    const std::int32_t id = targets.ids[n];
    if (id == targets.ignore) continue;
    check(id >= 0 && id < V,
          "cross_entropy: targets[{}] is {}; it must be in 0 to {}, or {} to be ignored", n, id,
          V - 1, targets.ignore);
    ++count;
  }
  return count;
}

double weigh_targets(const Targets& targets, index V) {
  count_targets(targets, V);
  double sum = 0;
  for (const std::int32_t id : targets.ids) {
    if (id != targets.ignore) sum += weight_of(targets, id);
  }
  return sum;
}

template <class T>
CrossEntropy cross_entropy(const Context& ctx, InRows<T> logits, const Targets& targets,
                           double scale, Vec<T> losses, Rows<T> dlogits) {
  constexpr double kCost = 12;  // operations for one element
  const index N = logits.rows, V = logits.columns;
  check_vec("cross_entropy", "targets", targets.ids, "N", N);
  check_vec("cross_entropy", "losses", losses, "N", N);
  const bool with_gradient = dlogits.data != nullptr;
  if (with_gradient) check_rows("cross_entropy", "dlogits", dlogits, N, V);
  CrossEntropy result{.total = 0, .count = count_targets(targets, V)};
  const LossRow<T> row{targets, scale, sum_of_rests(targets, V),
                       FOVEA_DISPATCH(SoftmaxRowKernel)().of<T>(),
                       FOVEA_DISPATCH(DifferencesRowKernel)().of<T>()};
  const ProfileScope scope(ctx, pass_over<T>("cross entropy", N, V, 2));
  ctx.for_ranges(N, kCost * static_cast<double>(V), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      const std::int32_t target = targets.ids[n];
      T* const dx = with_gradient ? dlogits[n] : nullptr;
      if (target != targets.ignore) {
        losses[n] = row.run(logits[n], V, target, dx);
        continue;
      }
      losses[n] = T{0};
      if (with_gradient) std::fill_n(dx, V, T{0});
    }
  });
  for (const T loss : losses) result.total += static_cast<double>(loss);
  return result;
}

template CrossEntropy cross_entropy(const Context&, Rows<const float>, const Targets&, double,
                                    Vec<float>, Rows<float>);
template CrossEntropy cross_entropy(const Context&, Rows<const double>, const Targets&, double,
                                    Vec<double>, Rows<double>);

// At most 32 MB of logits, so that they stay in a shared cache, but enough rows that reading and
// writing dweight for every chunk takes less time than the product.
template <class T>
index logit_rows(index N, index V) {
  constexpr index kLogitBytes = index{32} << 20;
  const index fitting = kLogitBytes / (std::max<index>(V, 1) * static_cast<index>(sizeof(T)));
  return std::min(N, std::clamp<index>(fitting / 32 * 32, 64, 256));
}

namespace {

// The rows that have a target, packed together: only these are computed.
template <class T>
struct KeptRows {
  Rows<const T> x;
  Vec<const std::int32_t> ids;
  Vec<const index> rows;  // their original numbers; empty: all rows, in place

  bool all() const { return rows.empty(); }
};

template <class T>
KeptRows<T> kept_rows(const Context& ctx, const LinearCrossEntropy<T>& a, index count,
                      Scratch& scratch) {
  if (count == a.x.rows) return {a.x, a.targets.ids, {}};
  index* const rows = scratch.allocate<index>(count);
  std::int32_t* const ids = scratch.allocate<std::int32_t>(count);
  index next = 0;
  for (index n = 0; n < a.x.rows; ++n) {
    if (a.targets.ids[n] == a.targets.ignore) continue;
    rows[next] = n;
    ids[next++] = a.targets.ids[n];
  }
  const Rows<T> x(scratch.allocate<T>(count * a.x.columns), count, a.x.columns);
  ctx.for_ranges(count, static_cast<double>(a.x.columns), [&](index begin, index end) {
    for (index i = begin; i < end; ++i) std::copy_n(a.x[rows[i]], a.x.columns, x[i]);
  });
  return {x, {ids, count}, {rows, count}};
}

template <class T>
index vocabulary_of(const LinearCrossEntropy<T>& a) {
  return a.blocks != nullptr ? a.blocks->rows() : a.weight.rows;
}

template <class T>
void check_arguments(const LinearCrossEntropy<T>& a) {
  const char* const kName = "linear_cross_entropy";
  const index N = a.x.rows, C = a.x.columns, V = vocabulary_of(a);
  if (a.blocks == nullptr) {
    check_rows(kName, "weight", a.weight, V, C);
  } else {
    check(std::is_same_v<T, float> && a.blocks->columns() == C && a.dweight.data == nullptr,
          "{}: blocks are a float32 weight [V, {}] without gradient", kName, C);
  }
  check_optional(kName, "bias", a.bias, "V", V);
  check_vec(kName, "targets", a.targets.ids, "N", N);
  check_optional(kName, "losses", a.losses, "N", N);
  if (a.dx.data != nullptr) check_rows(kName, "dx", a.dx, N, C);
  if (a.dweight.data != nullptr) check_rows(kName, "dweight", a.dweight, V, C);
  check_optional(kName, "dbias", a.dbias, "V", V);
  const auto check_packed = [&](const char* name, const PackedMatrix<T>* p, index rows,
                                index cols) {
    check(p == nullptr || (p->rows() == rows && p->columns() == cols),
          "{}: {} must be [{}, {}]; it is [{}, {}]", kName, name, rows, cols, p ? p->rows() : 0,
          p ? p->columns() : 0);
  };
  check_packed("packed_transposed", a.packed_transposed, C, V);
  check_packed("packed", a.packed, V, C);
}

// The weight for the two products: packed by the caller, or read in place, or packed here.
template <class T>
struct Weights {
  Panels<T> transposed, plain;
  PackedMatrix<T> own_transposed, own_plain;

  Weights(const Context& ctx, const LinearCrossEntropy<T>& a, index count) {
    if (a.blocks != nullptr) return;
    const auto packed = [&](const PackedMatrix<T>* given, PackedMatrix<T>& own, Form form) {
      if (given != nullptr) return given->panels();
      const Operands operands = operands_of<T>(ctx);
      if (count <= kRowsInPlace || reads_well_in_place(a.weight, form, operands)) {
        return panels_in_place(a.weight, form, operands);
      }
      own.pack(ctx, a.weight, form);
      return own.panels();
    };
    transposed = packed(a.packed_transposed, own_transposed, Form::kTransposed);
    if (a.dx.data != nullptr) plain = packed(a.packed, own_plain, Form::kPlain);
  }
  Weights(const Weights&) = delete;
};

// y = x W^T + bias, or y = x W.
template <class T>
void multiply_by(const Context& ctx, Rows<const T> x, const LinearCrossEntropy<T>& a,
                 const Weights<T>& weights, Form form, Rows<T> y) {
  const bool plain = form == Form::kPlain;
  MatmulOptions<T> options;
  if (!plain) options.bias = a.bias;
  if constexpr (std::is_same_v<T, float>) {
    if (a.blocks != nullptr) return matmul(ctx, x, *a.blocks, form, y, options);
  }
  matmul(ctx, x, plain ? weights.plain : weights.transposed, y, options);
}

template <class T>
struct Chunk {
  Rows<const T> x;
  Vec<const std::int32_t> ids;
  Rows<T> logits, capped;  // the second with a softcap alone
  Vec<T> losses;
  Rows<T> dx;
  Store dweight_store, dbias_store;  // the first chunk may write, later ones add
};

// The logits become l / c, and `capped` c tanh(l / c), whose gradient by l is that of tanh at l /
// c.
template <class T>
void cap_logits(const Context& ctx, double softcap, Rows<T> logits, Rows<T> capped) {
  scale<T>(ctx, 1 / softcap, logits, logits);
  activation_forward<T>(ctx, Activation::kTanh, logits, capped);
  scale<T>(ctx, softcap, capped, capped);
}

// The logits of a chunk are replaced by their gradient in place, which is used three times while it
// is in the cache: for dx, dweight and dbias. Writes losses and dx of the rows of x.
template <class T>
void do_chunk(const Context& ctx, const LinearCrossEntropy<T>& a, const Weights<T>& weights,
              const Chunk<T>& chunk) {
  const bool want_gradient =
      chunk.dx.data != nullptr || a.dweight.data != nullptr || !a.dbias.empty();
  multiply_by(ctx, chunk.x, a, weights, Form::kTransposed, chunk.logits);
  const bool caps = a.softcap > 0;
  if (caps) cap_logits(ctx, a.softcap, chunk.logits, chunk.capped);
  const Rows<T> read = caps ? chunk.capped : chunk.logits;
  Targets targets = a.targets;
  targets.ids = chunk.ids;
  cross_entropy(ctx, read, targets, a.scale, chunk.losses, want_gradient ? read : Rows<T>());
  if (caps && want_gradient) {
    activation_backward<T>(ctx, Activation::kTanh, chunk.logits, read, chunk.logits);
  }
  if (chunk.dx.data != nullptr && a.dweight.data != nullptr) {
    run_together<T>(ctx, {ctx, chunk.logits, weights.plain, chunk.dx, MatmulOptions<T>()},
                    {ctx, chunk.logits, chunk.x, a.dweight, chunk.dweight_store});
  } else if (chunk.dx.data != nullptr) {
    multiply_by<T>(ctx, chunk.logits, a, weights, Form::kPlain, chunk.dx);
  } else if (a.dweight.data != nullptr) {
    matmul_at_b(ctx, chunk.logits, chunk.x, a.dweight, chunk.dweight_store);
  }
  if (!a.dbias.empty()) column_sums(ctx, chunk.logits, a.dbias, chunk.dbias_store);
}

}  // namespace

template <class T>
CrossEntropy linear_cross_entropy(const Context& ctx, const LinearCrossEntropy<T>& a) {
  check_arguments(a);
  const index C = a.x.columns, V = vocabulary_of(a), count = count_targets(a.targets, V);
  const ProfileScope scope(ctx, {.what = "loss", .shape = {a.x.rows, C, V}});
  const bool want_dx = a.dx.data != nullptr;
  if (want_dx && count < a.x.rows) fill(ctx, T{0}, a.dx);
  if (!a.losses.empty()) std::fill(a.losses.begin(), a.losses.end(), T{0});
  if (count == 0) {
    if (a.dweight.data != nullptr && a.dweight_store == Store::kWrite) fill(ctx, T{0}, a.dweight);
    if (a.dbias_store == Store::kWrite) std::fill(a.dbias.begin(), a.dbias.end(), T{0});
    return {};
  }

  Scratch scratch;
  const KeptRows<T> kept = kept_rows(ctx, a, count, scratch);
  const Weights<T> weights(ctx, a, count);
  index most = logit_rows<T>(count, V);
  if (a.blocks != nullptr) most = std::min(count, std::max(most, C));
  const Rows<T> logits(scratch.allocate<T>(most * V), most, V);
  const bool caps = a.softcap > 0;
  const Rows<T> capped = caps ? Rows<T>(scratch.allocate<T>(most * V), most, V) : Rows<T>();
  const Vec<T> losses{scratch.allocate<T>(count), count};
  const Rows<T> dx =
      kept.all() || !want_dx ? a.dx : Rows<T>(scratch.allocate<T>(count * C), count, C);
  for (index begin = 0; begin < count; begin += most) {
    const index end = std::min(count, begin + most);
    do_chunk(ctx, a, weights,
             {.x = kept.x.slice(begin, end),
              .ids = {kept.ids.data + begin, end - begin},
              .logits = logits.slice(0, end - begin),
              .capped = caps ? capped.slice(0, end - begin) : Rows<T>(),
              .losses = {losses.data + begin, end - begin},
              .dx = want_dx ? dx.slice(begin, end) : Rows<T>(),
              .dweight_store = begin == 0 ? a.dweight_store : Store::kAdd,
              .dbias_store = begin == 0 ? a.dbias_store : Store::kAdd});
  }

  CrossEntropy result{.total = 0, .count = count};
  for (index i = 0; i < count; ++i) {
    const index n = kept.all() ? i : kept.rows[i];
    result.total += static_cast<double>(losses[i]);
    if (!a.losses.empty()) a.losses[n] = losses[i];
    if (want_dx && !kept.all()) std::copy_n(dx[i], C, a.dx[n]);
  }
  return result;
}

template index logit_rows<float>(index, index);
template index logit_rows<double>(index, index);
template CrossEntropy linear_cross_entropy(const Context&, const LinearCrossEntropy<float>&);
template CrossEntropy linear_cross_entropy(const Context&, const LinearCrossEntropy<double>&);

}  // namespace fovea

// There are few logits in a batch of texts, so this is plain code in double: exact for logits of
// any size, and the same bits on every instruction set.

namespace fovea {

namespace {

void check_weights(std::string_view name, Vec<const double> weights, index K) {
  check_optional("binary_cross_entropy", name, weights, "K", K);
  for (const double w : weights) {
    if (w >= 0 && w <= std::numeric_limits<double>::max()) continue;
    fail(ErrorCode::kOptionValue,
         "binary_cross_entropy: a weight of {} is {}; it must be finite and at least 0", name, w);
  }
}

template <class T>
void check_targets(const BinaryTargets<T>& targets, index N, index K) {
  check_rows("binary_cross_entropy", "targets", targets.y, N, K);
  check_weights("ones", targets.weights.ones, K);
  check_weights("zeros", targets.weights.zeros, K);
  const double e = targets.weights.smoothing;
  if (!(e >= 0 && e < 1)) {
    fail(ErrorCode::kOptionValue, "binary_cross_entropy: smoothing is {}; it must be in [0, 1)", e);
  }
  for (index n = 0; n < N; ++n)
    for (index k = 0; k < K; ++k) {
      const auto y = static_cast<double>(targets.y[n][k]);
      if ((y >= 0 && y <= 1) || y == -1) continue;
      fail(ErrorCode::kOptionValue,
           "binary_cross_entropy: targets[{}, {}] is {}; it must be in 0 to 1, or -1 to be ignored",
           n, k, y);
    }
}

struct LossAndSlope {
  double loss, slope;
};

// log(1 + exp(z)) and its derivative, times `weight`. A weight of 0 makes a loss of infinity 0,
// too.
LossAndSlope softplus(double z, double weight) {
  if (weight == 0) return {0, 0};
  const double e = std::exp(-std::abs(z)), r = 1 / (1 + e);
  const double loss = (z > 0 ? z : 0) + std::log1p(e);
  return {weight * (std::isnan(z) ? z : loss), weight * (z < 0 ? e * r : r)};
}

LossAndSlope loss_of(double x, double y, const BinaryWeights& weights, index k) {
  if (y == -1) return {0, 0};
  const double p = weights.ones.empty() ? 1 : weights.ones[k];
  const double q = weights.zeros.empty() ? 1 : weights.zeros[k];
  const double target = (1 - weights.smoothing) * y + weights.smoothing / 2;
  const LossAndSlope one = softplus(-x, p * target), zero = softplus(x, q * (1 - target));
  return {one.loss + zero.loss, zero.slope - one.slope};
}

}  // namespace

template <class T>
double binary_cross_entropy(const Context& ctx, InRows<T> logits, const BinaryTargets<T>& targets,
                            double scale, Vec<T> losses, Rows<T> dlogits) {
  constexpr double kCost = 100;  // operations for one element
  const index N = logits.rows, K = logits.columns;
  check_targets(targets, N, K);
  check_vec("binary_cross_entropy", "losses", losses, "N", N);
  const bool with_gradient = dlogits.data != nullptr;
  if (with_gradient) check_rows("binary_cross_entropy", "dlogits", dlogits, N, K);
  const ProfileScope scope(ctx, pass_over<T>("binary cross entropy", N, K, 2));
  ctx.for_ranges(N, kCost * static_cast<double>(K), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      double sum = 0;
      for (index k = 0; k < K; ++k) {
        const auto [loss, slope] = loss_of(logits[n][k], targets.y[n][k], targets.weights, k);
        sum += loss;
        if (with_gradient) dlogits[n][k] = static_cast<T>(scale * slope);
      }
      losses[n] = static_cast<T>(sum);
    }
  });
  double total = 0;
  for (const T loss : losses) total += static_cast<double>(loss);
  return total;
}

template double binary_cross_entropy(const Context&, Rows<const float>, const BinaryTargets<float>&,
                                     double, Vec<float>, Rows<float>);
template double binary_cross_entropy(const Context&, Rows<const double>,
                                     const BinaryTargets<double>&, double, Vec<double>,
                                     Rows<double>);

}  // namespace fovea
#endif  // HWY_ONCE
