// SPDX-License-Identifier: Apache-2.0
// The steps of recurrent layers through time: the part that cannot be one product over all rows.
// The products with the inputs come before, those of the gradients of weights and inputs after.
//
// With x_t [in] of a sequence, h_t [H] its output, * element by element, sigma the sigmoid:
//
//   RNN (Elman 1990)      h_t = tanh(W_ih x_t + b + W_hh h_{t-1})
//   LSTM (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000)
//                         i, f, g, o = W_ih x_t + b + W_hh h_{t-1}
//                         c_t = sigma(f) c_{t-1} + sigma(i) tanh(g)       h_t = sigma(o) tanh(c_t)
//   GRU (Cho et al. 2014, the reset gate after the product, as in PyTorch)
//                         r, z = sigma(W_ih x_t + b + W_hh h_{t-1})
//                         n = tanh(W_in x_t + b_n + r (W_hn h_{t-1} + b_hn))
//                         h_t = (1 - z) n + z h_{t-1}
//
// with h = c = 0 before the first step. Sequences are packed: rows offsets[s] to offsets[s + 1] are
// sequence s. Weights are in PyTorch's order: blocks of H rows, one for each gate as listed.
//
// Bits: a row depends on its own sequence alone, not on the number of rows, sequences or threads.
#pragma once

#include <cstdint>
#include <span>

#include "fovea/base/context.h"
#include "fovea/base/memory.h"
#include "fovea/base/view.h"
#include "fovea/kernel/gemm.h"
#include "fovea/simd/isa.h"

namespace fovea {

/// SRU has kernels of its own (sru.h): nothing of it is a product within a step.
enum class RecurrentKind : std::uint8_t { kRnn, kGru, kLstm, kSru };

/// The order in which the rows of a sequence are read.
enum class TimeDirection : std::uint8_t { kForward, kReverse };

/// The gates of W_hh: it is [gates H, H]. Not of SRU.
constexpr index recurrent_gates(RecurrentKind kind) {
  return kind == RecurrentKind::kLstm ? 4 : kind == RecurrentKind::kGru ? 3 : 1;
}
/// The blocks of H columns that a row of RecurrentRun::gates has.
constexpr index recurrent_blocks(RecurrentKind kind) { return kind == RecurrentKind::kRnn ? 1 : 4; }

/// W_hh^T in the order in which the forward step reads it: for a block of hidden columns, and for
/// each k, the columns of every gate side by side; the last block padded with zeros.
template <class T>
class PackedGates {
 public:
  /// Packs W_hh [gates H, H]. The memory is reused if it is large enough.
  void pack(const Context& ctx, RecurrentKind kind, Rows<const T> weight);

  const T* data() const { return reinterpret_cast<const T*>(bytes_.get()); }
  RecurrentKind kind() const { return kind_; }
  index hidden() const { return hidden_; }
  Isa isa() const { return isa_; }  ///< the instruction set that it was packed for

 private:
  AlignedBytes bytes_;
  std::size_t capacity_ = 0;
  RecurrentKind kind_ = RecurrentKind::kRnn;
  index hidden_ = 0;
  Isa isa_ = Isa::kScalar;
};

/// One direction of a layer. N rows, S sequences.
template <class T>
struct RecurrentRun {
  RecurrentKind kind = RecurrentKind::kRnn;
  TimeDirection direction = TimeDirection::kForward;
  Vec<const std::int32_t> offsets = {};  ///< [S + 1]
  Rows<const T> weight = {};             ///< W_hh [gates H, H]
  Vec<const T> bias_hn = {};             ///< [H], GRU; or empty
  /// [N, blocks H]. Before: W_ih x + b, in the first blocks (GRU: three of four). After: what
  /// backward reads: LSTM the activated i, f, g, o; GRU r, z, n and W_hn h + b_hn. After backward:
  /// the gradients of the sums before the activation, of W_hn h + b_hn in GRU's fourth block.
  Rows<T> gates = {};
  Rows<T> hidden = {};                               ///< [N, H] the result
  Rows<T> cells = {};                                ///< [N, H] c, LSTM
  Rows<T> cell_tanh = {};                            ///< [N, H] tanh(c), LSTM
  Rows<const T> first_hidden = {}, first_cell = {};  ///< [S, H] before the first step; or empty: 0
};

/// Runs all sequences, with all gates from their inputs in `gates`; packed[i] is that of runs[i].
/// The runs have the same offsets and H and do not share memory. Throws Error(kShape).
template <class T>
void recurrent_forward(const Context& ctx, std::span<const RecurrentRun<T>> runs,
                       std::span<const PackedGates<T>* const> packed);

/// A run after its forward (without first_hidden and first_cell), and its gradient.
template <class T>
struct RecurrentGradient {
  RecurrentRun<T> run;
  Panels<T> weight;  ///< W_hh, Form::kPlain, packed
  Rows<const T> dy;  ///< [N, H] the gradient of `hidden`
};

/// run.gates become their gradients; all else is only read.
template <class T>
void recurrent_backward(const Context& ctx, std::span<const RecurrentGradient<T>> gradients);

/// previous[n] = the hidden row of the step before row n; 0 for the first of a sequence. dW_hh is
/// the product of the gates' gradients with these.
template <class T>
void previous_rows(const Context& ctx, const RecurrentRun<T>& run, Rows<T> previous);

}  // namespace fovea
