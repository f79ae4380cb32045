// SPDX-License-Identifier: Apache-2.0
#include "fovea/reference/kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "fovea/base/precision.h"

namespace fovea::reference {

template <class T>
CrossEntropy cross_entropy(InRows<T> logits, const Targets& targets, double scale, Vec<T> losses,
                           Rows<T> dlogits) {
  CrossEntropy result;
  const index V = logits.columns;
  for (index n = 0; n < logits.rows; ++n) {
    const std::int32_t target = targets.ids[n];
    const bool ignored = target == targets.ignore;
    const T* x = logits[n];
    const T max = *std::max_element(x, x + V);
    T sum = 0, all = 0, loss = 0;
    for (index v = 0; v < V; ++v) sum += std::exp(x[v] - max);
    const auto share = [&](index v) {
      const double weight = targets.weights.empty() ? 1 : targets.weights[v];
      const double smooth = targets.smoothing;
      return static_cast<T>(weight *
                            ((v == target ? 1 - smooth : 0) + smooth / static_cast<double>(V)));
    };
    for (index v = 0; v < V; ++v) {
      all += share(v);
      if (share(v) > T{0}) loss += share(v) * (std::log(sum) + max - x[v]);
    }
    for (index v = 0; v < dlogits.columns; ++v) {
      const T p = std::exp(x[v] - max) / sum;
      dlogits[n][v] = ignored ? T{0} : static_cast<T>(scale) * (all * p - share(v));
    }
    losses[n] = ignored ? T{0} : loss;
    result.total += static_cast<double>(losses[n]);
    result.count += ignored ? 0 : 1;
  }
  return result;
}

template <class T>
double binary_cross_entropy(InRows<T> logits, const BinaryTargets<T>& targets, double scale,
                            Vec<T> losses, Rows<T> dlogits) {
  const BinaryWeights& w = targets.weights;
  const auto e = static_cast<T>(w.smoothing);
  double total = 0;
  for (index n = 0; n < logits.rows; ++n) {
    losses[n] = 0;
    for (index k = 0; k < logits.columns; ++k) {
      const T x = logits[n][k], y = (1 - e) * targets.y[n][k] + e / 2;
      const T p = w.ones.empty() ? T{1} : static_cast<T>(w.ones[k]);
      const T q = w.zeros.empty() ? T{1} : static_cast<T>(w.zeros[k]);
      losses[n] += p * y * std::log(1 + std::exp(-x)) + q * (1 - y) * std::log(1 + std::exp(x));
      dlogits[n][k] =
          static_cast<T>(scale) * (q * (1 - y) / (1 + std::exp(-x)) - p * y / (1 + std::exp(x)));
    }
    total += static_cast<double>(losses[n]);
  }
  return total;
}

template <class T>
CrossEntropy linear_cross_entropy(const LinearCrossEntropy<T>& a) {
  const index N = a.x.rows, C = a.x.columns, V = a.weight.rows;
  std::vector<T> logits_memory(static_cast<std::size_t>(N * V));
  std::vector<T> losses_memory(static_cast<std::size_t>(N));
  const Rows<T> logits(logits_memory.data(), N, V);
  const Vec<T> losses = a.losses.empty() ? Vec<T>{losses_memory.data(), N} : a.losses;
  for (index n = 0; n < N; ++n)
    for (index v = 0; v < V; ++v) {
      T sum = a.bias.empty() ? T{0} : a.bias[v];
      for (index c = 0; c < C; ++c) sum += a.x[n][c] * a.weight[v][c];
      logits[n][v] = sum;
    }
  const auto cap = static_cast<T>(a.softcap);
  std::vector<T> slopes(logits_memory.size(), T{1});  // of the capped logits
  for (std::size_t i = 0; cap > 0 && i < slopes.size(); ++i) {
    const T tanh = std::tanh(logits_memory[i] / cap);
    logits_memory[i] = cap * tanh;
    slopes[i] = 1 - tanh * tanh;
  }
  const CrossEntropy result = cross_entropy<T>(logits, a.targets, a.scale, losses, logits);
  for (std::size_t i = 0; i < slopes.size(); ++i) logits_memory[i] *= slopes[i];
  for (index n = 0; n < a.dx.rows; ++n)
    for (index c = 0; c < C; ++c) {
      a.dx[n][c] = 0;
      for (index v = 0; v < V; ++v) a.dx[n][c] += logits[n][v] * a.weight[v][c];
    }
  for (index v = 0; v < a.dweight.rows; ++v)
    for (index c = 0; c < C; ++c) {
      if (a.dweight_store == Store::kWrite) a.dweight[v][c] = 0;
      for (index n = 0; n < N; ++n) a.dweight[v][c] += logits[n][v] * a.x[n][c];
    }
  for (index v = 0; v < a.dbias.size; ++v) {
    if (a.dbias_store == Store::kWrite) a.dbias[v] = 0;
    for (index n = 0; n < N; ++n) a.dbias[v] += logits[n][v];
  }
  return result;
}

template CrossEntropy cross_entropy(Rows<const float> logits, const Targets& targets, double scale,
                                    Vec<float> losses, Rows<float> dlogits);
template CrossEntropy cross_entropy(Rows<const double> logits, const Targets& targets, double scale,
                                    Vec<double> losses, Rows<double> dlogits);
template double binary_cross_entropy(Rows<const float>, const BinaryTargets<float>&, double,
                                     Vec<float>, Rows<float>);
template double binary_cross_entropy(Rows<const double>, const BinaryTargets<double>&, double,
                                     Vec<double>, Rows<double>);
template CrossEntropy linear_cross_entropy(const LinearCrossEntropy<float>& a);
template CrossEntropy linear_cross_entropy(const LinearCrossEntropy<double>& a);

template <class T>
void softmax_forward(InRows<T> x, Rows<T> y) {
  for (index n = 0; n < x.rows; ++n) {
    T max = -std::numeric_limits<T>::infinity();
    for (index c = 0; c < x.columns; ++c) max = std::max(max, x[n][c]);
    const bool empty = max == -std::numeric_limits<T>::infinity();
    T sum = 0;
    for (index c = 0; c < x.columns; ++c) {
      y[n][c] = empty ? T{0} : std::exp(x[n][c] - max);
      sum += y[n][c];
    }
    for (index c = 0; c < x.columns && !empty; ++c) y[n][c] /= sum;
  }
}

template <class T>
void softmax_backward(InRows<T> y, InRows<T> dy, Rows<T> dx) {
  for (index n = 0; n < y.rows; ++n) {
    T dot = 0;
    for (index c = 0; c < y.columns; ++c) dot += y[n][c] * dy[n][c];
    for (index c = 0; c < y.columns; ++c) dx[n][c] = y[n][c] * (dy[n][c] - dot);
  }
}

template <class T>
void layer_norm_forward(InRows<T> x, const NormParameters<std::type_identity_t<T>>& parameters,
                        const LayerNormOptions& options, Rows<T> y, Rows<T> saved) {
  const auto C = static_cast<T>(x.columns);
  const auto epsilon = static_cast<T>(options.epsilon);
  const bool standard = options.variant == LayerNormVariant::kStandard;
  for (index n = 0; n < x.rows; ++n) {
    T sum = 0;
    for (index c = 0; c < x.columns; ++c) sum += x[n][c];
    const T mu = sum / C;
    T squares = 0;
    for (index c = 0; c < x.columns; ++c) squares += (x[n][c] - mu) * (x[n][c] - mu);
    const T deviation =
        standard ? std::sqrt(squares / C + epsilon) : std::sqrt(squares / (C - T{1}));
    const T divisor = standard ? deviation : deviation + epsilon;
    for (index c = 0; c < x.columns; ++c) {
      const T gain = parameters.gain.empty() ? T{1} : parameters.gain[c];
      const T bias = parameters.bias.empty() ? T{0} : parameters.bias[c];
      y[n][c] = gain * ((x[n][c] - mu) / divisor) + bias;
    }
    saved[n][0] = mu;
    saved[n][1] = deviation;
  }
}

// With h = gain dy and s the deviation:
//   standard: dx = (h - mean(h) - xhat mean(h xhat)) / s
//   unbiased: dx = (h - mean(h)) / (s + epsilon) - xhat sum(h xhat) / ((C - 1) s)
template <class T>
void layer_norm_backward(const LayerNormBackward<T>& a) {
  const auto C = static_cast<T>(a.x.columns);
  const bool standard = a.options.variant == LayerNormVariant::kStandard;
  for (index n = 0; n < a.x.rows; ++n) {
    const T mu = a.saved[n][0], s = a.saved[n][1];
    const T divisor = standard ? s : s + static_cast<T>(a.options.epsilon);
    const auto h = [&](index c) { return (a.gain.empty() ? T{1} : a.gain[c]) * a.dy[n][c]; };
    const auto xhat = [&](index c) { return (a.x[n][c] - mu) / divisor; };
    T sum_h = 0, sum_hx = 0;
    for (index c = 0; c < a.x.columns; ++c) {
      sum_h += h(c);
      sum_hx += h(c) * xhat(c);
      if (!a.dgain.empty()) a.dgain[c] += a.dy[n][c] * xhat(c);
      if (!a.dbias.empty()) a.dbias[c] += a.dy[n][c];
    }
    const T pull = standard ? sum_hx / (C * s) : s > 0 ? sum_hx / ((C - T{1}) * s) : T{0};
    for (index c = 0; c < a.x.columns; ++c) {
      const T dx = (h(c) - sum_h / C) / divisor - xhat(c) * pull;
      a.dx[n][c] = dx + (a.dx_store == Store::kAdd ? a.dx[n][c] : T{0});
    }
  }
}

template <class T>
void rms_norm_forward(InRows<T> x, InVec<T> gain, double epsilon, Rows<T> y, Vec<T> saved) {
  for (index n = 0; n < x.rows; ++n) {
    T squares = 0;
    for (index c = 0; c < x.columns; ++c) squares += x[n][c] * x[n][c];
    const T rms = std::sqrt(squares / static_cast<T>(x.columns) + static_cast<T>(epsilon));
    for (index c = 0; c < x.columns; ++c)
      y[n][c] = (gain.empty() ? T{1} : gain[c]) * (x[n][c] / rms);
    saved[n] = rms;
  }
}

template <class T>
void rms_norm_backward(const RmsNormBackward<T>& a) {
  for (index n = 0; n < a.x.rows; ++n) {
    const T rms = a.saved[n];
    const auto h = [&](index c) { return (a.gain.empty() ? T{1} : a.gain[c]) * a.dy[n][c]; };
    const auto xhat = [&](index c) { return a.x[n][c] / rms; };
    T sum_hx = 0;
    for (index c = 0; c < a.x.columns; ++c) {
      sum_hx += h(c) * xhat(c);
      if (!a.dgain.empty()) a.dgain[c] += a.dy[n][c] * xhat(c);
    }
    for (index c = 0; c < a.x.columns; ++c) {
      const T dx = (h(c) - xhat(c) * sum_hx / static_cast<T>(a.x.columns)) / rms;
      a.dx[n][c] = dx + (a.dx_store == Store::kAdd ? a.dx[n][c] : T{0});
    }
  }
}

namespace {

template <class T>
inline constexpr T kGeluSlope = static_cast<T>(0.79788456080286535588);  // sqrt(2 / pi)
template <class T>
inline constexpr T kGeluCube = static_cast<T>(0.044715);

template <class T>
T sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

template <class T>
T phi(T x) {  // Phi(x), the normal distribution
  return T{0.5} * std::erfc(-x * static_cast<T>(std::numbers::sqrt2 / 2));
}

}  // namespace

template <class T>
T activate(Activation f, T x) {
  switch (f) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < T{0} ? T{0} : x;
    case Activation::kGelu:
      return x * phi(x);
    case Activation::kGeluTanh:
      return T{0.5} * x * (T{1} + std::tanh(kGeluSlope<T> * (x + kGeluCube<T> * x * x * x)));
    case Activation::kSilu:
      return x * sigmoid(x);
    case Activation::kTanh:
      return std::tanh(x);
  }
  fail(ErrorCode::kInternal, "activation: no such function: {}", static_cast<int>(f));
}

