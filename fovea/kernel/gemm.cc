// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/gemm.h"

#include <algorithm>

#include "fovea/kernel/column_sums.h"
#include "fovea/kernel/gemm_tiles.h"

namespace fovea {

namespace {

// A tile is one item of work. Its size balances three wishes: at least some 10 us long, or handing
// it over costs more than it saves; many tiles, so that threads end together; and large enough
// that what is packed or fetched for it is used often.
constexpr double kLeastFlops = 1e6;
constexpr double kMostFlops = 2e7;
constexpr double kEnoughTiles = 64;

double tile_flops(index M, index N, index K) {
  const double all = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  return std::clamp(all / kEnoughTiles, kLeastFlops, kMostFlops);
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
  const Cut rows(c.rows, kMostRows, kernels.shape.rows);
  const double flops = tile_flops(c.rows, c.columns, a.columns);
  const double column = 2.0 * static_cast<double>(rows.length * std::max<index>(a.columns, 1));
  const Cut columns(c.columns, std::max(b.lanes(), static_cast<index>(flops / column)), b.lanes());
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
  const index lanes = kernels.shape.lanes;
  const double flops = tile_flops(c.rows, c.columns, a.rows);
  // What is packed of A is used as often as the tile has columns, what is packed of B as it has
  // rows.
  index most_rows = 192, most_columns = 256;
  const auto is_too_large = [&] {
    return 2.0 * static_cast<double>(std::min(most_rows, c.rows) *
                                     std::min(most_columns, c.columns) * a.rows) >
           flops;
  };
  while (is_too_large() && (most_rows > 48 || most_columns > lanes)) {
    if (most_columns > lanes && std::min(most_columns, c.columns) >= std::min(most_rows, c.rows)) {
      most_columns /= 2;
    } else if (most_rows > 48) {
      most_rows /= 2;
    } else {
      most_columns /= 2;
    }
  }
  const Cut rows(c.rows, most_rows, kernels.shape.rows);
  const Cut columns(c.columns, std::max(lanes, most_columns), lanes);
  ctx.for_each(rows.parts * columns.parts, [&](index item) {
    const index r = item / columns.parts, n = item % columns.parts;
    const Rows<T> tile =
        c.slice(rows.begin(r), rows.end(r)).columns_slice(columns.begin(n), columns.end(n));
    kernels.at_b({a.columns_slice(rows.begin(r), rows.end(r)),
                  b.columns_slice(columns.begin(n), columns.end(n)), tile, store});
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
