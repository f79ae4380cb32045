// SPDX-License-Identifier: Apache-2.0
// Decoding: hypotheses of many sentences, a token more of each in every step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/model/row_pool.h"
#include "fovea/model/text_decoder.h"

namespace fovea {

/// Keys and values of all layers are kept, of the source once for a sentence, of the target once
/// for hypotheses that share them. Belongs to one thread.
class TextDecoding final : public Decoding {
 public:
  /// The decoder must outlive it, and not change between two calls of begin().
  explicit TextDecoding(const TextDecoder& decoder) : decoder_(decoder) {}

  void begin(Tape& tape, const SourceRows& source) override;

  /// The bits of a row depend on its hypothesis and its source alone,
  /// and are those of TextDecoder::forward() wherever attention has parts; else they agree to
  /// rounding.
  Variable step(Tape& tape, std::span<const index> parents, Vec<const std::int32_t> ids) override;

  index size() const { return pool_.size(); }
  /// The sentence of a hypothesis.
  index sentence(index i) const { return sentences_[static_cast<std::size_t>(i)]; }

 private:
  // Keys and values of one layer.
  struct Layer {
    Tensor keys, values;                // [pool, ...] of the target
    Tensor source_keys, source_values;  // [rows of the source, ...]
  };

  void make_room();
  void choose(std::span<const index> parents);
  PackedRows lay_out(Tape& tape) const;

  const TextDecoder& decoder_;
  RowPool pool_;
  std::vector<Layer> layers_;
  std::vector<std::int32_t> source_offsets_;
  std::vector<index> sentences_;  // of the hypotheses
  // The rows of target and source that the hypotheses of a step attend to.
  std::vector<std::int32_t> ids_, offsets_, source_ids_, source_id_offsets_;
};

}  // namespace fovea