template <class T>
T activate_gradient(Activation f, T x) {
  switch (f) {
    case Activation::kNone:
      return T{1};
    case Activation::kRelu:
      return x > T{0} ? T{1} : T{0};
    case Activation::kGelu: {
      const auto density = static_cast<T>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
      return phi(x) + x * density * std::exp(T{-0.5} * x * x);
    }
    case Activation::kGeluTanh: {
      // (1 + tanh u) / 2 is the sigmoid of 2 u, whose derivative has no cancellation.
      const T u = kGeluSlope<T> * (x + kGeluCube<T> * x * x * x);
      const T du = kGeluSlope<T> * (T{1} + T{3} * kGeluCube<T> * x * x);
      return sigmoid(2 * u) + 2 * x * du * sigmoid(2 * u) * sigmoid(-2 * u);
    }
    case Activation::kSilu:
      return sigmoid(x) * (T{1} + x * (T{1} - sigmoid(x)));
    case Activation::kTanh:
      return T{1} - std::tanh(x) * std::tanh(x);
  }
  fail(ErrorCode::kInternal, "activation: no such function: {}", static_cast<int>(f));
}

template <class T>
void embedding_forward(const EmbeddingTable<std::type_identity_t<T>>& tokens,
                       const EmbeddingTable<std::type_identity_t<T>>& positions, Rows<T> y) {
  for (index n = 0; n < y.rows; ++n)
    for (index c = 0; c < y.columns; ++c) {
      y[n][c] = static_cast<T>(tokens.scale) * tokens.table[tokens.ids[n]][c];
      if (!positions.ids.empty())
        y[n][c] += static_cast<T>(positions.scale) * positions.table[positions.ids[n]][c];
    }
}

