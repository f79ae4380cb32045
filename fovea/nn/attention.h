// SPDX-License-Identifier: Apache-2.0
// Multi-head attention (Vaswani et al. 2017, section 3.2.2): self-attention,
// cross-attention and grouped queries, with or without output projection and biases, with any head
// sizes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "fovea/attention/mask/mask.h"
#include "fovea/kernel/gathered_attention.h"
#include "fovea/nn/kv_cache.h"
#include "fovea/nn/linear.h"
#include "fovea/parts/variant.h"

namespace fovea {

enum class OutputProjection { kNone, kLearned };

/// Whether the queries and keys of each head are normalised before their product, and before rotary
/// positions turn them: by their root mean square, with a learned gain for each
/// column of a head. (Henry et al. 2020 divide by the length; Dehghani et al. 2023, section 2, take
/// a layer norm.)
enum class QkNorm { kNone, kRms };

/// A tensor of a part of attention (parts/part_table.h): trained, or left as it starts.
struct LayerPart {
  enum class Learning { kLearned, kFixed };

  std::string_view tensor;  ///< such as "slopes" or "t5"
  index own_size = 1;       ///< of the axis that it alone has: buckets of t5, s of shaw_k
  Learning learning = Learning::kLearned;
  Parameter* shared =
      nullptr;  ///< the tensor, if something else has it already; else one of its own
};

/// Sizes given as 0 follow from the others.
struct MultiHeadAttentionOptions {
  index width = 0;                 ///< C, the width of the rows of queries
  std::optional<index> context{};  ///< width of the rows of keys and values; none: self-attention
  index heads = 1;                 ///< H
  index kv_heads = 0;              ///< G; 0: H. It divides H: each serves H / G query heads
  index head_dim = 0;              ///< D; 0: C / H, which must then be whole
  index value_dim = 0;             ///< Dv; 0: D
  Biases bias = Biases::kLearned;
  OutputProjection output = OutputProjection::kLearned;
  Init input_init = Init::normal(kInitDeviation);   ///< of the projections to q, k and v
  Init output_init = Init::normal(kInitDeviation);  ///< of the output projection
  BiasStart bias_start = BiasStart::kZeros;
  QkNorm qk_norm = QkNorm::kNone;
  double qk_epsilon = 1e-5;               ///< of that norm
  AttentionVariant variant{};             ///< score, norm, rotary positions, ...
  std::vector<double> rotary_divisors{};  ///< those of the variant, which the layer owns
  std::vector<LayerPart> parts{};
  Mask mask{};
  index window = 0;    ///< how many keys before a query it sees, besides what `mask` says; 0: all
  index dilation = 1;  ///< a query sees every so many-th key; those of the window are as far apart
  index strided = 0;   ///< N: a query sees keys nearer than N, and every N-th beyond them; 0: all
  double dropout = 0;  ///< of the weights
};

/// The options with every size filled in. Throws Error(kShape).
MultiHeadAttentionOptions resolve(MultiHeadAttentionOptions options);

/// The keys [M, G D] and values [M, G Dv] of the sequences that cross-attention attends to.
struct AttentionContext {
  Variable k, v;
  PackedRows rows;
};

/// Queries, keys and values of the same rows.
struct QueryKeyValue {
  Variable q, k, v;
};

/// The rows that single queries attend to in decoding: k [M, G D] and v [M, G Dv], anywhere.
struct GatheredContext {
  const Tensor& k;
  const Tensor& v;
  GatheredRows rows;
};

/// Parameters: self-attention has one projection qkv.weight [H D + G D + G Dv, C]; cross-attention
/// q.weight [H D, C] and kv.weight [G D + G Dv, context]; then out.weight [C, H Dv], biases
/// likewise; with kRms q_norm.weight [D] and k_norm.weight [D]; and the learned parts under the
/// names of their tensors, such as slopes [H].
class MultiHeadAttention {
 public:
  MultiHeadAttention(const MultiHeadAttentionOptions& options, const ParameterScope& scope);

