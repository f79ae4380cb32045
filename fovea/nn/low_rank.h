// SPDX-License-Identifier: Apache-2.0
// Adapters of low rank (LoRA: Hu et al. 2021, "LoRA: low-rank adaptation of large language models",
// section 4.1): of a weight W0 that is frozen, W0 + scale B A is used, and A and B are trained.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/grad/parameter.h"
#include "fovea/nn/module.h"

namespace fovea {

/// Rows of a weight that get an adapter.
struct LowRankTarget {
  std::string
      name;  ///< of the adapter: its parameters are NAME.lora_A.weight and NAME.lora_B.weight
  Parameter* weight = nullptr;  ///< [out, in]
  index first = 0, rows = 0;    ///< of the weight
};

struct LowRankOptions {
  index rank = 8;
  double scale = 2;  ///< alpha / rank, or alpha / sqrt(rank)
  std::uint64_t seed = 1;
};

/// Adapters of some weights of a model, which must outlive them. While they live, the values of
/// these weights are W0 + scale B A, and all of the model is frozen. The values stay so when they
/// end; what they froze is free again.
class LowRankAdapters {
 public:
  /// Freezes all of `model`, and gives each target an A [rank, in], uniform as PyTorch's Linear
  /// starts (PEFT's choice), and a B [rows, rank] of zeros. Throws kShape for rows that the weight
  /// does not have.
  LowRankAdapters(std::span<Parameter* const> model, std::span<const LowRankTarget> targets,
                  const LowRankOptions& options);
  ~LowRankAdapters();
  LowRankAdapters(const LowRankAdapters&) = delete;
  LowRankAdapters& operator=(const LowRankAdapters&) = delete;

  /// A and B of each target, in their order.
  std::span<Parameter* const> parameters() const { return set_.parameters(); }

  /// Sets the values of the weights from W0, A and B, if these have changed: call it after an
  /// update. The bits do not depend on the number of threads.
  void merge(const Context& context);

 private:
  struct Adapted {
    Parameter* weight;
    Tensor start;  // W0
  };

  ParameterSet set_;
  std::vector<Adapted> adapted_;
  std::vector<Parameter*> frozen_;       // by these adapters
  std::optional<std::uint64_t> merged_;  // the sum of the versions of A and B, last time
};

}  // namespace fovea
