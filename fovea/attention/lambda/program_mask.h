// SPDX-License-Identifier: Apache-2.0
// A program as a mask.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "fovea/attention/lambda/program_tape.h"
#include "fovea/attention/mask/mask.h"

namespace fovea::detail {

/// Keeps the scores for which the program is not 0. Tiles are classified by the bounds of its
/// steps. keeps() is the definition.
class ProgramMask final : public MaskPart {
 public:
  explicit ProgramMask(std::shared_ptr<const PlannedProgram> program);

  bool keeps(const ScoreSite& site) const override;
  TileKind classify(const TileSite& site) const override;
  void apply(const TileSite& site, const ScoreTile<float>& tile) const override;
  void apply(const TileSite& site, const ScoreTile<double>& tile) const override;
  std::pair<index, index> key_range(const Sequence& sequence, index head, index query,
                                    index queries) const override;
  std::pair<index, index> query_range(const Sequence& sequence, index head, index key,
                                      index keys) const override;
  bool takes_packed() const override { return false; }
  void name_memory(OverlapCheck& memory) const override {
    name_tables(program_->program().tables(), memory);
  }
  void check_shape(const AttentionSizes& sizes) const override;
  void start_call() const override { program_->start_call(); }
  std::string name() const override { return "traced"; }

 private:
  // What comparisons of q, k and numbers leave: low <= j - i <= high, and so for keys and queries.
  struct Band {
    index low, high, first_key, last_key, first_query, last_query;
  };

  template <class T>
  void apply_lanes(const TileSite& site, const ScoreTile<T>& tile) const;
  void find_band(int step);
  void keep_below(const ScoreProgram::Line& line);
  void keep_distance(const ScoreProgram::Line& line, index most);
  TileKind kind(const TileSite& site) const;
  bool keeps_none(const TileSite& site) const { return kind(site) == TileKind::kNone; }

  std::shared_ptr<const PlannedProgram> program_;
  Band band_;
  bool is_band_ = true;  // nothing else decides
};

}  // namespace fovea::detail
