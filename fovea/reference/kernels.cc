// SPDX-License-Identifier: Apache-2.0
#include "fovea/reference/kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace fovea::reference {

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

}  // namespace fovea::reference
