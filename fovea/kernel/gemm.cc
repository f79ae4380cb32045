// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/gemm.h"

#include <algorithm>

#include "fovea/base/profile.h"
#include "fovea/base/shares.h"
#include "fovea/kernel/gemm_tiles.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

namespace {

// A tile is one item of work. Its size balances three aims: a tile takes at least some
// microseconds, as handing it to a thread takes one; there are many tiles, so that threads end
// together; and a tile is large, so that data fetched into the cache is reused often.
constexpr double kLeastFlops = 8e5;

double flops_of(index M, index N, index K) {
  return 2.0 * static_cast<double>(M) * static_cast<double>(N) *
         static_cast<double>(std::max<index>(K, 1));
}

index round_up(index n, index step) { return (n + step - 1) / step * step; }

// Starts from the largest tile, because each tile reads its rows of A and its columns of B from the
// memory again, and halves it until each of several threads has enough. No value of C depends on
// the tile that it is in.
struct TileLimits {
  index rows, columns;
  index least_rows;
  double of_thread;  ///< tiles that each thread has at least, unless they get too small
};
constexpr TileLimits kTiles = {.rows = 96, .columns = 1024, .least_rows = 96, .of_thread = 24};
// Rows of A are rounded once for each part of the columns, so fewer parts are faster, most of all
// if sums are short: with 16 instead of 24 tiles of a thread, 768 x 512 values of 128 terms take
// .94 of the time, 1024 x 768 of 3072 terms .92 to .97, those of 4096 rows 1.0 (Zen 5; not measured
// with tile registers). Products of floats take as long or longer.
constexpr TileLimits kPairedTiles = {
    .rows = 96, .columns = 1024, .least_rows = 96, .of_thread = 16};
constexpr TileLimits kTilesAtB = {.rows = 192, .columns = 1024, .least_rows = 48, .of_thread = 6};
// Where both operands of A^T B are packed for each tile (narrow panels and bfloat16, see
// gemm_at_b.cc), fewer and larger tiles share that work. Of 192, 288 and 384 rows, the last were
// the fastest with AVX2 (Zen 3), and tiles of 96 x 128 were faster than the 96 x 64 that three
// tiles of a thread give in small products. Pairs of bfloat16 take half the memory of the values
// that they are made of: with 384 instead of 192 rows, products of 384 columns and more took .94 of
// the time (median of ten shapes on Zen 4; .87 to 1.00). Two tiles of a thread instead of three
// were measured on Zen 5 (gemm_at_b.cc), not with tile registers.
constexpr TileLimits kPackedTilesAtB = {
    .rows = 384, .columns = 1024, .least_rows = 48, .of_thread = 2};
constexpr index kNarrowPanel = 16;

const TileLimits& limits_at_b(Operands operands, const BlockShape& shape) {
  const bool packs = shape.lanes <= kNarrowPanel || operands != Operands::kWhole;
  return packs ? kPackedTilesAtB : kTilesAtB;
}

detail::ProductCut cut_for_threads(index M, index N, index K, const TileLimits& limits,
                                   const BlockShape& block, int threads) {
  const double tiles = threads == 1 ? 1 : limits.of_thread * threads;
  const double flops = std::max(flops_of(M, N, K) / tiles, kLeastFlops);
  index rows = std::min(limits.rows, round_up(M, block.rows));
  index columns = std::min(limits.columns, round_up(N, block.lanes));
  while (flops_of(rows, columns, K) > flops) {
    const bool may_halve_rows = rows > limits.least_rows, may_halve_columns = columns > block.lanes;
    if (!may_halve_rows && !may_halve_columns) break;
    index& longer = may_halve_columns && (columns >= rows || !may_halve_rows) ? columns : rows;
    longer /= 2;
  }
  // Items that follow one another share a part of one operand, which is then read once; the other
  // operand is read again for each of these parts. So the larger one is shared: A if N <= M.
  detail::ProductCut cut{{M, rows, block.rows}, {N, columns, block.lanes}, N <= M};
  cut.groups = Shares::count(cut.rows.parts(), threads);
  return cut;
}

template <class T>
void check_matmul(ProductRows<const T> a, const Panels<T>& b, ProductRows<T> c,
                  const MatmulOptions<T>& o) {
  check(a.columns() == b.rows,
        "matmul: the columns of a must be the rows of b; a is [{}, {}], b [{}, {}]", a.rows(),
        a.columns(), b.rows, b.columns);
  c.visit([&](auto rows) { check_rows("matmul", "c", rows, a.rows(), b.columns); });
  check_optional("matmul", "bias", o.bias, "N", c.columns());
  if (o.slope.data != nullptr) {
    check_rows("matmul", "slope", o.slope, c.rows(), c.columns());
  }
  if (o.times.data != nullptr) {
    check_rows("matmul", "times", o.times, c.rows(), c.columns());
  }
  check(o.times.data == nullptr || (o.bias.empty() && o.activation == Activation::kNone &&
                                    o.slope.data == nullptr && o.store == Store::kWrite),
        "matmul: times goes with neither bias, activation, slope nor addition");
  check(b.operands == Operands::kPaired || !(a.is_rounded() || c.is_rounded()),
        "matmul: only products of pairs read and write rows of bfloat16");
  check(!c.is_rounded() || o.store == Store::kWrite, "matmul: rows of bfloat16 are not added to");
  if (b.isa != current_isa() && c.rows() * c.columns() > 0) {
    throw Error(ErrorCode::kInternal,
                fmt::format("matmul: b was packed for {}, and the instruction set is now {}",
                            isa_name(b.isa), isa_name(current_isa())),
                "pack it again after pin_isa");
  }
}

template <class T>
MatmulTile<T> tile_of(const ProductRows<const T>& a, const Panels<T>& b, const ProductRows<T>& c,
                      MatmulOptions<T> o, const detail::ProductCut::Tile& part) {
  const auto [rows, columns] = part;
  if (o.slope.data != nullptr) o.slope = o.slope.slice(rows.begin, rows.end);
  if (o.times.data != nullptr) o.times = o.times.slice(rows.begin, rows.end);
  return {a.slice(rows.begin, rows.end), &b,
          columns.begin / b.lanes,       (columns.end + b.lanes - 1) / b.lanes,
          c.slice(rows.begin, rows.end), o};
}

template <class T>
AtBTile<T> tile_of(const ProductRows<const T>& a, const ProductRows<const T>& b, Rows<T> c,
                   Store store, Operands operands, const detail::ProductCut::Tile& part) {
  const auto [rows, columns] = part;
  return {a.columns_slice(rows.begin, rows.end), b.columns_slice(columns.begin, columns.end),
          c.slice(rows.begin, rows.end).columns_slice(columns.begin, columns.end), store, operands};
}

/// Tells a plan what the largest tiles take of a thread: the first one, and the last one beside it,
/// whose rows may end in a part of a vector.
template <class F>
void plan_tiles(const Context& ctx, const detail::ProductCut& cut, F&& scratch_of) {
  if (ctx.plan() == nullptr) return;
  for (const index column : {index{0}, cut.columns.parts() - 1}) {
    const index bytes =
        scratch_of(detail::ProductCut::Tile{cut.rows.part(0), cut.columns.part(column)});
    ctx.plan()->add_thread_bytes(static_cast<double>(bytes));
  }
}

}  // namespace

