// SPDX-License-Identifier: Apache-2.0
// Keys and values of the tokens of one sequence in one layer.
#pragma once

#include "fovea/grad/tape.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

struct KvCacheOptions {
  index capacity = 0;  ///< most tokens
  index keys = 0;      ///< columns of a row of keys, G D
  index values = 0;    ///< columns of a row of values, G Dv
  DType dtype = DType::kFloat32;
};

/// Rows are appended, up to its capacity, and never dropped one by one: later rows would still
/// depend on a dropped token. LanguageModelDecoder shows how to move the window instead.
class KvCache {
 public:
  explicit KvCache(const KvCacheOptions& options);

  /// Appends rows of keys and values. Throws Error(kShape) if they do not fit.
  void append(Variable keys, Variable values);
  void clear() { size_ = 0; }

  index size() const { return size_; }
  index capacity() const { return options_.capacity; }

  /// All rows so far, as constants of a tape; valid until the next append or clear.
  Variable keys(Tape& tape) const { return rows(tape, keys_); }
  Variable values(Tape& tape) const { return rows(tape, values_); }

 private:
  Variable rows(Tape& tape, const Tensor& table) const;

  KvCacheOptions options_;
  Tensor keys_, values_;
  index size_ = 0;
};

}  // namespace fovea
