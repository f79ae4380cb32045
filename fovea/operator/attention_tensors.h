// SPDX-License-Identifier: Apache-2.0
// The tensors of one call of attention, by name. Checks that the names are known and the sizes
// agree.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/attention/tile.h"
#include "fovea/parts/axes.h"
#include "fovea/tensor/named_tensor.h"
#include "fovea/tensor/tensor_file.h"

namespace fovea {

/// The kind of values of a tensor, and the types in which it may be given.
enum class TensorValues {
  kReal,   ///< float32, float64, bfloat16
  kInt32,  ///< int32, or int64 that fits
  kBytes,  ///< uint8 or bool: nonzero is true
};

/// A tensor that a call may have. `axes` has one word for each axis, such as "B H|1 2". A letter is
/// one size throughout the call; "H|1" is H or 1; "2H" is twice H; "2s+1" is one more than twice s;
/// a number is that size.
struct TensorSpec {
  std::string_view name;
  std::string_view axes;
  TensorValues values = TensorValues::kReal;
  std::string_view together = {};  ///< the tensor that it requires
  std::string_view what = {};      ///< its purpose, or the formula of its part
  bool or_column = false;          ///< a last axis of size 1 is left out: [B, 1] will do for [B]
};

/// A tensor as a caller has it in memory.
struct GivenTensor {
  std::string name;
  Tensor tensor;                    ///< its values begin where those of `tensor` do
  std::vector<index> strides = {};  ///< of the axes, in values; none: they lie one after another
  bool learns = true;               ///< whether a backward computes its gradient

  bool is_contiguous() const { return strides.empty(); }
};

class AttentionTensors {
 public:
  /// Checks the tensors; q, k and v are required. `where` is the file, and begins each message.
  /// Throws kInputFormat for a name that no spec has (with the nearest known one), for a missing
  /// tensor and for a wrong type; kShape, which names the tensor, the axis and both sizes. Whole
  /// numbers become int32.
  AttentionTensors(std::vector<NamedTensor> tensors, std::span<const TensorSpec> specs,
                   std::string where);
  /// Takes tensors with strides. Those of four axes, the last of them contiguous, are used where
  /// they lie; others are copied.
  static AttentionTensors of(std::vector<GivenTensor> tensors, std::span<const TensorSpec> specs,
                             std::string where);
  /// Reads a file. Names, types and shapes are checked before a value is read. Tensors named in
  /// `unused` are accepted, but not read.
  AttentionTensors(const TensorFile& file, std::span<const TensorSpec> specs, std::string where,
                   std::span<const std::string_view> unused = {});

  /// The tensor, or nullptr; to read its values, heed its strides.
  const GivenTensor* given(std::string_view name) const;
  /// The tensor, of which the shape alone may be used if it has strides.
  const Tensor* find(std::string_view name) const;
  /// Throws kInputFormat if it is missing.
  const Tensor& at(std::string_view name) const;
  const std::string& where() const { return where_; }
  AttentionSizes sizes() const;

 private:
  AttentionTensors() = default;

  std::vector<GivenTensor> tensors_;
  std::string where_;
};

/// Its values one after another: itself, or a copy.
Tensor contiguous(const GivenTensor& given);

}  // namespace fovea
