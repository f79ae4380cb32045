// SPDX-License-Identifier: Apache-2.0
// Matrix products. Every function is a template over T, instantiated for float and double.
//
// For a linear layer y = x W^T + b with W [out, in] (PyTorch's order), over N rows:
//   forward   y  [N,out]   matmul(ctx, x, packed W^T, y, {.bias = b})
//   backward  dx [N,in]    matmul(ctx, dy, W, dx)
//             dW [out,in]  matmul_at_b(ctx, dy, x, dW)
//             db [out]     column_sums(ctx, dy, db)
// W of dx is read in place where reads_well_in_place() says so, and packed elsewhere.
//
// Bits: a row of matmul's result depends only on that row of A, on B and on the options, not on the
// number of rows or threads. Results of matmul_at_b and column_sums do not depend on the number of
// threads. A value of a product is its initial value, then one fused multiply-add for each term in
// ascending order (with SSE and scalar, a multiplication and an addition). Another instruction set
// may give other bits.
//
// bfloat16: where the precision of ctx says so, products of float round both operands to bfloat16,
// to nearest even, and sum in float32. Nothing else is rounded: results, bias and activation are
// float32. The left side is rounded while a tile is computed, the right side while it is packed.
// Where pairs are multiplied (Operands::kPaired), rows of bfloat16 may stand for the left side and
// for C, which is then rounded at the end: so a result that only products read takes half the
// memory, and is rounded once.
// Where has_bfloat16_products(), two terms of a sum are one instruction, which takes numbers below
// 2^-126 for 0 (on amx, 32 terms: simd/amx-inl.h says in which order); elsewhere the rounded values
// are multiplied as float32 is.
// Rows that products read and write: values, or values rounded to bfloat16.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>

#include "fovea/base/context.h"
#include "fovea/base/memory.h"
#include "fovea/base/precision.h"
#include "fovea/base/profile.h"
#include "fovea/base/shares.h"
#include "fovea/base/types.h"
#include "fovea/base/view.h"
#include "fovea/kernel/elementwise.h"
#include "fovea/simd/isa.h"

namespace fovea {

/// Rows of T or of bfloat16; T may be const.
template <class T>
class ProductRows {
 public:
  using Rounded = std::conditional_t<std::is_const_v<T>, const BFloat16, BFloat16>;

  ProductRows() = default;
  ProductRows(Rows<T> values) : values_(values) {}
  ProductRows(Rows<std::remove_const_t<T>> values) requires std::is_const_v<T> : values_(values) {}
  ProductRows(Rows<Rounded> rounded) : rounded_(rounded), is_rounded_(true) {}
  ProductRows(Rows<BFloat16> rounded) requires std::is_const_v<T>
      : ProductRows(Rows<const BFloat16>(rounded)) {}

  bool is_rounded() const { return is_rounded_; }
  Rows<T> values() const { return values_; }          ///< empty if is_rounded()
  Rows<Rounded> rounded() const { return rounded_; }  ///< empty if not
  index rows() const {
    return visit([](auto x) { return x.rows; });
  }
  index columns() const {
    return visit([](auto x) { return x.columns; });
  }
  ProductRows slice(index begin, index end) const {
    return visit([&](auto x) { return ProductRows(x.slice(begin, end)); });
  }
  ProductRows columns_slice(index begin, index end) const {
    return visit([&](auto x) { return ProductRows(x.columns_slice(begin, end)); });
  }
  /// f(rows), of the type that they have.
  template <class F>
  auto visit(F&& f) const {
    return is_rounded_ ? f(rounded_) : f(values_);
  }

 private:
  Rows<T> values_;
  Rows<Rounded> rounded_;
  bool is_rounded_ = false;
};

}  // namespace fovea

namespace fovea::detail {

/// [0, size) in equal parts of at most `most`, rounded up to a multiple of `step`; the last one may
/// be shorter.
class AxisCut {
 public:
  AxisCut() = default;
  AxisCut(index size, index most, index step);
  struct Part {
    index begin, end;
  };
  Part part(index i) const { return {i * length_, std::min(size_, (i + 1) * length_)}; }
  index parts() const { return parts_; }
  index length() const { return length_; }

 private:
  index size_ = 0, length_ = 0, parts_ = 0;
};

/// The items of a product: tiles of C.
struct ProductCut {
  AxisCut rows, columns;
  /// The order of the items: all parts of the columns for a part of the rows, then the next part of
  /// the rows. If false: all parts of the rows of a group for a part of the columns.
  bool columns_first = false;
  /// Groups of the rows, as many as threads. A thread begins with a share of the items that is its
  /// own (Context::for_each), so it has some rows to itself, as in passes over rows.
  index groups = 1;

