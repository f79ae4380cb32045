// SPDX-License-Identifier: Apache-2.0
// Keys and values of the tokens of one sequence in one layer.
#pragma once

#include "fovea/grad/tape.h"
#include "fovea/nn/encoder.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

struct KvCacheOptions {
  index capacity = 0;  ///< most tokens
  index keys = 0;      ///< columns of a row of keys, G D
  index values = 0;    ///< columns of a row of values, G Dv
  DType dtype = DType::kFloat32;
  index window = 0;  ///< how many rows before its own a later query of this layer sees; 0: all
};

/// Rows are appended, up to the capacity. A cache with a window has room for less: it drops rows
/// that no later query sees. Other rows are never dropped one by one, because later rows depend on
/// them: LanguageModelDecoder shows how to move the window of the whole model.
class KvCache {
 public:
  /// As many rows a cache with a window always takes in one call of append.
  static constexpr index kMostNewRows = 256;

  explicit KvCache(const KvCacheOptions& options);

  /// Appends rows of keys and values. Throws Error(kShape) if they do not fit.
  void append(Variable keys, Variable values);
  void clear() { size_ = dropped_ = 0; }

  /// Tokens so far, those whose rows were dropped included.
  index tokens() const { return dropped_ + size_; }
  index dropped() const { return dropped_; }
  index capacity() const { return options_.capacity; }
  /// Most rows that are held at once.
  index room() const { return room_; }

  /// The rows that are held, as constants of a tape; valid until the next append or clear.
  Variable keys(Tape& tape) const { return held(tape, keys_); }
  Variable values(Tape& tape) const { return held(tape, values_); }

  /// The rows that a cache needs room for.
  static index room_needed(index capacity, index window);

 private:
  void drop_unseen();
  Variable held(Tape& tape, const Tensor& table) const;

  KvCacheOptions options_;
  index room_;
  Tensor keys_, values_;
  index size_ = 0;     // rows that are held
  index dropped_ = 0;  // rows before them
};

/// The session of a layer that appends keys and values to a cache.
template <class Layer>
class CachingSession final : public LayerSession {
 public:
  CachingSession(const Layer& layer, const KvCacheOptions& cache) : layer_(layer), cache_(cache) {}

  Variable forward(Tape& tape, Variable x) override { return layer_.forward(tape, x, cache_); }
  void clear() override { cache_.clear(); }
  index most_rows() const override {
    const bool drops = cache_.room() < cache_.capacity();
    return drops ? KvCache::kMostNewRows : LayerSession::most_rows();
  }
  bool endless() const override { return false; }

 private:
  const Layer& layer_;
  KvCache cache_;
};

}  // namespace fovea
