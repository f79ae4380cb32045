// SPDX-License-Identifier: Apache-2.0
// Every differentiable operation. Each checks its shapes, computes its result at once and records
// its gradient. All take float32 or float64; the operands of one op have the same type, except
// where ForReader says otherwise. An optional operand that is not used is a default-constructed
// Variable.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "fovea/attention/mask/mask.h"
#include "fovea/base/random.h"
#include "fovea/grad/packed_rows.h"
#include "fovea/grad/tape.h"
#include "fovea/kernel/convolution.h"
#include "fovea/kernel/crf.h"
#include "fovea/kernel/cross_entropy.h"
#include "fovea/kernel/elementwise.h"
#include "fovea/kernel/embedding.h"
#include "fovea/kernel/norm.h"
#include "fovea/kernel/recurrent.h"
#include "fovea/parts/variant.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

// ---- products: ops/linear.cc

/// Which ops may read a result.
enum class ForReader {
  kAny,
  /// The x of one linear(); or, of a result without an activation, one attention() for which
  /// reads_rounded() is true, perhaps behind split_columns(). Another reader whose gradient would
  /// be wrong is an error in backward. Where products round to bfloat16, the result and its
  /// gradient are then bfloat16. That changes no bit of what follows, except the gradient of the
  /// bias under an activation, whose terms are rounded. The product that makes the gradient of the
  /// result also multiplies it by f'.
  kProduct,
};

/// What names the masks of dropout in a pass: the update, and the rows.
struct MaskNames {
  DropoutKey key = {};  ///< without `layer`
  Vec<const SampleRow> rows = {};
};

/// How a product is used.
struct LinearUse {
  Activation activation = Activation::kNone;
  ForReader reader = ForReader::kAny;
  std::optional<MaskNames> names = {};  ///< for adapters of the weight that drop what they read
};

/// f(x W^T + b): x [N, in], weight [out, in], bias [out] (optional) -> [N, out]. Adapters of the
/// weight (Parameter::changes) are added. Throws kShape in training if they drop and rows have no
/// names.
Variable linear(Tape& tape, Variable x, Variable weight, Variable bias, const LinearUse& use);
Variable linear(Tape& tape, Variable x, Variable weight, Variable bias = {},
                Activation f = Activation::kNone, ForReader reader = ForReader::kAny);

/// For linear(): (m / norm) u + b, of the columns of u [N, out] that changes of the weight with
/// magnitudes make, u + b elsewhere; bias [out] (optional). The norms count as constants.
Variable scaled_by_magnitudes(Tape& tape, Variable u, const Parameter& weight, Variable bias);

// ---- convolution over time: ops/convolution.cc

/// The rows that the next tokens of one sequence still see, for generation with kCausal. A sequence
/// in several calls has the same bits as in one.
struct ConvolutionState {
  Tensor rows{};  ///< [(width - 1) dilation, in], the last ones; no memory: nothing came before

  void clear() { rows = {}; }
};

struct ConvolutionOptions {
  index width = 3;
  Padding padding = Padding::kSame;
  index dilation = 1;
  Activation activation = Activation::kNone;
  /// For inference with kCausal: x continues the one sequence that the state has seen. It must
  /// outlive the call of convolution(), which updates it.
  ConvolutionState* state = nullptr;
};

/// y_t = f(bias + sum over j of W_j x_(t - before + j dilation)) of each sequence, x = 0 beyond its
/// ends: x [N, in], weight [out, width in], bias [out] (optional) -> [N, out]. Columns j in to
/// (j + 1) in of the weight are W_j: the weight [out, in, width] of PyTorch's Conv1d, transposed to
/// [out, width, in]. That shape as a parameter, [out width, in] on the tape, is taken as well.
/// `before` is (width - 1) dilation with kCausal, half of that, rounded down, with kSame.
Variable convolution(Tape& tape, Variable x, Variable weight, Variable bias, const PackedRows& rows,
                     const ConvolutionOptions& options);
/// a * sigmoid(b) for x = [a, b]: [N, 2C] -> [N, C] (Dauphin et al. 2017).
Variable glu(Tape& tape, Variable x);