  index items() const { return rows.parts() * columns.parts(); }
  struct Tile {
    AxisCut::Part rows, columns;
  };
  Tile item(index i) const {
    const index part = i / columns.parts();
    if (columns_first) return {rows.part(part), columns.part(i % columns.parts())};
    const EqualParts cut{rows.parts(), groups};
    const index group = cut.holding(part);
    const index begin = cut.begin(group), size = cut.size(group);
    const index place = i - begin * columns.parts();
    return {rows.part(begin + place % size), columns.part(place / size)};
  }
};

/// The items of two products in one list, whose shares (Context::for_each) hold their part of the
/// first product, then of the second.
struct TwoProducts {
  index first, second;
  index shares;

  index items() const { return first + second; }
  struct Item {
    bool is_of_first;
    index number;
  };
  Item item(index i) const {
    const EqualParts both{items(), shares}, of_first{first, shares};
    const index share = both.holding(i), place = i - both.begin(share);
    const index begin = of_first.begin(share);
    if (place < of_first.size(share)) return {true, begin + place};
    return {false, both.begin(share) - begin + place - of_first.size(share)};
  }
};

}  // namespace fovea::detail

namespace fovea {

/// Whether B is the given matrix m or m^T.
enum class Form { kPlain, kTransposed };

/// The form in which a product reads its operands.
enum class Operands {
  kWhole,    ///< their values
  kRounded,  ///< their values rounded to bfloat16, each still a float
  kPaired,   ///< pairs of bfloat16 (base/precision.h): the terms 2 k and 2 k + 1 of a sum
};

/// The form that the precision of ctx asks for on this instruction set; kWhole for double.
template <class T>
Operands operands_of(const Context& ctx);

/// The right-hand side B [K,N] of a product, as panels of as many columns as the instruction set's
/// register block has lanes. Row k (of pairs: the k-th pair of rows) of panel i begins at data + i
/// panel_stride + k row_stride. If `pack` is set, data is the matrix itself, with rows row_stride
/// apart, and each tile of the product packs a copy of the panel that it reads next.
template <class T>
struct Panels {
  const T* data = nullptr;
  index rows = 0;     ///< K
  index columns = 0;  ///< N
  index lanes = 1;    ///< of a panel
  index panel_stride = 0;
  index row_stride = 0;
  Isa isa = Isa::kScalar;  ///< the instruction set that they are made for
  std::optional<Form> pack = {};
  Operands operands = Operands::kWhole;

  /// Panel i; only if `pack` is not set.
  const T* panel(index i) const { return data + i * panel_stride; }
};

/// Panels of B = m, or B = m^T, without a packed copy of the whole matrix, which does not pay off
/// for few rows of A (up to kRowsInPlace). Panels that cannot be read in place (m^T, columns that
/// are no multiple of a vector, and all that is rounded) are packed one at a time, in the cache.
template <class T>
Panels<T> panels_in_place(Rows<const T> m, Form form = Form::kPlain,
                          Operands operands = Operands::kWhole);
inline constexpr index kRowsInPlace = 96;

/// Whether a product reads B in place as fast as a packed copy, for any number of rows of A: B = m
/// of whole vectors, with rows near one another and panels wider than a cache line (AVX-512's).
template <class T>
bool reads_well_in_place(Rows<const T> m, Form form = Form::kPlain,
                         Operands operands = Operands::kWhole);

/// How many values of T hold B [K,N] when it is packed.
template <class T>
index packed_size(index K, index N, Operands operands = Operands::kWhole);

/// Packs B = m, or B = m^T, into as much memory, which must outlive the panels, as ctx asks for.
template <class T>
Panels<T> pack_into(const Context& ctx, Rows<const T> m, Form form, T* memory);

/// A right-hand side B [K,N], packed in the order in which products read it: each panel is
/// [K][lanes], the last one padded with zeros.
template <class T>
class PackedMatrix {
 public:
  PackedMatrix() = default;

  /// Packs B = m, or B = m^T, as ctx asks for. The memory is reused if it is large enough. This
  /// takes one pass over m: for a product of few rows, panels_in_place is cheaper.
  void pack(const Context& ctx, Rows<const T> m, Form form = Form::kPlain);

  index rows() const { return panels_.rows; }        ///< K
  index columns() const { return panels_.columns; }  ///< N
  Isa isa() const { return panels_.isa; }            ///< the instruction set that it was packed for

  /// Valid until it is packed again or destroyed.
  Panels<T> panels() const& { return panels_; }
  Panels<T> panels() const&& = delete;