  /// Self-attention of x [N, C] within each sequence -> [N, C], or [N, H Dv] without output
  /// projection. Adds to `seen` if it is given.
  Variable forward(Tape& tape, Variable x, const PackedRows& rows, const DropoutKey& key = {},
                   HeadStatistics* seen = nullptr) const;
  /// The first step of self-attention, which treats each row by itself: x [N, C] ->
  /// [N, first_columns()], queries, keys and values side by side, which `reader` may read.
  Variable first_step(Tape& tape, Variable x, const LinearUse& use = {}) const;
  /// first_step() without biases; for a sum x + p it is first_step(x) + first_product(p).
  Variable first_product(Tape& tape, Variable x) const;
  index first_columns() const;
  /// forward() of rows that have had their first step.
  Variable forward_from(Tape& tape, Variable stepped, const PackedRows& rows,
                        const DropoutKey& key = {}, HeadStatistics* seen = nullptr) const;
  /// Self-attention for generation: x are the newest rows of one sequence. Their keys and values
  /// are appended to the cache.
  Variable forward(Tape& tape, Variable x, KvCache& cache) const;
  /// Cross-attention: the queries come from x [N, C], keys and values from context [M, context].
  Variable forward(Tape& tape, Variable x, const PackedRows& rows, Variable context,
                   const PackedRows& context_rows, const DropoutKey& key = {}) const;
  /// Cross-attention in two steps, for a context that is attended to more than once. Adds to `seen`
  /// if it is given.
  AttentionContext context_of(Tape& tape, Variable context, const PackedRows& rows) const;
  Variable forward(Tape& tape, Variable x, const PackedRows& rows, const AttentionContext& context,
                   const DropoutKey& key = {}, HeadStatistics* seen = nullptr) const;

  /// Self-attention for decoding, in two steps: the queries, keys and values of the newest rows x
  /// [N, C] of N sequences; and, when keys and values have been put where `context` finds them, the
  /// result [N, C]. The queries are of the last rows that they see.
  QueryKeyValue project(Tape& tape, Variable x) const { return split(tape, first_step(tape, x)); }
  Variable attend_gathered(Tape& tape, Variable q, const GatheredContext& context) const;
  /// Cross-attention for decoding: the queries come from x [N, C].
  Variable forward_gathered(Tape& tape, Variable x, const GatheredContext& context) const;
  /// Whether keys are gathered by a kernel without a copy: there is nothing but scaled dot products
  /// of rows under a softmax.
  bool gathers_in_place() const;

  const MultiHeadAttentionOptions& options() const { return options_; }
  KvCacheOptions cache_options(index capacity) const;

 private:
  // The tensor of a part: a parameter, or a constant.
  struct PartTensor {
    std::size_t number;
    Parameter* learned;
    Tensor fixed;
  };

  void add_projections(const ParameterScope& scope);
  void add_part(const LayerPart& part, const ParameterScope& scope);
  QueryKeyValue split(Tape& tape, Variable stepped) const;
  Variable normalise_queries(Tape& tape, Variable q) const;
  Variable normalise_keys(Tape& tape, Variable k) const;
  AttentionOptions call_options(const DropoutKey& key) const;
  Variable attend(Tape& tape, AttentionOperands operands, AttentionOptions options) const;
  Variable gather_in_place(Tape& tape, Variable q, const GatheredContext& context) const;
  Variable gather_copies(Tape& tape, Variable q, const GatheredContext& context) const;

  MultiHeadAttentionOptions options_;
  std::optional<Linear> qkv_, q_, kv_, out_;
  Parameter* q_gain_ = nullptr;  // of QkNorm::kRms
  Parameter* k_gain_ = nullptr;
  std::vector<PartTensor> parts_;
  DType dtype_;
  Mask mask_;
};

}  // namespace fovea
