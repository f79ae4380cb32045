// SPDX-License-Identifier: Apache-2.0
// One call of the operator, made from tensors and settings. Its parts (score, biases, masks, ...)
// are rows of a table in attention_call.cc.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/attention/attention.h"
#include "fovea/operator/attention_settings.h"
#include "fovea/operator/attention_tensors.h"

namespace fovea {

template <class T>
class AttentionCall;

/// Parts of a call that neither its tensors nor its settings say.
class MoreParts {
 public:
  virtual ~MoreParts() = default;
  /// Masks: beside the others, before the parts that ask what is kept.
  virtual void add_masks(AttentionCall<float>& call) const = 0;
  virtual void add_masks(AttentionCall<double>& call) const = 0;
  /// Biases: after the others.
  virtual void add_biases(AttentionCall<float>& call) const = 0;
  virtual void add_biases(AttentionCall<double>& call) const = 0;
};

/// The views of a call and the memory behind them, T float or double. Rows of bfloat16 are views of
/// a float call with another V.
template <class T>
class AttentionCall {
 public:
  /// All must outlive the call. Throws kOptionValue (an invalid setting), kShape, kInputFormat (do
  /// is missing), kOutOfMemory.
  AttentionCall(const AttentionSettings& asked, const AttentionTensors& given,
                const MoreParts* also = nullptr);

  /// q, k and v; of bfloat16 where settings.precision says so, else `in`.
  template <class V>
  AttentionInputs<V> inputs();

  const AttentionSettings& settings;
  const AttentionTensors& tensors;
  const MoreParts* const more;
  Attention<T> attention;
  AttentionInputs<T> in;  ///< shapes alone if the rows are bfloat16
  std::vector<NamedTensor> out;
  const AttentionSizes sizes;

  /// Each adds a tensor to `out` and returns a view of it. This one: [B, length, heads, width].
  template <class V = T>
  View<V> view_out(std::string_view name, index length, index heads, index width);
  RowView<T> rows_out(std::string_view name);
  /// [B, H, S].
  RowView<T> key_rows_out(std::string_view name);
  /// [B, H, rows, columns] of T, or of another type.
  template <class V = T>
  ScoreView<V> scores_out(std::string_view name, index rows, index columns);
  /// One value after another.
  T* values_out(std::string_view name, const Shape& shape);
  /// Each adds the gradient of a tensor to `out`, named "d" and its name. Empty if no gradients are
  /// asked for, or not this one.
  template <class V = T>
  View<V> gradient_view_out(std::string_view name);
  Vec<T> gradient_out(std::string_view name);
  Rows<T> gradient_rows_out(std::string_view name);
  ScoreView<T> gradient_scores_out(std::string_view name);

  template <class V = T>
  View<const V> view(std::string_view name);
  RowView<const T> rows(std::string_view name);
  Vec<const T> reals(std::string_view name);
  Rows<const T> real_rows(std::string_view name);
  ScoreView<const T> real_scores(std::string_view name);
  Vec<const std::int32_t> ints(std::string_view name) const;
  Rows<const std::int32_t> int_rows(std::string_view name) const;
  ScoreView<const std::uint8_t> bytes(std::string_view name) const;
  /// A table that the caller fills; it lives as long as the call.
  Rows<std::int32_t> int_rows_of(std::string_view name, index rows, index columns);

  void keep(const Mask& mask) { attention.mask = attention.mask & mask; }
  void add(const Bias<T>& part) { attention.bias = attention.bias + part; }
  void see(const Observe<T>& observer) { attention.observe = attention.observe + observer; }

 private:
  void read_rows();
  Tensor& new_out(std::string_view name, const Shape& shape, DType dtype = kDTypeOf<T>);
  Tensor& new_gradient(std::string_view name);
  bool is_learned(std::string_view name) const;
  /// In the type of the call, or another. It lies as it was given, or one value after another.
  const GivenTensor& real(std::string_view name, DType dtype = kDTypeOf<T>);

  AttentionInputs<BFloat16> rounded_;  // if the rows are bfloat16
  std::deque<GivenTensor> kept_;       // converted tensors and tables
};

/// Every tensor that attention can take. The order matters: the first tensor with a letter among
/// its axes sets that size.
std::span<const TensorSpec> attention_tensor_specs();

/// Adds the parts that the call's tensors and settings ask for. Throws kOptionValue (an invalid
/// setting), kUsage (a tensor without its option), kShape, kInputFormat.
template <class T>
void add_parts(AttentionCall<T>& call);

/// Adds the observers that the settings ask for, and their tensors. Throws kOptionValue for an
/// unknown name (with the nearest known one), kOutOfMemory.
template <class T>
void add_observed(AttentionCall<T>& call);

}  // namespace fovea
