// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/gemm.h"

#include <algorithm>

#include "fovea/kernel/column_sums.h"
#include "fovea/kernel/gemm_tiles.h"

namespace fovea {

namespace {

// A tile is one item of work. Its size balances three wishes: at least some 10 us long, or handing
// it over costs more than it saves; many tiles, so that threads end together; and large enough
// that what is fetched for it is used often.
constexpr double kLeastFlops = 1e6;
constexpr double kEnoughTiles = 64;

double flops_of(index M, index N, index K) {
  return 2.0 * static_cast<double>(M) * static_cast<double>(N) *
         static_cast<double>(std::max<index>(K, 1));
}

index round_up(index n, index step) { return (n + step - 1) / step * step; }

/// [0, n) in equal parts of at most `most`, each but the last a multiple of `step`.
struct Cut {
  Cut(index size, index most, index step) : n(size) {
    const index wanted = std::max<index>(1, (n + most - 1) / most);
    length = std::max(step, round_up((n + wanted - 1) / wanted, step));
    parts = (n + length - 1) / length;
  }
  index begin(index part) const { return part * length; }
  index end(index part) const { return std::min(n, (part + 1) * length); }

  index n, length, parts;
};

struct AtBCut {
  Cut rows, columns;
};

// From the largest tile whose A, B and C fit in L2, halved until it is small enough.
AtBCut cut_at_b(index N1, index N2, index M, const BlockShape& block) {
  constexpr index kMostRows = 192, kMostColumns = 256, kLeastRows = 48;
  constexpr double kTilesForAll = 24;  // fewer than in matmul: a tile reads A and B all over again
  const double flops = std::max(flops_of(N1, N2, M) / kTilesForAll, 2 * kLeastFlops);
  index rows = std::min(kMostRows, round_up(N1, block.rows));
  index columns = std::min(kMostColumns, round_up(N2, block.lanes));
  while (flops_of(rows, columns, M) > flops) {
    const bool may_halve_rows = rows > kLeastRows, may_halve_columns = columns > block.lanes;
    if (!may_halve_rows && !may_halve_columns) break;
    index& longer = may_halve_columns && (columns >= rows || !may_halve_rows) ? columns : rows;
    longer /= 2;
  }
  return {Cut(N1, rows, block.rows), Cut(N2, columns, block.lanes)};
}

template <class T>
void check_matmul(InRows<T> a, const PackedMatrix<T>& b, Rows<T> c, const MatmulOptions<T>& o) {
  check(a.columns == b.rows(),
        "matmul: the columns of a must be the rows of b; a is [{}, {}], b [{}, {}]", a.rows,
        a.columns, b.rows(), b.columns());
  check_rows("matmul", "c", c, a.rows, b.columns());
  check_optional("matmul", "bias", o.bias, "N", c.columns);
  if (o.before_activation.data != nullptr) {
    check_rows("matmul", "before_activation", o.before_activation, c.rows, c.columns);
  }
  if (b.isa() != current_isa() && c.rows * c.columns > 0) {
    throw Error(ErrorCode::kInternal,
                fmt::format("matmul: b was packed for {}, and the instruction set is now {}",
                            isa_name(b.isa()), isa_name(current_isa())),
                "pack it again after pin_isa");
  }
}

}  // namespace

template <class T>
void PackedMatrix<T>::pack(const Context& ctx, Rows<const T> m, Form form) {
  const auto kernels = gemm_kernels<T>();
  isa_ = current_isa();
  rows_ = form == Form::kPlain ? m.rows : m.columns;
  columns_ = form == Form::kPlain ? m.columns : m.rows;
  lanes_ = kernels.shape.lanes;
  const index panels = (columns_ + lanes_ - 1) / lanes_;
  const index values =
      checked_product(checked_product(panels, lanes_, "packed columns"), rows_, "packed matrix");
  const std::size_t bytes = static_cast<std::size_t>(values) * sizeof(T);
  if (bytes > capacity_) {
    bytes_ = allocate_aligned(bytes);
    capacity_ = bytes;
  }
  T* const data = reinterpret_cast<T*>(bytes_.get());
  ctx.for_ranges(panels, 2.0 * static_cast<double>(rows_ * lanes_), [&](index begin, index end) {
    for (index i = begin; i < end; ++i) {
      kernels.pack({m, form, i * lanes_, data + i * rows_ * lanes_});
    }
  });
}

template <class T>
void matmul(const Context& ctx, InRows<T> a, const PackedMatrix<T>& b, Rows<T> c,
            const MatmulOptions<std::type_identity_t<T>>& options) {
  check_matmul<T>(a, b, c, options);
  if (c.rows == 0 || c.columns == 0) return;
  const auto kernels = gemm_kernels<T>();
  constexpr index kMostRows = 96;
  constexpr double kMostFlops = 2e7;
  const index M = c.rows, N = c.columns, K = a.columns;
  const Cut rows(M, kMostRows, kernels.shape.rows);
  const double flops = std::clamp(flops_of(M, N, K) / kEnoughTiles, kLeastFlops, kMostFlops);
  const auto wanted = static_cast<index>(flops / flops_of(rows.length, 1, K));
  const Cut columns(N, std::max(b.lanes(), wanted), b.lanes());
  ctx.for_each(rows.parts * columns.parts, [&](index item) {
    const index row = item / columns.parts, column_part = item % columns.parts;
    const index begin = rows.begin(row), end = rows.end(row);
    MatmulOptions<T> o = options;
    if (o.before_activation.data != nullptr) {
      o.before_activation = o.before_activation.slice(begin, end);
    }
    kernels.matmul({a.slice(begin, end), &b, columns.begin(column_part) / b.lanes(),
                    (columns.end(column_part) + b.lanes() - 1) / b.lanes(), c.slice(begin, end),
                    o});
  });
}

template <class T>
void matmul_at_b(const Context& ctx, InRows<T> a, InRows<T> b, Rows<T> c, Store store) {
  check(a.rows == b.rows, "matmul_at_b: a and b must have as many rows; a is [{}, {}], b [{}, {}]",
        a.rows, a.columns, b.rows, b.columns);
  check_rows("matmul_at_b", "c", c, a.columns, b.columns);
  if (c.rows == 0 || c.columns == 0) return;
  const auto kernels = gemm_kernels<T>();
  const AtBCut cut = cut_at_b(c.rows, c.columns, a.rows, kernels.shape);
  ctx.for_each(cut.rows.parts * cut.columns.parts, [&](index item) {
    const index r = item / cut.columns.parts, n = item % cut.columns.parts;
    const index row = cut.rows.begin(r), row_end = cut.rows.end(r);
    const index column = cut.columns.begin(n), column_end = cut.columns.end(n);
    kernels.at_b({a.columns_slice(row, row_end), b.columns_slice(column, column_end),
                  c.slice(row, row_end).columns_slice(column, column_end), store});
  });
}

template <class T>
void column_sums(const Context& ctx, InRows<T> a, Vec<T> sums, Store store) {
  check_vec("column_sums", "sums", sums, "N", a.columns);
  if (store == Store::kWrite) std::fill(sums.begin(), sums.end(), T{0});
  const auto add = gemm_kernels<T>().add_rows;
  add_chunk_sums(ctx, a.rows, static_cast<double>(a.columns), sums,
                 [&](index begin, index end, T* partial) { add(a.slice(begin, end), partial); });
}

#define FOVEA_INSTANTIATE(T)                                                       \
  template class PackedMatrix<T>;                                                  \
  template void matmul(const Context&, InRows<T>, const PackedMatrix<T>&, Rows<T>, \
                       const MatmulOptions<T>&);                                   \
  template void matmul_at_b(const Context&, InRows<T>, InRows<T>, Rows<T>, Store); \
  template void column_sums(const Context&, InRows<T>, Vec<T>, Store);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea
