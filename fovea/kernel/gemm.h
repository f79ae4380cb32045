// SPDX-License-Identifier: Apache-2.0
// Matrix products. Every function is a template over T, instantiated for float and double.
//
// For a linear layer y = x W^T + b with W [out, in] (PyTorch's order), over N rows:
//   forward   y  [N,out]   matmul(ctx, x, packed W^T, y, {.bias = b})
//   backward  dx [N,in]    matmul(ctx, dy, packed W, dx)
//             dW [out,in]  matmul_at_b(ctx, dy, x, dW)
//             db [out]     column_sums(ctx, dy, db)
//
// Bits: a row of matmul depends on that row of A, on B and on the options alone, neither on the
// number of rows nor on threads. matmul_at_b and column_sums do not depend on threads. A value of a
// product is its start, then one fused multiply-add for each term in ascending order (with SSE and
// scalar a multiplication and an addition). Another instruction set may give other bits.
#pragma once

#include <type_traits>

#include "fovea/base/context.h"
#include "fovea/base/memory.h"
#include "fovea/base/view.h"
#include "fovea/kernel/activation.h"
#include "fovea/simd/isa.h"

namespace fovea {

/// Which matrix B is, given the one that is packed.
enum class Form { kPlain, kTransposed };

/// A right-hand side B [K,N] in the order in which products read it: panels of as many columns as
/// the instruction set's register block has lanes, each [K][lanes], the last filled up with zeros.
template <class T>
class PackedMatrix {
 public:
  PackedMatrix() = default;

  /// B = m, or B = m^T. Memory is kept and used again while it is large enough. Costs one pass over
  /// m; worth it from about 16 rows of A on.
  void pack(const Context& ctx, Rows<const T> m, Form form = Form::kPlain);

  index rows() const { return rows_; }        ///< K
  index columns() const { return columns_; }  ///< N
  Isa isa() const { return isa_; }            ///< for which it was packed

  /// Panel i: columns [i * lanes, (i+1) * lanes).
  const T* panel(index i) const { return data() + i * rows_ * lanes_; }
  index lanes() const { return lanes_; }

 private:
  const T* data() const { return reinterpret_cast<const T*>(bytes_.get()); }

  AlignedBytes bytes_;
  std::size_t capacity_ = 0;
  index rows_ = 0, columns_ = 0, lanes_ = 1;
  Isa isa_ = Isa::kScalar;
};

/// What happens to A B on its way into C, in one pass while it is in the cache:
///   s = A B + bias (+ C, with Store::kAdd);  before_activation = s;  C = activation(s).
template <class T>
struct MatmulOptions {
  Vec<const T> bias = {};  ///< [N], or empty
  Activation activation = Activation::kNone;
  Rows<T> before_activation = {};  ///< [M,N], or empty
  Store store = Store::kWrite;
};

/// C [M,N] from A [M,K] and B [K,N]. Rows of A, C may be strided; C overlaps neither A nor
/// before_activation. Throws Error(kShape) if shapes disagree, Error(kInternal) if b was packed for
/// another instruction set.
template <class T>
void matmul(const Context& ctx, InRows<T> a, const PackedMatrix<T>& b, Rows<T> c,
            const MatmulOptions<std::type_identity_t<T>>& options = {});

/// C [N1,N2] = (or +=, with Store::kAdd) A^T B, from A [M,N1] and B [M,N2]: a sum over M rows.
template <class T>
void matmul_at_b(const Context& ctx, InRows<T> a, InRows<T> b, Rows<T> c,
                 Store store = Store::kWrite);

/// sums[n] = (or +=) the sum over m of a[m,n], A [M,N].
template <class T>
void column_sums(const Context& ctx, InRows<T> a, Vec<T> sums, Store store = Store::kWrite);

}  // namespace fovea
