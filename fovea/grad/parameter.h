// SPDX-License-Identifier: Apache-2.0
// A learned parameter: its value, its gradient, and packed copies of the value, which are kept
// between steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/kernel/gemm.h"
#include "fovea/kernel/recurrent.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

/// Whether weight decay applies. Weight matrices decay; biases, gains, position embeddings and
/// slopes do not. Token embeddings decay, as in GPT-2: they are a matrix, and may be tied to the
/// output projection.
enum class Decay { kNo, kYes };

/// A weight W [out, in] in the two layouts that products read, W^T for y = x W^T and W for
/// dx = dy W, and a weight W_hh in the layout of recurrent steps. It is packed again when its
/// version, or the instruction set, has changed. Any number of threads may call get at once, as
/// long as none changes the weight.
class PackedWeight {
 public:
  PackedWeight();
  ~PackedWeight();
  PackedWeight(PackedWeight&&) noexcept;
  PackedWeight& operator=(PackedWeight&&) noexcept;

  template <class T>
  const PackedMatrix<T>& get(const Context& context, Rows<const T> weight, Form form,
                             std::uint64_t version);
  template <class T>
  const PackedGates<T>& gates(const Context& context, Rows<const T> weight, RecurrentKind kind,
                              std::uint64_t version);

 private:
  struct Forms;
  std::unique_ptr<Forms> forms_;
};

/// A model owns it; its address must not change while a tape uses it. Not thread safe while it is
/// trained.
struct Parameter {
  std::string name;  ///< unique in its model: "blocks.0.attention.qkv.weight"
  Tensor value;
  /// Shape and type of `value`; without memory until the first backward. Read only: to write it,
  /// call gradient_to_write().
  Tensor gradient;
  Decay decay = Decay::kYes;
  std::uint64_t version = 0;  ///< add one when you change `value`: it is then packed again
  bool has_gradient = false;  ///< false: `gradient` counts as zero, whatever is in its memory
  /// If set: all rows of `gradient` except these (repeats allowed) are zero in memory. In a token
  /// table only the rows of the step's tokens are not zero, so only these need to be cleared for
  /// the next step.
  std::optional<std::vector<std::int32_t>> used_rows;
  PackedWeight packed;

  /// Makes the gradient zero without writing memory: the next backward overwrites it. Without this
  /// call, the gradients of several backward passes add up.
  void clear_gradient() { has_gradient = false; }
  /// The gradient for the optimizer to read; zero if no backward has written it.
  const Tensor& finished_gradient();
  /// The same, for writing it outside of backward.
  Tensor& gradient_to_write();
};

}  // namespace fovea