template <class T>
void embedding_backward(Vec<const std::int32_t> ids, double scale, InRows<T> dy, Rows<T> dtable,
                        std::int32_t frozen) {
  for (index n = 0; n < dy.rows; ++n)
    for (index c = 0; c < dy.columns && ids[n] != frozen; ++c)
      dtable[ids[n]][c] += static_cast<T>(scale) * dy[n][c];
}

namespace {

// Calls f(id) for each id of a bag that counts; returns how many do.
template <class F>
index for_each_id(const IdBags& bags, index b, F&& f) {
  index count = 0;
  for (index n = bags.offsets[b]; n < bags.offsets[b + 1]; ++n) {
    if (bags.ids[n] == bags.padding) continue;
    f(bags.ids[n]);
    ++count;
  }
  return count;
}

template <class T>
T factor_of(const IdBags& bags, index b) {
  const index count = for_each_id(bags, b, [](std::int32_t) {});
  if (bags.mode == BagMode::kSum || count == 0) return 1;
  const T n = static_cast<T>(count);
  return bags.mode == BagMode::kMean ? T{1} / n : T{1} / std::sqrt(n);
}

}  // namespace

template <class T>
void embedding_bag_forward(InRows<T> table, const IdBags& bags, Rows<T> y) {
  for (index b = 0; b < y.rows; ++b)
    for (index c = 0; c < y.columns; ++c) {
      T sum = 0;
      for_each_id(bags, b, [&](std::int32_t id) { sum += table[id][c]; });
      y[b][c] = sum * factor_of<T>(bags, b);
    }
}