// ---- one row for each sequence: ops/pooling.cc. An empty sequence gives zeros.

/// The maximum of each column over the rows of each sequence: x [N, C] -> [sequences, C]. Among
/// equal rows the first gets the gradient.
Variable max_over_time(Tape& tape, Variable x, const PackedRows& rows);
/// x with zeros in the rows whose window of `width` rows, as `kSame` has it, reaches beyond the
/// ends of its sequence: of ReLUs, max_over_time() then takes whole windows alone, as torch's
/// Conv1d without padding has them. A sequence shorter than the window keeps its rows.
Variable whole_windows(Tape& tape, Variable x, index width, const PackedRows& rows);
/// The mean of each column.
Variable mean_over_time(Tape& tape, Variable x, const PackedRows& rows);
/// The first row.
Variable first_over_time(Tape& tape, Variable x, const PackedRows& rows);
/// The last row.
Variable last_over_time(Tape& tape, Variable x, const PackedRows& rows);
/// The sum over n of softmax_n(query . x_n / sqrt(C)) x_n: query [1, C]. It is attention() with one
/// query for each sequence.
Variable attention_over_time(Tape& tape, Variable x, Variable query, const PackedRows& rows);

// ---- tables: ops/embedding.cc

/// Rows of a table [V, C], one for each id.
struct TableRows {
  Variable table;
  Vec<const std::int32_t> ids;           ///< [N], each in [0, V); must outlive the step
  std::optional<std::int32_t> frozen{};  ///< a row that gets no gradient, as PyTorch's padding_idx
  double scale = 1;
};

/// Rows of `tokens`, plus rows of `positions` if given, each times its scale -> [N, C].
Variable embedding(Tape& tape, const TableRows& tokens, const TableRows& positions = {});

/// Bags of rows of a table [V, C].
struct TableBags {
  Variable table;
  Vec<const std::int32_t> ids;      ///< [N], each in [0, V); must outlive the step, as the offsets
  Vec<const std::int32_t> offsets;  ///< [B + 1], from 0 to N: bag b is ids[offsets[b]] to the next
  BagMode mode = BagMode::kSum;
  std::optional<std::int32_t> padding{};  ///< an id that does not count
};

/// The sum or the mean of the rows of each bag -> [B, C] (kernel/embedding.h). ops/embedding_bag.cc
Variable embedding_bag(Tape& tape, const TableBags& bags);

// ---- norms: ops/norm.cc

/// Normalise over the columns of each row; gain and bias [C], each optional.
Variable layer_norm(Tape& tape, Variable x, Variable gain, Variable bias,
                    const LayerNormOptions& options = {});
Variable rms_norm(Tape& tape, Variable x, Variable gain, double epsilon = 1e-5);
/// Normalises each of `heads` groups of columns by itself: x [N, heads D]; gain [D], which all
/// groups share, is optional.
Variable rms_norm_heads(Tape& tape, Variable x, Variable gain, index heads, double epsilon = 1e-5);

// ---- vectors and their cosines: ops/cosines.cc

/// The first `columns` columns of each row (0: all), divided by their length, or by 1e-12 if that
/// is less (torch.nn.functional.normalize): [N, C] -> [N, columns].
Variable unit_rows(Tape& tape, Variable x, index columns = 0);
/// scale x log(1 + the sum of exp((x_i - x_j) / temperature) over all i and j with scores[i] <
/// scores[j]) -> [1, 1]: x [N, 1], the cosines of N pairs, and the scores [N] that they should
/// have the order of (CoSENT, Su 2022). Scores are read at once.
Variable cosent_loss(Tape& tape, Variable x, Vec<const float> scores, double temperature,
                     double scale = 1);

// ---- element by element: ops/elementwise.cc

Variable activation(Tape& tape, Activation f, Variable x);
/// a + b, of one shape.
Variable add(Tape& tape, Variable a, Variable b);
/// a * b, of one shape.
Variable multiply(Tape& tape, Variable a, Variable b);
/// factor * x.
Variable scale(Tape& tape, Variable x, double factor);
/// C tanh(x / C), for a cap C over 0 (Gemma Team 2024, "Gemma 2", section 2.3).
Variable softcap(Tape& tape, Variable x, double cap);

