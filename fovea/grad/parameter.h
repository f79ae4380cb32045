// SPDX-License-Identifier: Apache-2.0
// A learned parameter: its value, its gradient, and packed copies of the value, which are kept
// between steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/kernel/adamw.h"
#include "fovea/kernel/block_matrix.h"
#include "fovea/kernel/gemm.h"
#include "fovea/kernel/recurrent.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

// The gradient of a large table of which a step reads few rows: these rows alone.

/// Rows that are not in the list are zero. Rows are in the order in which they came, so all of it
/// depends on the ids alone.
class RowGradient {
 public:
  bool empty() const { return size() == 0; }
  index size() const { return state_ ? static_cast<index>(state_->ids.size()) : 0; }
  /// The row of the table that each of rows() is.
  Vec<const std::int32_t> ids() const {
    return state_ ? Vec<const std::int32_t>(state_->ids) : Vec<const std::int32_t>();
  }

  /// The place of the row of each id in rows(), for a table like `table` [V,C]; rows that are new
  /// are zero. ids [N], each in [0, V) (kShape otherwise). The result is valid until the next call.
  Vec<const std::int32_t> add(const Context& context, const Tensor& table,
                              Vec<const std::int32_t> ids);
  /// The place of a row that has one, or -1.
  std::int32_t place_of(std::int32_t id) const;
  /// [size(), C]
  template <class T>
  Rows<T> rows();
  /// Which row of the table each of rows() is, ascending. Valid until the next call of add().
  Vec<const GradientRow> sorted();
  /// table += rows
  void add_to(Tensor& table);

  /// Makes the gradient zero; its memory is kept for the next step.
  void clear();
  /// The bytes of the memory of rows.
  index byte_size() const { return state_ ? state_->memory.byte_size() : 0; }

 private:
  struct State {
    std::vector<std::int32_t> place;   // of each row of the table, or -1
    std::vector<std::int32_t> ids;     // of each place
    std::vector<std::int32_t> places;  // the result of add
    std::vector<GradientRow> sorted;
    Tensor memory;  // [room, C]
  };

  void reserve(const Tensor& table, index rows);

  // Most parameters are no tables, and a deep model has a million of them: theirs is one pointer.
  std::unique_ptr<State> state_;
};

/// Whether weight decay applies. Weight matrices decay; biases, gains, position embeddings and
/// slopes do not. Token embeddings decay, as in GPT-2: they are a matrix, and may be tied to the
/// output projection.
enum class Decay { kNo, kYes };

/// A weight W [out, in] in the two layouts that products read, W^T for y = x W^T and W for
/// dx = dy W, in each precision that is asked for, and a weight W_hh in the layout of recurrent
/// steps. It is packed again when its version, or the instruction set, has changed. Any number of
/// threads may call get at once, as long as none changes the weight.
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

/// How a step uses a table. kSparse: it reads few rows, by their ids. Then the gradient holds these
/// rows alone, and the optimizer updates a row when it is read next. All bits are those of kDense.
enum class RowUse { kDense, kSparse };

/// Who knows the updates of a table that its rows have missed: the optimizer.
class MissedUpdates {
 public:
  /// Makes those of the rows `ids` (repeats allowed), each in the table.
  virtual void make(const Context& context, Vec<const std::int32_t> ids) = 0;
  /// Makes those of all rows.
  virtual void make_all() = 0;

 protected:
  ~MissedUpdates() = default;
};

struct Parameter;

class RowNorms;

/// What is learned of a weight W that is frozen: its rows from `first` on count as V = W + scale B
/// A (LoRA: Hu et al. 2021, section 4.1); with magnitudes m, as m V / |V| (DoRA: Liu et al. 2024,
/// "DoRA: weight-decomposed low-rank adaptation", eq. 5), where |V| is the norm of each row.
struct LowRank {
  Parameter* a = nullptr;  ///< [r, in]
  Parameter* b = nullptr;  ///< [rows, r]
  index first = 0;
  double scale = 1;
  double dropout = 0;                         ///< in training, of what A reads
  std::uint32_t mask = 0;                     ///< DropoutKey::layer of that
  Parameter* magnitudes = nullptr;            ///< [rows]; null: there are none
  std::shared_ptr<RowNorms> norms = nullptr;  ///< with magnitudes
};

/// A model owns it; its address must not change while a tape uses it. Not thread safe while it is
/// trained.
struct Parameter {
  std::string name;  ///< unique in its model: "blocks.0.attention.qkv.weight"
  /// With RowUse::kSparse, while an optimizer exists: call catch_up() before you read it.
  Tensor value;
  /// Shape and type of `value`; without memory until the first backward. Read only: to write it,
  /// call gradient_to_write().
  Tensor gradient;
  Decay decay = Decay::kYes;
  /// Never trained: the tape reads it as a constant, and the optimizer leaves it out.
  bool frozen = false;
  std::uint64_t version = 0;  ///< add one when you change `value`: it is then packed again
  bool has_gradient = false;  ///< false: `gradient` counts as zero, whatever is in its memory
  /// If set: all rows of `gradient` except these (repeats allowed) are zero in memory. In a token
  /// table only the rows of the step's tokens are not zero, so only these need to be cleared for
  /// the next step.
  std::optional<std::vector<std::int32_t>> used_rows;
  /// kSparse: the gradient, unless has_gradient says that all of it is in `gradient`.
  RowGradient row_gradient;
  RowUse row_use = RowUse::kDense;
  MissedUpdates* missed = nullptr;  ///< set by the optimizer of a kSparse table
  /// If set, the values lie here and not in `value`, whose memory is not read: a weight as it lies
  /// in a file. It has no gradient; linear(), embedding() and linear_cross_entropy() read it.
  std::shared_ptr<const BlockMatrix> blocks;
  /// Added by linear(), which alone may read a weight that has some: the weight itself is frozen.
  std::vector<LowRank> changes;
  PackedWeight packed;

  /// Whether some of its changes have magnitudes.
  bool has_magnitudes() const;
  /// Makes all updates of `value` that are due. Ops on the tape do so.
  void catch_up() {
    if (missed != nullptr) missed->make_all();
  }
  /// Makes the gradient zero without writing memory: the next backward overwrites it. Without this
  /// call, the gradients of several backward passes add up.
  void clear_gradient() {
    has_gradient = false;
    row_gradient.clear();
  }
  /// Moves the gradient of rows to `gradient`, for who needs all of it.
  void gather_rows();
  /// The gradient for the optimizer to read; zero if no backward has written it.
  const Tensor& finished_gradient();
  /// The gradient, to be written outside of backward.
  Tensor& gradient_to_write();
};

}  // namespace fovea