template <class T>
void embedding_bag_backward(const IdBags& bags, InRows<T> dy, Rows<T> dtable) {
  for (index b = 0; b < dy.rows; ++b)
    for_each_id(bags, b, [&](std::int32_t id) {
      for (index c = 0; c < dy.columns; ++c) {
        dtable[id][c] += factor_of<T>(bags, b) * dy[b][c];
      }
    });
}

bool dropout_keeps(const DropoutMask& dropout, index n, index column) {
  const SampleRow at =
      dropout.rows.empty() ? SampleRow{0, static_cast<std::uint32_t>(n)} : dropout.rows[n];
  const auto block = static_cast<std::uint32_t>(16 * (column / 64) + column % 16);
  const auto low = static_cast<std::uint32_t>(at.sample);
  const auto high = static_cast<std::uint32_t>(at.sample >> 32);
  const auto words = philox4x32({block, at.row, low, high}, philox_key(dropout.key));
  return words[static_cast<std::size_t>(column % 64 / 16)] >= dropout.p * 0x1p32;
}

template <class T>
void dropout_forward(const DropoutMask& dropout, InRows<T> x, Rows<T> y) {
  for (index n = 0; n < x.rows; ++n)
    for (index c = 0; c < x.columns; ++c)
      y[n][c] = dropout_keeps(dropout, n, c) ? x[n][c] / static_cast<T>(1 - dropout.p) : T{0};
}