detail::AxisCut::AxisCut(index size, index most, index step) : size_(size) {
  const index wanted = std::max<index>(1, (size + most - 1) / most);
  length_ = std::max(step, round_up((size + wanted - 1) / wanted, step));
  parts_ = (size + length_ - 1) / length_;
}

template <class T>
Operands operands_of(const Context& ctx) {
  if (std::is_same_v<T, double> || ctx.precision() == Precision::kFloat32) return Operands::kWhole;
  return has_bfloat16_products() ? Operands::kPaired : Operands::kRounded;
}

template <class T>
Panels<T> panels_in_place(Rows<const T> m, Form form, Operands operands) {
  const BlockShape shape = gemm_kernels<T>().shape;
  const bool plain = form == Form::kPlain;
  const bool as_it_is = plain && operands == Operands::kWhole && m.columns % shape.vector == 0;
  return {.data = m.data,
          .rows = plain ? m.rows : m.columns,
          .columns = plain ? m.columns : m.rows,
          .lanes = shape.lanes,
          .panel_stride = shape.lanes,
          .row_stride = m.stride,
          .isa = current_isa(),
          .pack = as_it_is ? std::nullopt : std::optional(form),
          .operands = operands};
}

// A narrow panel is a cache line or less of each row, and at most widths these lines are in few
// sets of the first cache. On Zen 3 (AVX2, one thread) packing and multiplying takes .59 to .92 of
// the time of reading in place (docs/experiments.md).
template <class T>
bool reads_well_in_place(Rows<const T> m, Form form, Operands operands) {
  const Panels<T> panels = panels_in_place(m, form, operands);
  const bool is_narrow = static_cast<std::size_t>(panels.lanes) * sizeof(T) <= kAlignment;
  return !panels.pack && !is_narrow && m.stride <= kFarApart<T>;
}

