// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/backward_schedule.h"

namespace fovea::detail {

namespace {

// Collects the units of work in waves: a wave has the units of some sequences and groups of heads.
class Waves {
 public:
  Waves(const std::vector<Sequence>& sequences, index H, index G)
      : sequences_(sequences), H_(H), G_(G) {}

  void add(Span sequences, Span groups) {
    const auto begin = static_cast<index>(units_.all.size());
    for (index n = sequences.begin; n < sequences.end; ++n) {
      for (index g = groups.begin; g < groups.end; ++g) {
        units_.all.push_back({&sequences_[static_cast<std::size_t>(n)], g, first_head(g, H_, G_),
                              first_head(g + 1, H_, G_)});
      }
    }
    units_.waves.push_back({begin, static_cast<index>(units_.all.size())});
  }
  BackwardUnits units() && { return std::move(units_); }

 private:
  const std::vector<Sequence>& sequences_;
  index H_, G_;
  BackwardUnits units_;
};

}  // namespace

BackwardUnits make_units(const std::vector<Sequence>& sequences, index H, index G,
                         const SharedGradient& shared) {
  Waves waves(sequences, H, G);
  const auto N = static_cast<index>(sequences.size());
  // Packed sequences are in one batch row and share no query or key.
  const bool by_sequence = shared.batch && N > 1 && sequences.back().batch != sequences[0].batch;
  const index sequences_at_once = by_sequence ? 1 : N, groups_at_once = shared.heads ? 1 : G;
  for (index n = 0; n < N; n += sequences_at_once) {
    for (index g = 0; g < G; g += groups_at_once) {
      waves.add({n, n + sequences_at_once}, {g, g + groups_at_once});
    }
  }
  return std::move(waves).units();
}

}  // namespace fovea::detail