template <class T>
void adamw(std::span<const AdamWSlot<T>> slots, const AdamWStep& step) {
  const AdamWOptions& o = step.options;
  const double t = static_cast<double>(step.step);
  const double correction1 = 1 - std::pow(o.beta1, t), correction2 = 1 - std::pow(o.beta2, t);
  for (const AdamWSlot<T>& slot : slots)
    for (index i = 0; i < slot.value.size; ++i) {
      const double g = step.gradient_scale * slot.gradient[i];
      slot.m[i] = static_cast<T>(o.beta1 * slot.m[i] + (1 - o.beta1) * g);
      slot.v[i] = static_cast<T>(o.beta2 * slot.v[i] + (1 - o.beta2) * g * g);
      const double adam =
          slot.m[i] / correction1 / (std::sqrt(slot.v[i] / correction2) + o.epsilon);
      const double shrink = slot.decay * o.weight_decay * slot.value[i];
      slot.value[i] = static_cast<T>(slot.value[i] - o.lr * (adam + shrink));
    }
}

template <class T>
double global_norm(std::span<const AdamWSlot<T>> slots) {
  double squares = 0;
  for (const AdamWSlot<T>& slot : slots)
    for (const T g : slot.gradient) squares += static_cast<double>(g) * static_cast<double>(g);
  return std::sqrt(squares);
}

template void softmax_forward(Rows<const float> x, Rows<float> y);
template void softmax_forward(Rows<const double> x, Rows<double> y);
template void softmax_backward(Rows<const float> y, Rows<const float> dy, Rows<float> dx);
template void softmax_backward(Rows<const double> y, Rows<const double> dy, Rows<double> dx);
template void layer_norm_forward(Rows<const float> x, const NormParameters<float>& parameters,
                                 const LayerNormOptions& options, Rows<float> y, Rows<float> saved);
template void layer_norm_forward(Rows<const double> x, const NormParameters<double>& parameters,
                                 const LayerNormOptions& options, Rows<double> y,
                                 Rows<double> saved);
template void layer_norm_backward(const LayerNormBackward<float>& a);
template void layer_norm_backward(const LayerNormBackward<double>& a);
template void rms_norm_forward(Rows<const float> x, Vec<const float> gain, double epsilon,
                               Rows<float> y, Vec<float> saved);
template void rms_norm_forward(Rows<const double> x, Vec<const double> gain, double epsilon,
                               Rows<double> y, Vec<double> saved);
