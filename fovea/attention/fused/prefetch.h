// SPDX-License-Identifier: Apache-2.0
// A parallel loop that tells each item which item its thread runs next, so that it can prefetch the
// rows of that one.
#pragma once

#include "fovea/attention/fused/backward_chunk.h"
#include "fovea/attention/fused/query_tiles.h"
#include "fovea/base/interruption.h"
#include "fovea/base/shares.h"
#include "fovea/simd/prefetch.h"

namespace fovea::detail {

/// Calls f(item, next) for every item in [0, items), as ctx.for_each does: `next` is the item that
/// the same thread does after it, or -1 if that is not known. Each thread has a range of its own,
/// as neighbours are close in memory, and takes items of other ranges when its own is done. If
/// items throw, the exception of the lowest such item is thrown here: all items below it are done.
template <class F>
void for_each_with_next(const Context& ctx, index items, F&& f) {
  const EqualParts cut{items, Shares::count(items, ctx.threads())};
  Shares shares(cut);
  LowestError error;
  const auto run = [&](index item, index next) {
    if (!error.concerns(item)) return;
    try {
      stop_if_interrupted();
      f(item, next);
    } catch (...) {
      error.keep(item);
    }
  };
  ctx.for_each(cut.parts, [&](index own) {
    for (index k = 0; k < cut.parts; ++k) {
      const auto share = static_cast<int>((own + k) % cut.parts);
      for (index item = shares.take(share); item >= 0;) {
        const index next = shares.take(share, 1);  // the last item is left to the first free thread
        run(item, next);
        item = next >= 0 ? next : shares.take(share);
      }
    }
  });
  error.rethrow();
}

/// Asks for the memory that a chunk of the backward touches first. The queries of a unit are read
/// before its first chunk, and dq is cleared, if it is summed up in place.
template <class T>
void prefetch_inputs(const BackwardCall<T>& call, const BackwardChunk<T>& chunk,
                     Prefetch& prefetch) {
  const Sequence& sequence = chunk.sequence;
  for (const View<const T>& view : {call.in.k, call.in.v}) {
    prefetch.add(
        Rows<const T>(view.row(sequence.batch, sequence.key_row + chunk.key_begin, chunk.group),
                      chunk.key_end - chunk.key_begin, view.width, view.length_stride));
  }
  if (chunk.key_begin > 0) return;
  for (const View<const T>& view : {call.saved.o, call.saved.d_o, call.in.q}) {
    prefetch.add(Rows<const T>(view.row(sequence.batch, sequence.query_row, chunk.first_head),
                               sequence.queries, view.width, view.length_stride));
  }
  if (const View<T>& dq = call.gradients.dq; !dq.empty() && chunk.key_end == sequence.keys) {
    prefetch.add(Rows<T>(dq.row(sequence.batch, sequence.query_row, chunk.first_head),
                         sequence.queries, dq.width, dq.length_stride));
  }
}

/// Asks for the memory of the gradients that the chunk writes.
template <class T>
void prefetch_gradients(const BackwardCall<T>& call, const BackwardChunk<T>& chunk,
                        Prefetch& prefetch) {
  const auto& [dq, dk, dv] = call.gradients;
  const Sequence& sequence = chunk.sequence;
  for (const View<T>& view : {dk, dv}) {
    if (view.empty()) continue;
    prefetch.add(Rows<T>(view.row(sequence.batch, sequence.key_row + chunk.key_begin, chunk.group),
                         chunk.key_end - chunk.key_begin, view.width, view.length_stride));
  }
}

}  // namespace fovea::detail
