// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/kv_cache.h"

#include <algorithm>

namespace fovea {

namespace {

void copy_into(Tensor& table, index first, Variable x) {
  with_type(table.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<T> from = x.value<T>(), to = table.rows<T>();
    for (index n = 0; n < from.rows; ++n) std::copy_n(from[n], from.columns, to[first + n]);
  });
}

}  // namespace

KvCache::KvCache(const KvCacheOptions& options)
    : options_(options),
      keys_(Tensor::empty({options.capacity, options.keys}, options.dtype)),
      values_(Tensor::empty({options.capacity, options.values}, options.dtype)) {}

void KvCache::append(Variable keys, Variable values) {
  check(keys.columns() == options_.keys && values.columns() == options_.values &&
            keys.rows() == values.rows(),
        "kv cache: rows of {} and {} columns are expected; keys are [{}, {}], values [{}, {}]",
        options_.keys, options_.values, keys.rows(), keys.columns(), values.rows(),
        values.columns());
  check(keys.rows() <= options_.capacity - size_, "kv cache: {} rows do not fit beside {} of {}",
        keys.rows(), size_, options_.capacity);
  copy_into(keys_, size_, keys);
  copy_into(values_, size_, values);
  size_ += keys.rows();
}

Variable KvCache::rows(Tape& tape, const Tensor& table) const {
  Variable x;
  with_type(table.dtype(), [&]<class T>(std::type_identity<T>) {
    x = tape.constant(table.rows<T>().slice(0, size_));
  });
  return x;
}

}  // namespace fovea