template void rms_norm_backward(const RmsNormBackward<float>& a);
template void rms_norm_backward(const RmsNormBackward<double>& a);
template float activate(Activation f, float x);
template double activate(Activation f, double x);
template long double activate(Activation f, long double x);
template float activate_gradient(Activation f, float x);
template double activate_gradient(Activation f, double x);
template long double activate_gradient(Activation f, long double x);
template void embedding_bag_forward(Rows<const float> table, const IdBags& bags, Rows<float> y);
template void embedding_bag_forward(Rows<const double> table, const IdBags& bags, Rows<double> y);
template void embedding_bag_backward(const IdBags& bags, Rows<const float> dy, Rows<float> dtable);
template void embedding_bag_backward(const IdBags& bags, Rows<const double> dy,
                                     Rows<double> dtable);
template void embedding_forward(const EmbeddingTable<float>& tokens,
                                const EmbeddingTable<float>& positions, Rows<float> y);
template void embedding_forward(const EmbeddingTable<double>& tokens,
                                const EmbeddingTable<double>& positions, Rows<double> y);
template void embedding_backward(Vec<const std::int32_t> ids, double scale, Rows<const float> dy,
                                 Rows<float> dtable, std::int32_t frozen);
template void embedding_backward(Vec<const std::int32_t> ids, double scale, Rows<const double> dy,
                                 Rows<double> dtable, std::int32_t frozen);
template void dropout_forward(const DropoutMask& dropout, Rows<const float> x, Rows<float> y);
template void dropout_forward(const DropoutMask& dropout, Rows<const double> x, Rows<double> y);
template void adamw(std::span<const AdamWSlot<float>> slots, const AdamWStep& step);
template void adamw(std::span<const AdamWSlot<double>> slots, const AdamWStep& step);
template double global_norm(std::span<const AdamWSlot<float>> slots);
template double global_norm(std::span<const AdamWSlot<double>> slots);

template <class T>
void matmul(InRows<T> a, InRows<T> m, Form form, Rows<T> c,
            const MatmulOptions<std::type_identity_t<T>>& options) {
  for (index i = 0; i < c.rows; ++i) {
    for (index j = 0; j < c.columns; ++j) {
      T s = options.store == Store::kAdd ? c[i][j] : T{0};
      for (index k = 0; k < a.columns; ++k) {
        s += a[i][k] * (form == Form::kPlain ? m[k][j] : m[j][k]);
      }
      if (!options.bias.empty()) s += options.bias[j];
      if (options.slope.data != nullptr)
        options.slope[i][j] = activate_gradient(options.activation, s);
      c[i][j] = activate(options.activation, s);
    }
  }
}

template <class T>
void matmul_at_b(InRows<T> a, InRows<T> b, Rows<T> c, Store store) {
  for (index i = 0; i < c.rows; ++i) {
    for (index j = 0; j < c.columns; ++j) {
      T s = store == Store::kAdd ? c[i][j] : T{0};
      for (index m = 0; m < a.rows; ++m) s += a[m][i] * b[m][j];
      c[i][j] = s;
    }
  }
}

template <class T>
void round_to_bfloat16(Rows<T> m) {
  for (index i = 0; i < m.rows; ++i) {
    for (index j = 0; j < m.columns; ++j) m[i][j] = to_float(to_bfloat16(m[i][j]));
  }
}

template <class T>
void column_sums(InRows<T> a, Vec<T> sums, Store store) {
  for (index j = 0; j < a.columns; ++j) {
    T s = store == Store::kAdd ? sums[j] : T{0};
    for (index m = 0; m < a.rows; ++m) s += a[m][j];
    sums[j] = s;
  }
}

template void matmul(InRows<float>, InRows<float>, Form, Rows<float>, const MatmulOptions<float>&);
template void matmul(InRows<double>, InRows<double>, Form, Rows<double>,
                     const MatmulOptions<double>&);
