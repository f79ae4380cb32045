// SPDX-License-Identifier: Apache-2.0
// The decoder that writes the target of a translator: a Transformer (text_decoder.h) or a recurrent
// network with attention (recurrent_decoder.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "fovea/grad/ops.h"
#include "fovea/grad/parameter.h"

namespace fovea {

/// Rows of the source [M, W] and which of them are a sentence.
struct SourceRows {
  Variable rows;
  PackedRows sentences;
};

struct TargetCall {
  const PackedRows& rows;               ///< of the target: as many sentences as the source has
  DropoutKey key = {};                  ///< `layer` is not read
  std::span<HeadStatistics> seen = {};  ///< empty, or [attentions()]
};

/// The values of a variable, in memory of their own, for the steps to come.
inline Tensor copy_of(Variable x) {
  Tensor copy = Tensor::empty({x.rows(), x.columns()}, x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<const T> from = x.value<T>();
    for (index n = 0; n < from.rows; ++n) std::copy_n(from[n], from.columns, copy.rows<T>()[n]);
  });
  return copy;
}

/// Hypotheses of many sentences, a token more of each in every step. Belongs to one thread.
class Decoding {
 public:
  virtual ~Decoding() = default;

  /// Begins with a hypothesis for each sentence of the source, in which nothing is written.
  virtual void begin(Tape& tape, const SourceRows& source) = 0;
  /// Hypothesis i becomes what parents[i] was, with ids[i] behind it. Returns the rows [N, width]
  /// that predict what follows.
  virtual Variable step(Tape& tape, std::span<const index> parents,
                        Vec<const std::int32_t> ids) = 0;
};

class TargetDecoder {
 public:
  virtual ~TargetDecoder() = default;

  /// The rows [N, width] of the tokens of the target, each of which sees those before it and all of
  /// its source.
  virtual Variable forward(Tape& tape, Vec<const std::int32_t> ids, const SourceRows& source,
                           const TargetCall& call) const = 0;
  /// The decoder must outlive it, and not change between two calls of begin().
  virtual std::unique_ptr<Decoding> decoding() const = 0;

  /// The table of the tokens.
  virtual Parameter& tokens() const = 0;
  virtual index attentions() const = 0;
  /// Which of these is the attention of a layer to the source.
  virtual index cross_attention(index layer) const = 0;
};

}  // namespace fovea
