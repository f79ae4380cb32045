// SPDX-License-Identifier: Apache-2.0
// Batches of tokens: sequences packed one after another, without padding.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// The target of a position that adds nothing to the loss.
inline constexpr token kIgnoredTarget = -1;

/// n sequences of N tokens in all. Sequence s is rows offsets[s] .. offsets[s + 1].
struct Batch {
  std::vector<token> ids;                ///< [N]
  std::vector<token> targets;            ///< [N], the token that follows, or kIgnoredTarget
  std::vector<std::int32_t> offsets{0};  ///< [n + 1], ascending from 0 to N
  std::vector<std::uint64_t> samples;    ///< [n], the sequence's own number: dropout depends on it

  index tokens() const { return static_cast<index>(ids.size()); }
  index sequences() const { return static_cast<index>(samples.size()); }
  /// The number of targets that are not ignored: the loss is the mean over these.
  index target_count() const;
};

/// Targets at positions start + 1 .. start + targets of a stream, each predicted from what lies
/// before it, from `start` on.
struct Slice {
  index start;
  index targets;
};

/// A stream of tokens and the sequences cut from it.
struct Sequences {
  std::vector<token> stream = {};
  std::vector<Slice> slices = {};
  index single_lines = 0;     ///< lines of one token, which are left out: they have no target
  index truncated_lines = 0;  ///< lines of which tokens are dropped, for CutOptions::max_length

  index target_count() const;
  /// The most tokens that `n` of the sequences can have together.
  index largest(index n) const;
};

/// Adds the sequence of a slice to the batch. Throws kShape if the slice leaves the stream,
/// kOptionValue if the batch would have 2^31 tokens or more.
void append(Batch& batch, const std::vector<token>& stream, Slice slice, std::uint64_t sample);

/// A data set in order, `batch_size` sequences at a time (the last batch may have fewer); samples
/// are numbered from 0.
class EvaluationBatches {
 public:
  EvaluationBatches(Sequences sequences, index batch_size);

  index size() const;
  Batch operator[](index i) const;
  /// The number of tokens of the largest batch.
  index largest_batch() const { return sequences_.largest(batch_size_); }
  index batch_size() const { return batch_size_; }
  const Sequences& sequences() const { return sequences_; }

 private:
  Sequences sequences_;
  index batch_size_;
};

/// Bytes of text that the targets of a batch stand for, given Tokenizer::bytes_predicted.
index bytes_predicted(const Batch& batch, const std::vector<std::int32_t>& bytes_of_token);

}  // namespace fovea