template void matmul(InRows<long double>, InRows<long double>, Form, Rows<long double>,
                     const MatmulOptions<long double>&);  // the reference for double
template void matmul_at_b(InRows<float>, InRows<float>, Rows<float>, Store);
template void matmul_at_b(InRows<double>, InRows<double>, Rows<double>, Store);
template void round_to_bfloat16(Rows<float>);
template void round_to_bfloat16(Rows<double>);
template void column_sums(InRows<float>, Vec<float>, Store);
template void column_sums(InRows<double>, Vec<double>, Store);

namespace {

template <class T>
constexpr T kNone = -std::numeric_limits<T>::infinity();

template <class T>
T log_sum(const std::vector<T>& scores) {
  const T most = *std::max_element(scores.begin(), scores.end());
  if (most == kNone<T>) return most;
  T sum = 0;
  for (const T score : scores) sum += std::exp(score - most);
  return most + std::log(sum);
}

/// The sums over the paths of one sequence up to a row, and behind it, as logarithms.
template <class T>
class Chain {
 public:
  Chain(const CrfScores<T>& scores, Rows<const T> x)
      : scores_(scores),
        x_(x),
        before_(static_cast<std::size_t>(x.rows), row_of_none()),
        behind_(before_) {
    for (index n = 0; n < x.rows; ++n)
      for (index b = 0; b < K(); ++b) {
        std::vector<T> terms;
        for (index a = 0; a < K() && n > 0; ++a) {
          terms.push_back(before(n - 1, a) + transition(a, b));
        }
        before(n, b) = (n == 0 ? start(b) : log_sum(terms)) + x[n][b];
      }
    for (index n = x.rows - 1; n >= 0; --n)
      for (index a = 0; a < K(); ++a) {
        std::vector<T> terms;
        for (index b = 0; b < K() && n + 1 < x.rows; ++b) {
          terms.push_back(transition(a, b) + x[n + 1][b] + behind(n + 1, b));
        }
        behind(n, a) = n + 1 == x.rows ? end(a) : log_sum(terms);
      }
    std::vector<T> all;
    for (index k = 0; k < K(); ++k) all.push_back(before(x.rows - 1, k) + end(k));
    log_z = log_sum(all);
  }

  T log_z = 0;

  T marginal(index n, index k) { return std::exp(before(n, k) + behind(n, k) - log_z); }
  /// The probability of tag a in row n - 1 and b in row n.
  T pair(index n, index a, index b) {
    return std::exp(before(n - 1, a) + transition(a, b) + x_[n][b] + behind(n, b) - log_z);
  }

  T start(index k) const { return allowed(scores_.allowed.start, k) ? scores_.start[k] : kNone<T>; }
  T end(index k) const { return allowed(scores_.allowed.end, k) ? scores_.end[k] : kNone<T>; }
  T transition(index a, index b) const {
    return allowed(scores_.allowed.transitions, a * K() + b) ? scores_.transitions[a][b] : kNone<T>;
  }

 private:
  index K() const { return x_.columns; }
  std::vector<T> row_of_none() const {
    return std::vector<T>(static_cast<std::size_t>(x_.columns), kNone<T>);
  }
  static bool allowed(Vec<const std::uint8_t> flags, index i) {
    return flags.empty() || flags[i] != 0;
  }
  T& before(index n, index k) {
    return before_[static_cast<std::size_t>(n)][static_cast<std::size_t>(k)];
  }
  T& behind(index n, index k) {
    return behind_[static_cast<std::size_t>(n)][static_cast<std::size_t>(k)];
  }

