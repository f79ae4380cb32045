// SPDX-License-Identifier: Apache-2.0
// Attention of single queries to keys that lie anywhere, for decoding, where hypotheses share the
// keys of their common beginning.
#pragma once

#include <cstdint>

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

/// Query i sees the rows ids[offsets[i]] .. ids[offsets[i + 1]] of keys and values, in that order;
/// at least one. offsets [N + 1] ascend from 0.
struct GatheredRows {
  Vec<const std::int32_t> ids = {};
  Vec<const std::int32_t> offsets = {};
};

/// q [N, H D], k [M, G D], v [M, G Dv], with the heads side by side in a row. H is a multiple of G:
/// each head of k and v serves H / G heads of q.
template <class T>
struct GatheredAttention {
  Rows<const T> q = {}, k = {}, v = {};
  index heads = 1;
  index kv_heads = 1;
  double scale = 1;
  GatheredRows rows = {};
};

/// o_ih = sum_j softmax_j(scale q_ih . k_jh) v_jh over the rows j that query i sees: o [N, H Dv],
/// which overlaps nothing. A row's bits depend on its query and the rows it sees alone. Throws
/// Error(kShape) if shapes disagree, for an id that is no row, and for a query that sees none.
///
/// Reads each key and value once for each query and head group: of N queries with S keys
/// N S G (D + Dv) values, where a tile of many queries would read S G (D + Dv). But queries of
/// hypotheses have different keys, so there is nothing to share; and the time is that of reading.
template <class T>
void gathered_attention(const Context& ctx, const GatheredAttention<T>& a, Rows<T> o);

}  // namespace fovea
