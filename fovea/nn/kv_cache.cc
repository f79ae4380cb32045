// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/kv_cache.h"

#include <algorithm>

#include "fovea/attention/tile.h"

namespace fovea {

namespace {

void copy_into(Tensor& table, index first, Variable x) {
  with_type(table.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<T> from = x.value<T>(), to = table.rows<T>();
    for (index n = 0; n < from.rows; ++n) std::copy_n(from[n], from.columns, to[first + n]);
  });
}

// Moves the rows from `first` on to the beginning.
void move_up(Tensor& table, index first, index size) {
  with_type(table.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<T> rows = table.rows<T>();
    std::copy(rows[first], rows[size], rows[0]);
  });
}

}  // namespace

KvCache::KvCache(const KvCacheOptions& options)
    : options_(options),
      room_(room_needed(options.capacity, options.window)),
      keys_(Tensor::empty({room_, options.keys}, options.dtype)),
      values_(Tensor::empty({room_, options.values}, options.dtype)) {}

// Attention sums in blocks of kRowBlock keys. Rows are dropped a block at a time, so that the sums
// of later queries have the same bits as if nothing was dropped.
index KvCache::room_needed(index capacity, index window) {
  if (window == 0 || window > capacity) return capacity;
  return std::min(capacity, window + kRowBlock - 1 + kMostNewRows);
}

void KvCache::drop_unseen() {
  const index unseen = (size_ - options_.window) / kRowBlock * kRowBlock;
  if (unseen <= 0) return;
  move_up(keys_, unseen, size_);
  move_up(values_, unseen, size_);
  size_ -= unseen;
  dropped_ += unseen;
}

void KvCache::append(Variable keys, Variable values) {
  check(keys.columns() == options_.keys && values.columns() == options_.values &&
            keys.rows() == values.rows(),
        "kv cache: rows of {} and {} columns are expected; keys are [{}, {}], values [{}, {}]",
        options_.keys, options_.values, keys.rows(), keys.columns(), values.rows(),
        values.columns());
  check(keys.rows() <= options_.capacity - tokens(), "kv cache: {} rows do not fit beside {} of {}",
        keys.rows(), tokens(), options_.capacity);
  if (keys.rows() > room_ - size_) drop_unseen();
  check(keys.rows() <= room_ - size_,
        "kv cache: {} rows at once are too many for a window; append at most {}", keys.rows(),
        kMostNewRows);
  copy_into(keys_, size_, keys);
  copy_into(values_, size_, values);
  size_ += keys.rows();
}

Variable KvCache::held(Tape& tape, const Tensor& table) const {
  Variable x;
  with_type(table.dtype(), [&]<class T>(std::type_identity<T>) {
    x = tape.constant(table.rows<T>().slice(0, size_));
  });
  return x;
}

}  // namespace fovea