template <class T>
index packed_size(index K, index N, Operands operands) {
  const index lanes = gemm_kernels<T>().shape.lanes, panels = (N + lanes - 1) / lanes;
  return checked_product(checked_product(panels, lanes, "packed columns"), steps_of(K, operands),
                         "packed matrix");
}

template <class T>
Panels<T> pack_into(const Context& ctx, Rows<const T> m, Form form, T* memory) {
  const auto kernels = gemm_kernels<T>();
  const bool plain = form == Form::kPlain;
  const index K = plain ? m.rows : m.columns, N = plain ? m.columns : m.rows;
  const index lanes = kernels.shape.lanes, panels = (N + lanes - 1) / lanes;
  const Operands operands = operands_of<T>(ctx);
  const index panel_stride = steps_of(K, operands) * lanes;
  const ProfileScope scope(ctx, pass_over<T>("pack", K, N, 2));
  const index together = kernels.shape.panels, groups = (panels + together - 1) / together;
  const double cost = 2.0 * static_cast<double>(K * lanes * together);
  ctx.for_ranges(groups, cost, [&](index begin, index end) {
    kernels.pack({.m = m,
                  .form = form,
                  .operands = operands,
                  .begin = begin * together,
                  .end = std::min(panels, end * together),
                  .panels = memory,
                  .panel_stride = panel_stride});
  });
  return {memory, K, N, lanes, panel_stride, lanes, current_isa(), {}, operands};
}

template <class T>
void PackedMatrix<T>::pack(const Context& ctx, Rows<const T> m, Form form) {
  const bool plain = form == Form::kPlain;
  const index values =
      packed_size<T>(plain ? m.rows : m.columns, plain ? m.columns : m.rows, operands_of<T>(ctx));
  const std::size_t bytes = static_cast<std::size_t>(values) * sizeof(T);
  if (bytes > capacity_) {
    bytes_ = allocate_aligned(bytes);
    capacity_ = bytes;
  }
  panels_ = pack_into(ctx, m, form, reinterpret_cast<T*>(bytes_.get()));
}

template <class T>
MatmulItems<T>::MatmulItems(const Context& ctx, ProductRows<const T> a, const Panels<T>& b,
                            ProductRows<T> c, const MatmulOptions<T>& options)
    : a_(a), b_(b), c_(c), options_(options) {
  check_matmul<T>(a, b, c, options);
  if (c.rows() == 0 || c.columns() == 0) return;
  cut_ = cut_for_threads(c.rows(), c.columns(), a.columns(),
                         b.operands == Operands::kPaired ? kPairedTiles : kTiles,
                         gemm_kernels<T>().shape, ctx.threads());
  plan_tiles(ctx, cut_, [&](const auto& part) {
    return gemm_kernels<T>().matmul_scratch(tile_of(a_, b_, c_, options_, part));
  });
}

