// SPDX-License-Identifier: Apache-2.0
// A learned parameter: its value, its gradient, and packed copies that are kept between steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/kernel/gemm.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

/// Whether weight decay applies. Weights of matrices decay; biases, gains, embeddings of positions
/// and slopes do not. Embeddings of words decay as GPT-2's do: they are a matrix, and may be tied
/// to the output projection.
enum class Decay { kNo, kYes };

/// A weight W [out, in] in the two layouts that products read, W^T for y = x W^T and W for
/// dx = dy W; packed again when its version, or the instruction set, has changed. Any number of
/// threads may ask at once, as long as none changes the weight.
class PackedWeight {
 public:
  PackedWeight();
  ~PackedWeight();
  PackedWeight(PackedWeight&&) noexcept;
  PackedWeight& operator=(PackedWeight&&) noexcept;

  template <class T>
  const PackedMatrix<T>& get(const Context& context, Rows<const T> weight, Form form,
                             std::uint64_t version);

 private:
  struct Forms;
  std::unique_ptr<Forms> forms_;
};

/// Owned by a model, at a fixed address while a tape uses it. Not thread safe while it is trained.
struct Parameter {
  std::string name;  ///< unique in its model: "blocks.0.attention.qkv.weight"
  Tensor value;
  /// Shape and type of `value`; without memory until the first backward. Read only: to write it,
  /// call gradient_to_write().
  Tensor gradient;
  Decay decay = Decay::kYes;
  std::uint64_t version = 0;  ///< add one when you change `value`: packed copies are renewed
  bool has_gradient = false;  ///< false: `gradient` counts as zero, whatever is in its memory
  /// If known: all rows of `gradient` except these (repeats allowed) are zero in memory. In a token
  /// table only the rows of the tokens of a step are not zero, so only they must be cleared for the
  /// next.
  std::optional<std::vector<std::int32_t>> used_rows;
  PackedWeight packed;

  /// Makes the gradient zero without writing memory: the next backward overwrites it. Without a
  /// clear in between, backward passes add up.
  void clear_gradient() { has_gradient = false; }
  /// The gradient for the optimizer to read; zero where no backward has written it.
  const Tensor& finished_gradient();
  /// The same, to write by hand.
  Tensor& gradient_to_write();
};

}  // namespace fovea
