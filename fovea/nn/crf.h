// SPDX-License-Identifier: Apache-2.0
// A linear-chain CRF as the last layer of a tagger (kernel/crf.h): it turns the scores of the tags
// of each row into a loss, or into tags.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/kernel/crf.h"
#include "fovea/nn/module.h"

namespace fovea {

/// Which tags may follow each other, as the layer keeps it; empty vectors: all may.
struct CrfRules {
  std::vector<std::uint8_t> transitions = {};  ///< [K K]: [a K + b], b right after a
  std::vector<std::uint8_t> start = {};        ///< [K]
  std::vector<std::uint8_t> end = {};          ///< [K]

  CrfAllowed allowed() const { return {transitions, start, end}; }
};

/// Parameters: transitions [K, K], start [K], end [K]; zeros at the start, without weight decay.
/// Entries that the rules forbid keep their 0 for ever.
class Crf {
 public:
  /// Throws Error(kShape) unless tags >= 1 and the rules have these sizes.
  Crf(index tags, CrfRules rules, const ParameterScope& scope);

  index tags() const { return tags_; }
  const CrfRules& rules() const { return rules_; }

  /// scale x the sum over sequences of -log p(tags) -> [1, 1]: emissions [N, K], tags [N], which
  /// must outlive the step.
  Variable loss(Tape& tape, Variable emissions, Vec<const std::int32_t> tags,
                const PackedRows& rows, double scale = 1) const;

  // To look at, of float32 or float64 emissions; without gradients. Errors: kernel/crf.h.

  /// The tags of the best path of each sequence [N].
  std::vector<std::int32_t> decode(const Context& ctx, Variable emissions,
                                   const PackedRows& rows) const;
  /// The `count` best paths of each sequence.
  std::vector<std::vector<CrfPath>> best_paths(const Context& ctx, Variable emissions,
                                               const PackedRows& rows, index count) const;
  /// The probability of each tag in each row: [N, K] row after row.
  std::vector<double> marginals(const Context& ctx, Variable emissions,
                                const PackedRows& rows) const;
  /// log Z of each sequence [S].
  std::vector<double> log_partition(const Context& ctx, Variable emissions,
                                    const PackedRows& rows) const;

 private:
  template <class T>
  CrfScores<T> scores() const;

  index tags_;
  CrfRules rules_;
  Parameter *transitions_, *start_, *end_;
};

}  // namespace fovea
