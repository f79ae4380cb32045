// SPDX-License-Identifier: Apache-2.0
// A recurrent decoder with attention (Bahdanau, Cho, Bengio 2015, "Neural machine translation by
// jointly learning to align and translate", appendix A).
//
// The source of a sentence has rows h_j; y_i is the embedding of token i of its target:
//
//   s_0 = tanh(W_s h_1 + b_s)
//   c_i = sum_j a_ij h_j,  a_i = softmax_j(v . tanh(W_a s_{i-1} + U_a h_j))
//   s_i = GRU([y_i; c_i], s_{i-1})           the reset gate after the product, as in PyTorch
//   o_i = tanh(W_o [s_i; c_i; y_i] + b_o)    (the paper takes maxout)
//
// Attention reads the state before it, so nothing is computed before it: a step is a call of the
// operator for all sentences that are not over.
#pragma once

#include <vector>

#include "fovea/nn/linear.h"

namespace fovea {

struct AttentiveGruOptions {
  index in = 0;      ///< C, the width of the rows of the target
  index source = 0;  ///< W, that of the rows of the source
  index hidden = 0;  ///< H, that of the state, and of the scores
  index out = 0;     ///< the width of o
  Biases bias = Biases::kLearned;
};

/// Parameters: start.* [H, W], query.weight [H, H], key.* [H, W], score_v [1, H], input.* [3 H, C],
/// context.weight [3 H, W], hidden.* [3 H, H] (gates in the order r z n), out.* [out, H + W + C].
/// They start as PyTorch's.
class AttentiveGru {
 public:
  AttentiveGru(const AttentiveGruOptions& options, const ParameterScope& scope);

  /// The keys and rows of the source that every step reads.
  struct Source {
    Variable keys;  ///< [M, H]
    Variable rows;  ///< [M, W]
    PackedRows sentences;
  };
  Source read(Tape& tape, Variable rows, const PackedRows& sentences) const;

  /// o [N, out] of the rows y [N, C] of all targets, of which there are as many as sentences. Adds
  /// to `seen` if it is given.
  Variable forward(Tape& tape, Variable y, const PackedRows& rows, const Source& source,
                   HeadStatistics* seen = nullptr) const;

  /// s_0 [sentences, H].
  Variable start(Tape& tape, const Source& source) const;
  struct Step {
    Variable state, out;
  };
  /// For decoding: a token more of n targets, `rows` saying which belong to which sentence.
  Step step(Tape& tape, Variable y, Variable state, const Source& source,
            const PackedRows& rows) const;

  const AttentiveGruOptions& options() const { return options_; }

 private:
  struct Moved {
    Variable state, context;
  };
  Moved move(Tape& tape, Variable gates, Variable state, const Source& source,
             const PackedRows& rows, HeadStatistics* seen) const;
  Variable output(Tape& tape, Variable state, Variable context, Variable y) const;

  AttentiveGruOptions options_;
  Linear start_, query_, key_;
  Parameter* score_;
  Linear input_, context_, hidden_, out_;
};

}  // namespace fovea