template <class T>
void MatmulItems<T>::run(index item) const {
  const auto part = cut_.item(item);
  MatmulTile<T> tile = tile_of(a_, b_, c_, options_, part);
  // Most likely the same thread takes the next item.
  if (const index next = item + 1; next < cut_.items()) {
    const auto next_rows = cut_.item(next).rows;
    if (next_rows.begin != part.rows.begin) tile.next_a = a_.slice(next_rows.begin, next_rows.end);
  }
  gemm_kernels<T>().matmul(tile);
}

template <class T>
MatmulAtBItems<T>::MatmulAtBItems(const Context& ctx, ProductRows<const T> a,
                                  ProductRows<const T> b, Rows<T> c, Store store)
    : a_(a), b_(b), c_(c), store_(store), operands_(operands_of<T>(ctx)) {
  check(a.rows() == b.rows(),
        "matmul_at_b: a and b must have as many rows; a is [{}, {}], b [{}, {}]", a.rows(),
        a.columns(), b.rows(), b.columns());
  check_rows("matmul_at_b", "c", c, a.columns(), b.columns());
  check(operands_ == Operands::kPaired || !(a.is_rounded() || b.is_rounded()),
        "matmul_at_b: only products of pairs read rows of bfloat16");
  if (c.rows == 0 || c.columns == 0) return;
  const BlockShape shape = gemm_kernels<T>().shape;
  cut_ = cut_for_threads(c.rows, c.columns, a.rows(), limits_at_b(operands_, shape), shape,
                         ctx.threads());
  plan_tiles(ctx, cut_, [&](const auto& part) {
    return at_b_kernels<T>().scratch(tile_of(a_, b_, c_, store_, operands_, part));
  });
}

template <class T>
void MatmulAtBItems<T>::run(index item) const {
  AtBTile<T> tile = tile_of(a_, b_, c_, store_, operands_, cut_.item(item));
  if (const index next = item + 1; next < cut_.items()) {
    const auto [next_rows, next_columns] = cut_.item(next);
    tile.next_a = a_.columns_slice(next_rows.begin, next_rows.end);
    tile.next_b = b_.columns_slice(next_columns.begin, next_columns.end);
  }
  at_b_kernels<T>().matmul(tile);
}

template <class T>
void column_sums(const Context& ctx, InProductRows<T> a, Vec<T> sums, Store store) {
  check_vec("column_sums", "sums", sums, "N", a.columns());
  check(!a.is_rounded() || (std::is_same_v<T, float> && has_bfloat16_products()),
        "column_sums: this machine reads no rows of bfloat16");
  const ProfileScope scope(ctx, pass_over<T>("column sums", a.rows(), a.columns(), 1));
  if (store == Store::kWrite) {
    ctx.run_here([&] { std::fill(sums.begin(), sums.end(), T{0}); });
  }
  const auto add = gemm_kernels<T>().add_rows;
  add_chunk_sums(ctx, a.rows(), static_cast<double>(a.columns()), sums,
                 [&](index begin, index end, T* partial) { add(a.slice(begin, end), partial); });
}

#define FOVEA_INSTANTIATE(T)                                             \
  template Operands operands_of<T>(const Context&);                      \
  template index packed_size<T>(index, index, Operands);                 \
  template Panels<T> pack_into(const Context&, Rows<const T>, Form, T*); \
  template class PackedMatrix<T>;                                        \
  template Panels<T> panels_in_place(Rows<const T>, Form, Operands);     \
  template bool reads_well_in_place(Rows<const T>, Form, Operands);      \
  template class MatmulItems<T>;                                         \
  template class MatmulAtBItems<T>;                                      \
  template void column_sums<T>(const Context&, InProductRows<T>, Vec<T>, Store);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea
