// SPDX-License-Identifier: Apache-2.0
// What is learned: a value, the gradient of the step, and what is kept from one step to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fovea/tensor/tensor.h"

namespace fovea {

class Context;
class PackedMatrix;

/// Whether weight decay applies. Weights of matrices decay; biases, gains, embeddings of positions
/// and slopes do not. Embeddings of words decay as GPT-2's do: they are a matrix, and may be tied
/// to the output projection.
enum class Decay { kNo, kYes };

/// A weight in the two layouts that products read, packed again when its version has changed.
/// Reading is safe from several threads at once; changing the weight meanwhile is not.
class PackedWeight {
 public:
  PackedWeight();
  ~PackedWeight();
  PackedWeight(PackedWeight&&) noexcept;
  PackedWeight& operator=(PackedWeight&&) noexcept;

  /// W^T [in, out], for y = x W^T, of a weight W [out, in] of float32.
  const PackedMatrix& transposed(const Context& context, const Tensor& weight,
                                 std::uint64_t version);
  /// W [out, in], for dx = dy W.
  const PackedMatrix& plain(const Context& context, const Tensor& weight, std::uint64_t version);

 private:
  struct Forms;
  std::unique_ptr<Forms> forms_;
};

/// Owned by a model, at a fixed address while a tape uses it. Not thread safe while it is trained.
struct Parameter {
  std::string name;  ///< unique in its model: "blocks.0.attention.qkv.weight"
  Tensor value;
  Tensor gradient;  ///< of value's shape and type; without memory until the first backward
  Decay decay = Decay::kYes;
  std::uint64_t version = 0;  ///< whoever changes `value` adds one: packed forms are made again
  bool has_gradient = false;  ///< false: `gradient` is zero, whatever lies in its memory
  PackedWeight packed;

  /// Makes the gradient zero, without writing a byte: the next backward overwrites it. Backward
  /// passes without a clear in between add up.
  void clear_gradient() { has_gradient = false; }
  /// The gradient for the optimizer to read, with zeros where no backward has reached it.
  Tensor& finished_gradient();
};

}  // namespace fovea
