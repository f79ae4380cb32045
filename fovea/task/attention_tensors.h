// SPDX-License-Identifier: Apache-2.0
// The tensors of one call of attention, by name: whether they are known, and fit together.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/attention/tile.h"
#include "fovea/tensor/named_tensor.h"
#include "fovea/tensor/tensor_file.h"

namespace fovea {

/// What a tensor holds, and the types that it may be given in.
enum class TensorValues {
  kReal,   ///< float32, float64, bfloat16
  kInt32,  ///< int32, or int64 that fits
  kBytes,  ///< uint8 or bool: nonzero is true
};

/// A tensor that a call may have. `axes`: one word for each, such as "B H|1 2": a letter stands for
/// one size throughout the call, "H|1" for that of H or 1, "2H" for twice that, "2s+1" for one more
/// than twice s, a number for itself.
struct TensorSpec {
  std::string_view name;
  std::string_view axes;
  TensorValues values = TensorValues::kReal;
  std::string_view together = {};  ///< another one without which it makes no sense
};

/// "[B, H or 1, 2]" of "B H|1 2".
std::string axes_text(std::string_view axes);

/// A word of axes: times * (size of the letter) + more.
struct AxisWord {
  std::string_view letter = {};  ///< "" for a number
  index times = 1;
  index more = 0;
  bool or_one = false;

  index size(index of_letter) const { return times * of_letter + more; }
};
/// Views the word.
AxisWord axis_word(std::string_view word);

class AttentionTensors {
 public:
  /// Takes what is there; `where` is the file, and begins each message. q, k and v must be there.
  /// Throws kInputFormat for a name that no spec has (with the likeliest one that was meant), for
  /// one that is missing, and for a type that cannot be; kShape that names the tensor, the axis and
  /// both sizes. Whole numbers become int32.
  AttentionTensors(std::vector<NamedTensor> tensors, std::span<const TensorSpec> specs,
                   std::string where);
  /// The same of a file. Names, types and shapes are checked before a value is read; those of
  /// `unused` are known, and not read.
  AttentionTensors(const TensorFile& file, std::span<const TensorSpec> specs, std::string where,
                   std::span<const std::string_view> unused = {});

  const Tensor* find(std::string_view name) const;
  /// Throws kInputFormat if it is missing.
  const Tensor& at(std::string_view name) const;
  const std::string& where() const { return where_; }
  AttentionSizes sizes() const;

 private:
  std::vector<NamedTensor> tensors_;
  std::string where_;
};

}  // namespace fovea