// ---- dropout: ops/dropout.cc

/// Inverted dropout; the mask is a function of the key and of each row's (sample, position).
struct DropoutOptions {
  double p = 0;
  DropoutKey key;
};

/// Returns x itself if p is 0 or the tape is in inference mode.
Variable dropout(Tape& tape, Variable x, const DropoutOptions& options, const PackedRows& rows);
/// x + dropout(f): the residual connection.
Variable residual(Tape& tape, Variable x, Variable f, const DropoutOptions& options = {},
                  const PackedRows& rows = {});

// ---- columns: ops/columns.cc

/// Splits the columns of x: one view into x's memory for each width. The widths sum to x's width.
std::span<const Variable> split_columns(Tape& tape, Variable x, std::span<const index> widths);
/// The operands side by side: [N, C1], [N, C2], ... -> [N, C1 + C2 + ...].
Variable concat_columns(Tape& tape, std::span<const Variable> parts);

// ---- rows: ops/rows.cc

/// x, but the first row of each sequence is that row of `by`, which has x's shape.
Variable replace_first_rows(Tape& tape, Variable x, Variable by, const PackedRows& rows);
/// Rows 2 s and 2 s + 1 are u and v of pair s; its row is [u, v, |u - v|, u * v]: [2 S, C] ->
/// [S, 4 C] (Conneau et al. 2017, section 3.1). Where u = v the gradient of |u - v| is 0.
Variable pair_features(Tape& tape, Variable x);
/// The operands one below the other: [N1, C], [N2, C], ... -> [N1 + N2 + ..., C].
Variable stack_rows(Tape& tape, std::span<const Variable> parts);

// ---- attention: ops/attention.cc

/// Statistics of the weights of each head, before dropout, over the queries of all calls that add
/// to it. Entropy and distance exist for softmax only; else they stay empty.
struct HeadStatistics {
  index queries = 0;
  std::vector<double> entropy = {};  ///< [H] sum over queries of the entropy, in nats
  /// [H] the largest score, after bias and mask; -infinity if no query keeps a key, NaN if a score
  /// is NaN or has overflowed
  std::vector<double> max_logit = {};
  std::vector<double> distance = {};  ///< [H] sum over queries of the mean distance of their keys

  /// Whether to see the keys, too. It takes a second pass over the scores.
  bool sees_keys = false;
  /// [H, M] with sees_keys, of the last call alone: the weight that each key receives, summed over
  /// the queries of its sequence
  std::vector<double> received = {};
  bool is_across = false;  ///< set by a layer that attended along the other axis (RowsAcross)

  /// Whether to keep the weights, too: H N M numbers.
  bool keeps_weights = false;
  /// [H, N, M] with keeps_weights, of the last call alone: row by row, 0 where masked and in
  /// columns of other sequences
  std::vector<float> weights = {};
};

/// The variant of attention; see attention/attention.h for the formula.
struct AttentionOptions {
  index heads = 1;
  index kv_heads = 0;          ///< 0: as many as heads
  AttentionVariant variant{};  ///< score, norm, rotary positions, ...
  const Mask* mask = nullptr;  ///< null: no mask; must outlive the step
  DropoutOptions dropout{};    ///< of the attention weights
  /// If given, the forward adds what it sees; must outlive the call of attention().
  HeadStatistics* statistics = nullptr;
  ForReader reader = ForReader::kAny;  ///< of the result, which is rounded only if q, k and v are
};

/// q [N, H D], k [M, G D], v [M, G Dv], with the heads side by side in a row; all three may be
/// columns of one projection. `queries` and `keys` say which rows form a sequence. `parts` are the
/// tensors of parts/part_table.h, learned or constant, by part_number(); a vector is one row.
struct AttentionOperands {
  Variable q, k, v;
  PackedRows queries, keys;
  std::array<Variable, kMostAttentionParts> parts{};
};

/// -> [N, H Dv].
Variable attention(Tape& tape, const AttentionOperands& in, const AttentionOptions& options);
/// Whether attention() of q, k and v made ForReader::kProduct is possible: the scores are dot
/// products, and weights are normalised.
bool reads_rounded(const AttentionVariant& variant);

