// SPDX-License-Identifier: Apache-2.0
// The norms of the rows of a weight that adapters change.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "fovea/base/context.h"
#include "fovea/grad/parameter.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

/// |row|, of so many values.
template <class T>
T norm_of_row(const T* row, index size);

/// value / norm, but 0 where the norm is: so a row that is zero stays so.
template <class T>
T over_norm(T value, T norm) {
  return norm > 0 ? value / norm : T{0};
}

/// norms[n] = |W[first + n] + scale B[n] A|, of the rows that a change changes, without its
/// magnitudes. The weight is read a few rows at a time, wherever it lies, so it is never there
/// whole. norms [rows]; the bits do not depend on the number of threads. It reads rows x in values,
/// and multiplies and adds r times as often.
template <class T>
void norms_of_rows(const Context& context, const Parameter& weight, const LowRank& change,
                   Vec<T> norms);

/// These norms, kept until A or B changes. Any number of threads may call get() at once, as long as
/// none changes them.
class RowNorms {
 public:
  template <class T>
  Vec<const T> get(const Context& context, const Parameter& weight, const LowRank& change);

 private:
  std::mutex mutex_;
  std::atomic<std::uint64_t> known_{0};  // the versions of A and B together, plus one; 0: none
  Tensor norms_;
};

}  // namespace fovea
