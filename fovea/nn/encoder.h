// SPDX-License-Identifier: Apache-2.0
// Stages of layers, one after another; the branches of a stage lie side by side.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fovea/nn/encoder_layer.h"
#include "fovea/nn/linear.h"

namespace fovea {

/// Layers one after another.
using EncoderBranch = std::vector<std::unique_ptr<EncoderLayer>>;

/// If it has several branches, each reads the same rows; their results are concatenated, and
/// projected by `join`.
struct EncoderStageLayers {
  std::vector<EncoderBranch> branches;
  std::optional<Linear> join;
};

class EncoderSession;

class Encoder {
 public:
  /// Throws kInternal for a stage without a layer, or with several branches and no join.
  void add(EncoderStageLayers stage);

  index attentions() const { return attentions_; }
  /// `seen` is empty, or has an element for each of attentions().
  Variable forward(Tape& tape, Variable x, const PackedRows& rows, const DropoutKey& key,
                   std::span<HeadStatistics> seen) const;
  /// The first step of the first layer, which treats each row by itself; first_columns() is 0 if it
  /// has none, or if several branches read the rows.
  index first_columns() const;
  Variable first_step(Tape& tape, Variable x) const;
  /// For a sum x + p the first step is first_step(x) + first_product(p).
  Variable first_product(Tape& tape, Variable p) const;
  /// forward() of rows that have had their first step.
  Variable forward_from(Tape& tape, Variable stepped, const PackedRows& rows,
                        const DropoutKey& key = {}, std::span<HeadStatistics> seen = {}) const;
  /// Generation. The encoder must outlive the session.
  EncoderSession begin(index capacity) const;

 private:
  friend class EncoderSession;

  const EncoderLayer& first_layer() const;
  // x has had the first step of this layer, if any.
  Variable run(Tape& tape, Variable x, EncoderCall call, const EncoderLayer* begun) const;

  std::vector<EncoderStageLayers> stages_;
  index attentions_ = 0;
};

/// An encoder that has seen the earlier rows of one sequence.
class EncoderSession {
 public:
  /// The results of the newest rows [n, in], n at most most_rows().
  Variable forward(Tape& tape, Variable x);
  void clear();

  index most_rows() const;
  /// Whether no layer keeps more than a state of a fixed size.
  bool endless() const;

 private:
  friend class Encoder;
  using Sessions = std::vector<std::unique_ptr<LayerSession>>;

  explicit EncoderSession(const Encoder& encoder) : encoder_(&encoder) {}

  const Encoder* encoder_;
  std::vector<std::vector<Sessions>> stages_;  // by stage, branch, layer
};

}  // namespace fovea
