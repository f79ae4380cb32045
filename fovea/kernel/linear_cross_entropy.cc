// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fovea/base/memory.h"
#include "fovea/base/profile.h"
#include "fovea/kernel/cross_entropy.h"
#include "fovea/kernel/elementwise.h"
#include "fovea/kernel/gemm.h"

namespace fovea {

// At most 32 MB of logits, so that they stay in a shared cache, but enough rows that reading and
// writing dweight for every chunk takes less time than the product.
template <class T>
index logit_rows(index N, index V) {
  constexpr index kLogitBytes = index{32} << 20;
  const index fitting = kLogitBytes / (std::max<index>(V, 1) * static_cast<index>(sizeof(T)));
  return std::min(N, std::clamp<index>(fitting / 32 * 32, 64, 256));
}

namespace {

// The rows that have a target, packed together: only these are computed.
template <class T>
struct KeptRows {
  Rows<const T> x;
  Vec<const std::int32_t> ids;
  Vec<const index> rows;  // their original numbers; empty: all rows, in place

  bool all() const { return rows.empty(); }
};

template <class T>
KeptRows<T> kept_rows(const Context& ctx, const LinearCrossEntropy<T>& a, index count,
                      Scratch& scratch) {
  if (count == a.x.rows) return {a.x, a.targets.ids, {}};
  index* const rows = scratch.allocate<index>(count);
  std::int32_t* const ids = scratch.allocate<std::int32_t>(count);
  index next = 0;
  for (index n = 0; n < a.x.rows; ++n) {
    if (a.targets.ids[n] == a.targets.ignore) continue;
    rows[next] = n;
    ids[next++] = a.targets.ids[n];
  }
  const Rows<T> x(scratch.allocate<T>(count * a.x.columns), count, a.x.columns);
  ctx.for_ranges(count, static_cast<double>(a.x.columns), [&](index begin, index end) {
    for (index i = begin; i < end; ++i) std::copy_n(a.x[rows[i]], a.x.columns, x[i]);
  });
  return {x, {ids, count}, {rows, count}};
}

template <class T>
void check_arguments(const LinearCrossEntropy<T>& a) {
  const char* const kName = "linear_cross_entropy";
  const index N = a.x.rows, C = a.x.columns, V = a.weight.rows;
  check_rows(kName, "weight", a.weight, V, C);
  check_optional(kName, "bias", a.bias, "V", V);
  check_vec(kName, "targets", a.targets.ids, "N", N);
  check_optional(kName, "losses", a.losses, "N", N);
  if (a.dx.data != nullptr) check_rows(kName, "dx", a.dx, N, C);
  if (a.dweight.data != nullptr) check_rows(kName, "dweight", a.dweight, V, C);
  check_optional(kName, "dbias", a.dbias, "V", V);
  const auto check_packed = [&](const char* name, const PackedMatrix<T>* p, index rows,
                                index cols) {
    check(p == nullptr || (p->rows() == rows && p->columns() == cols),
          "{}: {} must be [{}, {}]; it is [{}, {}]", kName, name, rows, cols, p ? p->rows() : 0,
          p ? p->columns() : 0);
  };
  check_packed("packed_transposed", a.packed_transposed, C, V);
  check_packed("packed", a.packed, V, C);
}

// The weight for the two products: packed by the caller, or read in place, or packed here.
template <class T>
struct Weights {
  Panels<T> transposed, plain;
  PackedMatrix<T> own_transposed, own_plain;

