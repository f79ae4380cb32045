// SPDX-License-Identifier: Apache-2.0
// Adapters of low rank (LoRA: Hu et al. 2021, "LoRA: low-rank adaptation of large language models",
// section 4.1): of a weight W that is frozen, V = W + scale B A is used, and A and B are trained.
// With magnitudes m it is m V / |V|, row by row, and m is trained, too (DoRA: Liu et al. 2024).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/grad/parameter.h"
#include "fovea/nn/module.h"

namespace fovea {

/// Rows of a weight that get an adapter.
struct LowRankTarget {
  std::string name;  ///< of the adapter: its parameters are NAME.lora_A.weight, NAME.lora_B.weight
                     ///< and, with magnitudes, NAME.lora_magnitude_vector
  Parameter* weight = nullptr;  ///< [out, in]
  index first = 0, rows = 0;    ///< of the weight
};

/// Whether adapters have magnitudes.
enum class Magnitudes { kNone, kLearned };

struct LowRankOptions {
  index rank = 8;
  double scale = 2;    ///< alpha / rank, or alpha / sqrt(rank)
  double dropout = 0;  ///< in training, of what each A reads
  Magnitudes magnitudes = Magnitudes::kNone;
  std::uint64_t seed = 1;
  ParameterMemory memory = ParameterMemory::kAllocate;  ///< of A and B
};

/// Adapters of some weights of a model, which must outlive them. While they live, these weights
/// count as W + scale B A wherever linear() reads them, and all of the model is frozen. When they
/// end, the weights are W again, and what they froze is free.
class LowRankAdapters {
 public:
  /// Freezes all of `model`, and gives each target an A [rank, in], uniform as PyTorch's Linear
  /// starts (PEFT's choice), a B [rows, rank] of zeros, and magnitudes [rows], if it has some, that
  /// are the norms of the rows: so the weights count as they did. Throws kShape for rows that the
  /// weight does not have, and kUsage for rows with magnitudes that another adapter changes.
  LowRankAdapters(std::span<Parameter* const> model, std::span<const LowRankTarget> targets,
                  const LowRankOptions& options);
  ~LowRankAdapters();
  LowRankAdapters(const LowRankAdapters&) = delete;
  LowRankAdapters& operator=(const LowRankAdapters&) = delete;

  /// A, B and magnitudes of each target, in their order.
  std::span<Parameter* const> parameters() const { return set_.parameters(); }

  /// Makes the values of the weights what they count as: they stay so. The adapters change them no
  /// more. No weight may lie in blocks. The bits do not depend on the number of threads.
  void merge(const Context& context);

 private:
  void add_magnitudes(LowRank& change, const LowRankTarget& target);
  bool owns(const LowRank& change) const;
  void remove_changes();

  ParameterSet set_;
  std::vector<Parameter*> adapted_;
  std::vector<Parameter*> frozen_;  // by these adapters
};

}  // namespace fovea
