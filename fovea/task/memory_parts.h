// SPDX-License-Identifier: Apache-2.0
// The memory of every kind of training, from what its model and data take.
#pragma once

#include <span>
#include <vector>

#include "fovea/model/encoder_sizes.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/options.h"

namespace fovea {

/// For code and tables of kernels that have not run yet, and for the rounding of the allocator.
inline constexpr double kProcessBytes = 6 << 20;
/// Large buffers end inside a page of 2 MB, and the last block of an arena is not full.
inline constexpr double kRounding = 1.02;

/// Bytes of the parts of a training.
struct TrainingBytes {
  double model = 0;      ///< values of the parameters, and fixed tables
  double values = 0;     ///< values of the parameters alone
  double frozen = 0;     ///< of these, the values that are not trained and have no moments
  double gradients = 0;  ///< of an update, and what the optimizer keeps besides the moments
  double passes = 0;     ///< tape, packed copies and scratch, at their largest
  double batches = 0;    ///< of an update
  double records = 0;    ///< history, and the files of the vocabulary
};

/// The most bytes that this process will have resident while it trains. `checkpoint_bytes`: the
/// part of the memory held now that is the checkpoint to resume from.
double peak_of_training(const TrainingBytes& bytes, index checkpoint_bytes);

/// A table, of which an update uses some rows.
struct UsedTable {
  index rows = 0, width = 0;
  index used = 0;       ///< at most
  bool frozen = false;  ///< has no gradient
};

/// Bytes of the gradients of an update: of a table those of its used rows alone.
double gradient_bytes(index parameters, std::span<const UsedTable> tables);

/// How many heads of attention are observed.
struct ObservedHeads {
  index layers = 0;
  index heads = 0;  ///< of all these layers
};

/// The observed heads of all layers with attention.
ObservedHeads observed_heads(const std::vector<SizedStage>& stages);

/// Bytes of the history of so many updates.
double record_bytes(const TrainOptions& recipe, index updates, ObservedHeads observed);

/// Bytes of the files of a tokenizer of words, or of none.
double vocabulary_bytes(const Tokenizer* tokenizer);

}  // namespace fovea
