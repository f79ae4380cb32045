// SPDX-License-Identifier: Apache-2.0
// The layers of an encoder, which turn the rows of packed sequences into other rows.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "fovea/grad/ops.h"

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

}  // namespace fovea
