// SPDX-License-Identifier: Apache-2.0
// The layers of an encoder, which turn the rows of packed sequences into other rows, and the
// stages that they make up.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/nn/linear.h"

namespace fovea {

/// A layer in generation: it has seen the earlier rows of one sequence, and takes the newest.
class LayerSession {
 public:
  virtual ~LayerSession() = default;
  LayerSession() = default;
  LayerSession(const LayerSession&) = delete;
  LayerSession& operator=(const LayerSession&) = delete;

  /// The results of the next rows [n, in] of the sequence, on a tape for inference. The bits are
  /// those of one call with all rows.
  virtual Variable forward(Tape& tape, Variable x) = 0;
  /// Forgets all rows.
  virtual void clear() = 0;
  /// Most rows that one call of forward takes.
  virtual index most_rows() const { return std::numeric_limits<index>::max(); }
  /// Whether what is kept of a sequence has a fixed size, so that it may go on without end.
  virtual bool endless() const = 0;
};

/// The inputs of a layer beside its rows.
struct EncoderCall {
  const PackedRows& rows;
  DropoutKey key = {};  ///< its `layer` is the number of the first layer
  /// Empty, or an element for each attention of the layer, which is added to.
  std::span<HeadStatistics> seen = {};

  /// The element of a layer with one attention, if there is one.
  HeadStatistics* only_seen() const { return seen.empty() ? nullptr : seen.data(); }
};

class EncoderLayer {
 public:
  virtual ~EncoderLayer() = default;

  /// Columns of the result.
  virtual index width() const = 0;
  /// How many attentions it has whose heads can be observed.
  virtual index attentions() const { return 0; }
  /// How many numbers of layers its dropout masks take.
  virtual std::uint32_t depth() const { return 1; }
  /// x [N, in] -> [N, width].
  virtual Variable forward(Tape& tape, Variable x, const EncoderCall& call) const = 0;
  /// forward() in two steps, of which the first treats each row by itself. Its result for rows that
  /// occur often, as those of tokens do, can be kept: it has first_columns() columns, or the layer
  /// has no such step, and first_columns() is 0.
  virtual index first_columns() const { return 0; }
  virtual Variable first_step(Tape&, Variable x) const { return x; }
  /// For a sum x + p the first step is first_step(x) + first_product(p).
  virtual Variable first_product(Tape&, Variable p) const { return p; }
  virtual Variable forward_from(Tape& tape, Variable stepped, const EncoderCall& call) const {
    return forward(tape, stepped, call);
  }
  /// Generation, if the layer is causal. `capacity` is the number of tokens after which a session
  /// that is not endless begins anew. The layer must outlive the session.
  virtual std::unique_ptr<LayerSession> begin(index capacity) const = 0;
};

/// A session whose layer hands on a state of a fixed size.
template <class Layer, class State>
class StateSession final : public LayerSession {
 public:
  explicit StateSession(const Layer& layer) : layer_(layer) {}

  Variable forward(Tape& tape, Variable x) override { return layer_.forward(tape, x, state_); }
  void clear() override { state_ = {}; }
  bool endless() const override { return true; }

 private:
  const Layer& layer_;
  State state_{};
};

/// The session of a layer that treats each row by itself.
template <class Layer>
class RowSession final : public LayerSession {
 public:
  explicit RowSession(const Layer& layer) : layer_(layer) {}

  Variable forward(Tape& tape, Variable x) override { return layer_.forward(tape, x); }
  void clear() override {}
  bool endless() const override { return true; }

 private:
  const Layer& layer_;
};

// Stages of layers, one after another; the branches of a stage lie side by side.

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
