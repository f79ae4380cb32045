// SPDX-License-Identifier: Apache-2.0
// Predicts the scratch memory that the layers of a model take, and what that has in common with
// the memory of a tape.
#pragma once

#include <vector>

#include "fovea/grad/tape.h"
#include "fovea/model/encoder_sizes.h"

namespace fovea {

/// The batch for which memory is predicted.
struct TapeLoad {
  index tokens = 0;
  TapeMode mode = TapeMode::kTrain;
  bool observes = false;                      ///< what the heads look like (LossOptions::attention)
  index sequences = 0;                        ///< at most; 0: each has `block` tokens
  Precision precision = Precision::kFloat32;  ///< of the products
};

/// Whether results that one product alone reads are kept as it rounds them (ForReader::kProduct).
bool keeps_rounded(const TapeLoad& load);
/// The same of q, k and v of a layer, and of what its output projection reads.
bool attention_keeps_rounded(const EncoderConfig& config, const SizedLayer& layer,
                             const TapeLoad& load);

/// Bytes of scratch memory that the layers take, of each thread and of a call. Sequences have
/// `block` tokens.
struct EncoderScratch {
  double of_thread = 0, of_call = 0;
};
/// Bytes of each thread beside these, for copies of tiles in products and in attention, and for the
/// stack. Most takes A^T B with AVX2 where its width is no whole number of vectors: 384 x 384
/// values of A, 64 x 384 of B, and 384 x 1024 sums.
inline constexpr double kThreadScratch = 2.5 * (1 << 20);

EncoderScratch encoder_scratch(const EncoderConfig& config, const std::vector<SizedStage>& stages,
                               const TapeLoad& load);

namespace detail {

/// Rows that a recurrent layer keeps are an odd number of cache lines apart: so many columns.
double odd_lines(double columns);
/// Gates and, of LSTM and SRU, cells.
double gate_columns(const SizedLayer& layer);
/// The columns of the product of a convolution.
index columns_made(const SizedLayer& layer);
/// Whether a convolution takes two rows at a time (kernel/winograd.h).
bool is_computed_by_pairs(const SizedLayer& layer, const TapeLoad& load);
/// Rows of zeros that a convolution puts around the sequences, for each token.
double gap_rows(const EncoderConfig& config, const EncoderLayerSpec& spec, const TapeLoad& load);

/// Calls f(layer, number among those of its spec) for every layer. All but the first of a spec read
/// the columns that it makes.
template <class F>
void for_each_layer(const std::vector<SizedStage>& stages, F&& f) {
  for (const SizedStage& stage : stages) {
    for (SizedLayer layer : stage.branches) {
      for (index n = 0; n < layer.spec.layers; ++n) {
        f(layer, n);
        layer.in = layer.out;
        layer.projected_once = false;
      }
    }
  }
}

}  // namespace detail

}  // namespace fovea
