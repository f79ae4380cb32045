// SPDX-License-Identifier: Apache-2.0
// One call of the operator with its memory: contiguous tensors in, vectors out.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/attention/support/problem.h"

namespace fovea::testing {

/// X[i] = sin(a i + b): the inputs of every golden value (golden.h).
template <class V>
std::vector<V> sines(index n, double a, double b) {
  std::vector<V> values(static_cast<std::size_t>(n));
  for (index i = 0; i < n; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<V>(std::sin(a * static_cast<double>(i) + b));
  }
  return values;
}

template <class V>
V value_of(float x) {
  if constexpr (std::is_same_v<V, BFloat16>) {
    return to_bfloat16(x);
  } else {
    return static_cast<V>(x);
  }
}

template <class V>
std::vector<V> normals(std::uint64_t seed, index n) {
  Random random(seed, RandomUse::kTest);
  std::vector<V> values(static_cast<std::size_t>(n));
  for (V& x : values) x = value_of<V>(static_cast<float>(random.normal()));
  return values;
}

struct Sizes {
  index B = 1, T = 1, S = 1, H = 1, G = 1, D = 1, Dv = 1;
};

template <class V>
class Call {
 public:
  using W = Wide<V>;

  /// Standard normal q, k, v and d_o; G, D and Dv as in `sizes`.
  explicit Call(const Sizes& sizes, std::uint64_t seed = 0)
      : B(sizes.B), T(sizes.T), S(sizes.S), H(sizes.H), G(sizes.G), D(sizes.D), Dv(sizes.Dv) {
    q = normals<V>(4 * seed, B * T * H * D);
    k = normals<V>(4 * seed + 1, B * S * G * D);
    v = normals<V>(4 * seed + 2, B * S * G * Dv);
    d_o = normals<V>(4 * seed + 3, B * T * H * Dv);
    const V old = value_of<V>(kOld);
    o.assign(d_o.size(), old);
    lse.assign(static_cast<std::size_t>(B * H * T), kOld);
    lse_low = lse;
    dq.assign(q.size(), old);
    dk.assign(k.size(), old);
    dv.assign(v.size(), old);
  }

  AttentionInputs<V> in() const {
    return {View<const V>::contiguous(q.data(), B, T, H, D),
            View<const V>::contiguous(k.data(), B, S, G, D),
            View<const V>::contiguous(v.data(), B, S, G, Dv)};
  }
  AttentionOutputs<V> out() {
    AttentionOutputs<V> out{View<V>::contiguous(o.data(), B, T, H, Dv),
                            RowView<W>::contiguous(lse.data(), B, H, T),
                            RowView<W>::contiguous(lse_low.data(), B, H, T)};
    if (!weights.empty()) out.weights = ScoreView<W>::contiguous(weights.data(), B, H, T, S);
    return out;
  }
  AttentionSaved<V> saved() const {
    return {
        View<const V>::contiguous(o.data(), B, T, H, Dv),
        RowView<const W>::contiguous(lse.data(), B, H, T),
        View<const V>::contiguous(d_o.data(), B, T, H, Dv),
        RowView<const W>::contiguous(lse_low.data(), B, H, T),
        d_lse.empty() ? RowView<const W>{} : RowView<const W>::contiguous(d_lse.data(), B, H, T)};
  }
  AttentionGradients<V> gradients() {
    return {View<V>::contiguous(dq.data(), B, T, H, D), View<V>::contiguous(dk.data(), B, S, G, D),
            View<V>::contiguous(dv.data(), B, S, G, Dv)};
  }

  /// From now on lse has a standard normal gradient.
  void want_lse_gradient(std::uint64_t seed = 0) { d_lse = normals<W>(4 * seed + 77, B * H * T); }

  /// From now on the weights are wanted.
  void want_weights() { weights.assign(static_cast<std::size_t>(B * H * T * S), kOld); }

  void forward(const Attention<W>& attention, Method method = Method::kFused, int threads = 1) {
    if (method == Method::kReference) {
      attention_reference_forward(attention, in(), out_of(attention));
    } else {
      attention_forward(Context(threads), attention, in(), out_of(attention));
    }
  }
  void backward(const Attention<W>& attention, Method method = Method::kFused, int threads = 1) {
    if (method == Method::kReference) {
      attention_reference_backward(attention, in(), saved_by(attention), gradients());
    } else {
      attention_backward(Context(threads), attention, in(), saved_by(attention), gradients());
    }
  }
  void run(const Attention<W>& attention, Method method = Method::kFused, int threads = 1) {
    forward(attention, method, threads);
    backward(attention, method, threads);
  }

  /// The row of `width` values at (b, l, h) of a contiguous tensor.
  static V* row(std::vector<V>& x, index width, index number) { return x.data() + number * width; }
  V* q_row(index b, index i, index h) { return row(q, D, (b * T + i) * H + h); }
  V* k_row(index b, index j, index g) { return row(k, D, (b * S + j) * G + g); }
  V* v_row(index b, index j, index g) { return row(v, Dv, (b * S + j) * G + g); }
  V* o_row(index b, index i, index h) { return row(o, Dv, (b * T + i) * H + h); }
  V* d_o_row(index b, index i, index h) { return row(d_o, Dv, (b * T + i) * H + h); }
  W lse_at(index b, index h, index i) const {
    return lse[static_cast<std::size_t>((b * H + h) * T + i)];
  }

  index B, T, S, H, G, D, Dv;
  std::vector<V> q, k, v, d_o;
  std::vector<V> o, dq, dk, dv;
  std::vector<W> lse, lse_low, weights;
  std::vector<W> d_lse;  // empty: the loss has no lse

 private:
  // Softmax alone has a log-sum-exp.
  AttentionOutputs<V> out_of(const Attention<W>& attention) {
    AttentionOutputs<V> out = this->out();
    if (!std::holds_alternative<norm::Softmax>(attention.norm)) out.lse = out.lse_low = {};
    return out;
  }
  AttentionSaved<V> saved_by(const Attention<W>& attention) const {
    AttentionSaved<V> saved = this->saved();
    if (!std::holds_alternative<norm::Softmax>(attention.norm)) saved.lse = saved.lse_low = {};
    return saved;
  }

  static constexpr W kOld{-77};  // what no result may keep
};

/// Every result of two calls, bit for bit (0 and -0 are equal, as are no two NaN).
template <class V>
::testing::AssertionResult same_results(const Call<V>& a, const Call<V>& b) {
  const auto differ = [](const auto& x, const auto& y) { return x != y; };
  const char* which = differ(a.o, b.o)         ? "o"
                      : differ(a.lse, b.lse)   ? "lse"
                      : differ(a.dq, b.dq)     ? "dq"
                      : differ(a.dk, b.dk)     ? "dk"
                      : differ(a.dv, b.dv)     ? "dv"
                      : a.weights != b.weights ? "weights"
                                               : nullptr;
  if (which == nullptr) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << which << " differs";
}

/// Largest |a - b|, infinite where one is NaN.
template <class V>
double difference(const std::vector<V>& a, const std::vector<V>& b) {
  return largest_difference(std::vector<double>(a.begin(), a.end()),
                            std::vector<double>(b.begin(), b.end()));
}

inline Vec<const std::int32_t> view_of(const std::vector<std::int32_t>& values) {
  return {values.data(), static_cast<index>(values.size())};
}

}  // namespace fovea::testing