 private:
  AlignedBytes bytes_;
  std::size_t capacity_ = 0;
  Panels<T> panels_;
};

/// The steps after A B, before C is stored, in one pass while it is in the cache:
///   s = A B + bias (+ C, with Store::kAdd);  C = activation(s);  slope = activation'(s),
/// or, with times: C = A B, each value multiplied by that of times.
template <class T>
struct MatmulOptions {
  Vec<const T> bias = {};  ///< [N], or empty
  Activation activation = Activation::kNone;
  Rows<T> slope = {};  ///< [M,N], or empty: f', by which backward multiplies the gradient of C
  Rows<const T> times = {};  ///< [M,N], or empty; goes with none of the others
  Store store = Store::kWrite;
};

/// The work of a product of C [M,N], sums of K terms.
template <class T>
Work product_work(std::string_view what, index M, index N, index K) {
  const auto m = static_cast<double>(M), n = static_cast<double>(N), k = static_cast<double>(K);
  return {what, {M, N, K}, 2 * m * n * k, (m * k + k * n + m * n) * sizeof(T)};
}

/// C [M,N] from A [M,K] and B [K,N], cut into items that may run in any order and in parallel.
/// Rows of A, C may be strided; C overlaps neither A nor slope. A is read as B was packed; rounded
/// rows need a B of pairs. A rounded C is written, not added to. The memory of all arguments must
/// outlive it. Throws Error(kShape) if shapes disagree, Error(kInternal) if b was packed for
/// another instruction set.
template <class T>
class MatmulItems {
 public:
  MatmulItems(const Context& ctx, ProductRows<const T> a, const Panels<T>& b, ProductRows<T> c,
              const MatmulOptions<T>& options);
  index size() const { return cut_.items(); }
  void run(index item) const;
  Work work() const { return product_work<T>("product", c_.rows(), c_.columns(), a_.columns()); }

 private:
  ProductRows<const T> a_;
  Panels<T> b_;
  ProductRows<T> c_;
  MatmulOptions<T> options_;
  detail::ProductCut cut_;
};

/// C [N1,N2] = (or +=, with Store::kAdd) A^T B, from A [M,N1] and B [M,N2], a sum over M rows; cut
/// in the same way, into items for the threads of ctx, in its precision. A and B may be rounded if
/// that multiplies pairs.
template <class T>
class MatmulAtBItems {
 public:
  MatmulAtBItems(const Context& ctx, ProductRows<const T> a, ProductRows<const T> b, Rows<T> c,
                 Store store = Store::kWrite);
  index size() const { return cut_.items(); }
  void run(index item) const;
  Work work() const { return product_work<T>("product A^T B", c_.rows, c_.columns, a_.rows()); }

 private:
  ProductRows<const T> a_, b_;
  Rows<T> c_;
  Store store_;
  Operands operands_;
  detail::ProductCut cut_;
};

/// Arguments whose type T comes from another one.
template <class T>
using InProductRows = ProductRows<const std::type_identity_t<T>>;
template <class T>
using OutProductRows = ProductRows<std::type_identity_t<T>>;

/// Computes all items of a product.
template <class Items>
void run_items(const Context& ctx, const Items& product) {
  const ProfileScope scope(ctx, product.work());
  ctx.for_each(product.size(), [&](index item) { product.run(item); });
}

/// Computes the whole product.
template <class T>
void matmul(const Context& ctx, InProductRows<T> a, const Panels<T>& b, OutProductRows<T> c,
            const MatmulOptions<std::type_identity_t<T>>& options = {}) {
  run_items(ctx, MatmulItems<T>(ctx, a, b, c, options));
}
template <class T>
void matmul(const Context& ctx, InProductRows<T> a, const PackedMatrix<T>& b, OutProductRows<T> c,
            const MatmulOptions<std::type_identity_t<T>>& options = {}) {
  matmul(ctx, a, b.panels(), c, options);
}
template <class T>
void matmul_at_b(const Context& ctx, InProductRows<T> a, InProductRows<T> b, Rows<T> c,
                 Store store = Store::kWrite) {
  run_items(ctx, MatmulAtBItems<T>(ctx, a, b, c, store));
}

/// Computes two products together, so that threads wait only once. The items of at_b take longer,
/// so each thread begins with these: then threads end together. With a profile, one after the
/// other. Neither product may write what the other reads or writes.
template <class T>
void run_together(const Context& ctx, const MatmulItems<T>& product,
                  const MatmulAtBItems<T>& at_b) {
  if (ctx.profile() != nullptr) {
    run_items(ctx, product);
    return run_items(ctx, at_b);
  }
  const index items = at_b.size() + product.size();
  const detail::TwoProducts both{at_b.size(), product.size(), Shares::count(items, ctx.threads())};
  ctx.for_each(items, [&](index i) {
    const auto [is_of_first, number] = both.item(i);
    is_of_first ? at_b.run(number) : product.run(number);
  });
}

/// sums[n] = (or +=) the sum over m of a[m,n], A [M,N]; rounded rows on processors with products of
/// bfloat16.
template <class T>
void column_sums(const Context& ctx, InProductRows<T> a, Vec<T> sums, Store store = Store::kWrite);

}  // namespace fovea