  Weights(const Context& ctx, const LinearCrossEntropy<T>& a, index count) {
    const auto packed = [&](const PackedMatrix<T>* given, PackedMatrix<T>& own, Form form) {
      if (given != nullptr) return given->panels();
      const Operands operands = operands_of<T>(ctx);
      if (count <= kRowsInPlace || reads_well_in_place(a.weight, form, operands)) {
        return panels_in_place(a.weight, form, operands);
      }
      own.pack(ctx, a.weight, form);
      return own.panels();
    };
    transposed = packed(a.packed_transposed, own_transposed, Form::kTransposed);
    if (a.dx.data != nullptr) plain = packed(a.packed, own_plain, Form::kPlain);
  }
  Weights(const Weights&) = delete;
};

template <class T>
struct Chunk {
  Rows<const T> x;
  Vec<const std::int32_t> ids;
  Rows<T> logits;
  Vec<T> losses;
  Rows<T> dx;
  Store dweight_store, dbias_store;  // the first chunk may write, later ones add
};

// The logits of a chunk are replaced by their gradient in place, which is used three times while it
// is in the cache: for dx, dweight and dbias. Writes losses and dx of the rows of x.
template <class T>
void do_chunk(const Context& ctx, const LinearCrossEntropy<T>& a, const Weights<T>& weights,
              const Chunk<T>& chunk) {
  const bool want_gradient =
      chunk.dx.data != nullptr || a.dweight.data != nullptr || !a.dbias.empty();
  matmul(ctx, chunk.x, weights.transposed, chunk.logits, {.bias = a.bias});
  Targets targets = a.targets;
  targets.ids = chunk.ids;
  cross_entropy(ctx, chunk.logits, targets, a.scale, chunk.losses,
                want_gradient ? chunk.logits : Rows<T>());
  if (chunk.dx.data != nullptr && a.dweight.data != nullptr) {
    run_together<T>(ctx, {ctx, chunk.logits, weights.plain, chunk.dx, {}},
                    {ctx, chunk.logits, chunk.x, a.dweight, chunk.dweight_store});
  } else if (chunk.dx.data != nullptr) {
    matmul(ctx, chunk.logits, weights.plain, chunk.dx);
  } else if (a.dweight.data != nullptr) {
    matmul_at_b(ctx, chunk.logits, chunk.x, a.dweight, chunk.dweight_store);
  }
  if (!a.dbias.empty()) column_sums(ctx, chunk.logits, a.dbias, chunk.dbias_store);
}

}  // namespace

template <class T>
CrossEntropy linear_cross_entropy(const Context& ctx, const LinearCrossEntropy<T>& a) {
  check_arguments(a);
  const ProfileScope scope(ctx, {.what = "loss", .shape = {a.x.rows, a.x.columns, a.weight.rows}});
  const index C = a.x.columns, V = a.weight.rows, count = count_targets(a.targets, V);
  const bool want_dx = a.dx.data != nullptr;
  if (want_dx && count < a.x.rows) fill(ctx, T{0}, a.dx);
  if (!a.losses.empty()) std::fill(a.losses.begin(), a.losses.end(), T{0});
  if (count == 0) {
    if (a.dweight.data != nullptr && a.dweight_store == Store::kWrite) fill(ctx, T{0}, a.dweight);
    if (a.dbias_store == Store::kWrite) std::fill(a.dbias.begin(), a.dbias.end(), T{0});
    return {};
  }

  Scratch scratch;
  const KeptRows<T> kept = kept_rows(ctx, a, count, scratch);
  const Weights<T> weights(ctx, a, count);
  const index most = logit_rows<T>(count, V);
  const Rows<T> logits(scratch.allocate<T>(most * V), most, V);
  const Vec<T> losses{scratch.allocate<T>(count), count};
  const Rows<T> dx =
      kept.all() || !want_dx ? a.dx : Rows<T>(scratch.allocate<T>(count * C), count, C);
  for (index begin = 0; begin < count; begin += most) {
    const index end = std::min(count, begin + most);
    do_chunk(ctx, a, weights,
             {.x = kept.x.slice(begin, end),
              .ids = {kept.ids.data + begin, end - begin},
              .logits = logits.slice(0, end - begin),
              .losses = {losses.data + begin, end - begin},
              .dx = want_dx ? dx.slice(begin, end) : Rows<T>(),
              .dweight_store = begin == 0 ? a.dweight_store : Store::kAdd,
              .dbias_store = begin == 0 ? a.dbias_store : Store::kAdd});
  }

  CrossEntropy result{.total = 0, .count = count};
  for (index i = 0; i < count; ++i) {
    const index n = kept.all() ? i : kept.rows[i];
    result.total += static_cast<double>(losses[i]);
    if (!a.losses.empty()) a.losses[n] = losses[i];
    if (want_dx && !kept.all()) std::copy_n(dx[i], C, a.dx[n]);
  }
  return result;
}

template index logit_rows<float>(index, index);
template index logit_rows<double>(index, index);
template CrossEntropy linear_cross_entropy(const Context&, const LinearCrossEntropy<float>&);
template CrossEntropy linear_cross_entropy(const Context&, const LinearCrossEntropy<double>&);

}  // namespace fovea