  const CrfScores<T>& scores_;
  Rows<const T> x_;
  std::vector<std::vector<T>> before_, behind_;
};

/// Calls f(sequence, its rows) for each sequence that has rows.
template <class T, class F>
void for_each_sequence(const CrfRows<T>& rows, F&& f) {
  for (index s = 0; s + 1 < rows.offsets.size; ++s) {
    if (rows.offsets[s] == rows.offsets[s + 1]) continue;
    f(s, rows.emissions.slice(rows.offsets[s], rows.offsets[s + 1]));
  }
}

template <class T>
void clear(const CrfGradient<T>& gradient) {
  const index K = gradient.start.size;
  for (index k = 0; k < K; ++k) {
    gradient.start[k] = gradient.end[k] = 0;
    for (index b = 0; b < K; ++b) gradient.transitions[k][b] = 0;
  }
}

/// Adds the gradient of one sequence, whose tags are `tags`.
template <class T>
void add_gradient(Chain<T>& chain, const std::int32_t* tags, T scale,
                  const CrfGradient<T>& gradient) {
  const Rows<T> dx = gradient.emissions;
  for (index n = 0; n < dx.rows; ++n)
    for (index b = 0; b < dx.columns; ++b) {
      const T own = chain.marginal(n, b) - (tags[n] == b ? T{1} : T{0});
      dx[n][b] = scale * own;
      if (n == 0) gradient.start[b] += scale * own;
      if (n + 1 == dx.rows) gradient.end[b] += scale * own;
      for (index a = 0; a < dx.columns && n > 0; ++a) {
        const bool is_true = tags[n - 1] == a && tags[n] == b;
        gradient.transitions[a][b] += scale * (chain.pair(n, a, b) - (is_true ? T{1} : T{0}));
      }
    }
}

}  // namespace

template <class T>
void crf_log_partition(const CrfScores<T>& scores, const CrfRows<T>& rows,
                       Vec<double> log_partition) {
  std::fill(log_partition.begin(), log_partition.end(), 0.0);
  for_each_sequence(rows, [&](index s, Rows<const T> x) {
    log_partition[s] = double{Chain<T>(scores, x).log_z};
  });
}

template <class T>
double crf_loss(const CrfScores<T>& scores, const CrfRows<T>& rows, const CrfTargets& targets,
                Vec<double> losses, const CrfGradient<T>& gradient) {
  std::fill(losses.begin(), losses.end(), 0.0);
  clear(gradient);
  for_each_sequence(rows, [&](index s, Rows<const T> x) {
    Chain<T> chain(scores, x);
    const std::int32_t* const tags = targets.tags.data + rows.offsets[s];
    T score = chain.start(tags[0]) + chain.end(tags[x.rows - 1]);
    for (index n = 0; n < x.rows; ++n) {
      score += x[n][tags[n]] + (n > 0 ? chain.transition(tags[n - 1], tags[n]) : T{0});
    }
    losses[s] = double{chain.log_z - score};
    CrfGradient<T> own = gradient;
    own.emissions = gradient.emissions.slice(rows.offsets[s], rows.offsets[s + 1]);
    add_gradient(chain, tags, static_cast<T>(targets.scale), own);
  });
  double total = 0;
  for (const double loss : losses) total += loss;
  return total;
}

template <class T>
void crf_marginals(const CrfScores<T>& scores, const CrfRows<T>& rows, Rows<T> marginals) {
  for_each_sequence(rows, [&](index s, Rows<const T> x) {
    Chain<T> chain(scores, x);
    for (index n = 0; n < x.rows; ++n)
      for (index k = 0; k < x.columns; ++k) {
        marginals[rows.offsets[s] + n][k] = chain.marginal(n, k);
      }
  });
}

#define FOVEA_INSTANTIATE(T)                                                                       \
  template void crf_log_partition(const CrfScores<T>&, const CrfRows<T>&, Vec<double>);            \
  template double crf_loss(const CrfScores<T>&, const CrfRows<T>&, const CrfTargets&, Vec<double>, \
                           const CrfGradient<T>&);                                                 \
  template void crf_marginals(const CrfScores<T>&, const CrfRows<T>&, Rows<T>);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::reference