// ---- recurrent layers: ops/recurrent.cc

/// The weights of one direction, in PyTorch's order of gates: LSTM i f g o, GRU r z n. For an SRU
/// (kernel/sru.h) weight_ih has the blocks W, W_f, W_r and, where in != H, that of the highway;
/// weight_hh is [2, H], the vectors v_f and v_r; the bias is [2 H], b_f and b_r.
struct RecurrentWeights {
  Variable weight_ih;  ///< [gates H, in]
  Variable weight_hh;  ///< [gates H, H]
  Variable bias{};     ///< [gates H], optional: PyTorch's b_ih + b_hh
  Variable bias_hn{};  ///< [H], optional, GRU only: beside W_hn h, which the reset gate multiplies
};

/// The state that a layer carries from one call to the next, [sequences, H] each: `hidden` (not of
/// an SRU), `cell` (of LSTM and SRU). Undefined: zeros.
struct RecurrentState {
  Tensor hidden, cell;
};

struct RecurrentOptions {
  RecurrentKind kind = RecurrentKind::kRnn;
  /// In inference, of one direction: the state before the first row of each sequence. It is
  /// replaced by that after the last row. A sequence in several calls has the same bits as in one.
  RecurrentState* state = nullptr;
};

/// h of every row (kernel/recurrent.h, kernel/sru.h), from 0 at the first row of each sequence: x
/// [N, in] -> [N, directions H], the directions side by side. There are one or two: forward, and
/// from the last row to the first.
Variable recurrent(Tape& tape, Variable x, std::span<const RecurrentWeights> directions,
                   const PackedRows& rows, const RecurrentOptions& options);

// ---- softmax and losses: ops/loss.cc

/// Softmax of each row.
Variable softmax(Tape& tape, Variable x);
/// scale x the sum of -log softmax(logits[n])[targets[n]] over rows with a target -> [1, 1]. The
/// targets may have weights and a smoothing (kernel/cross_entropy.h): with scale 1 /
/// weigh_targets() it is PyTorch's mean.
Variable cross_entropy(Tape& tape, Variable logits, const Targets& targets, double scale = 1);
struct LinearLossOptions {
  double scale = 1;
  double softcap = 0;  ///< of the logits, as in softcap(); 0: none
};

/// As cross_entropy(linear(x, weight, bias)), without holding the logits of all rows at once. It
/// computes its gradients together with the loss, so the gradient of its result in backward must be
/// 1: pass any factor as `scale`.
Variable linear_cross_entropy(Tape& tape, Variable x, Variable weight, Variable bias,
                              const Targets& targets, const LinearLossOptions& options = {});
/// scale x the sum over all n and k of the loss of logit [n, k], whose target is in [0, 1]
/// (kernel/cross_entropy.h) -> [1, 1]. Targets [N, K] have no gradient. With scale 1 / (N K)
/// it is PyTorch's mean.
Variable binary_cross_entropy(Tape& tape, Variable logits, Variable targets,
                              const BinaryWeights& weights = {}, double scale = 1);
/// scale x the sum of (x - target)^2 over all elements -> [1, 1].
Variable squared_error(Tape& tape, Variable x, Variable targets, double scale = 1);

// ---- conditional random fields: ops/loss.cc

/// The scores of a linear chain (kernel/crf.h), and which paths there are.
struct CrfVariables {
  Variable transitions;     ///< [K, K]
  Variable start, end;      ///< [K] each
  CrfAllowed allowed = {};  ///< read at once, as the tags
};

/// scale x the sum over sequences of -log p(tags of the sequence) -> [1, 1]: emissions [N, K], tags
/// [N]. Error(kOptionValue) for tags that are not allowed.
Variable crf_loss(Tape& tape, Variable emissions, const CrfVariables& scores,
                  Vec<const std::int32_t> tags, const PackedRows& rows, double scale = 1);

// ---- reductions: ops/reduce.cc

/// Over all elements -> [1, 1].
Variable sum(Tape& tape, Variable x);
Variable mean(Tape& tape, Variable x);

}  // namespace fovea
