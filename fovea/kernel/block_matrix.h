// SPDX-License-Identifier: Apache-2.0
// A weight in the type in which it lies in a file: rows of blocks whose values share a scale
// (ggml's block_q4_0 and so on), or halves. Products widen it block by block while they read it,
// so a product of one row takes the memory traffic of the file, not that of float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/mapped_file.h"
#include "fovea/base/view.h"
#include "fovea/kernel/gemm.h"

namespace fovea {

/// The types that products read. Blocks of 32 values: halves d (and m), then numbers q. Blocks of
/// 256: parts of 32 (Q6_K: 16) values, whose d and m are small numbers times those of the block.
enum class BlockType : std::uint8_t {
  kQ4_0,      ///< d (q - 8), q of 4 bits
  kQ4_1,      ///< d q + m
  kQ8_0,      ///< d q, q of 8 bits with a sign
  kQ4_K,      ///< d q - m, q of 4 bits
  kQ5_K,      ///< the same, q of 5 bits
  kQ6_K,      ///< d (q - 32), q of 6 bits
  kFloat16,   ///< IEEE halves
  kBFloat16,  ///< the upper halves of float32
};

struct BlockLayout {
  index values;  ///< of a block
  index bytes;   ///< of a block
};
BlockLayout layout_of(BlockType type);

/// W [rows, columns], in parts of whole rows, each of its own type. Their bytes lie in memory or in
/// a file that is mapped.
class BlockMatrix {
 public:
  /// `columns` must be a multiple of the blocks of every part.
  explicit BlockMatrix(index columns) : columns_(columns) {}

  /// Appends rows: blocks one after another. Throws Error(kShape) if they do not fit.
  void append(BlockType type, index rows, SharedBytes blocks);
  /// Appends rows without their bytes, for a plan (base/profile.h), which reads none.
  void append_planned(BlockType type, index rows);

  index rows() const { return rows_; }
  index columns() const { return columns_; }
  std::size_t byte_size() const;  ///< of the blocks, also of planned ones
  /// Throws kRead if a file in which they lie was written.
  void require_unchanged() const;

  struct Part {
    BlockType type;
    index first, rows;
    SharedBytes blocks;
  };
  std::span<const Part> parts() const { return parts_; }

 private:
  index columns_, rows_ = 0;
  std::vector<Part> parts_;
};

/// y[n] = row ids[n] of w, as float32. Each id must be below w.rows() (Error kShape). Throws kRead,
/// as the next does, if the file in which w lies was written meanwhile: then y is worth nothing.
void widen_rows(const Context& ctx, const BlockMatrix& w, Vec<const std::int32_t> ids,
                Rows<float> y);

/// y = x W^T (Form::kTransposed: x [N, columns], y [N, rows]) or y = x W (kPlain: x [N, rows], y
/// [N, columns]), and what the options add (gemm.h). W is widened, a part of its rows at a time,
/// and multiplied as matmul() does in the precision of ctx; up to kRowsByBlocks rows of x W^T are
/// sums of blocks as they lie. A value depends on its row of x and of W alone, and on which of the
/// two it is.
void matmul(const Context& ctx, ProductRows<const float> x, const BlockMatrix& w, Form form,
            ProductRows<float> y, const MatmulOptions<float>& options = {});
inline constexpr index kRowsByBlocks = 4;

}  // namespace fovea
