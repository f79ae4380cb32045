// SPDX-License-Identifier: Apache-2.0
// A program as a part of the bias, and as a mask.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "fovea/attention/bias/bias.h"
#include "fovea/attention/lambda/program/planned_program.h"
#include "fovea/attention/mask/mask.h"

namespace fovea::detail {

/// s -> program(s, b, h, i, j), vectorised, with gradients of the score and of captured tables.
/// apply_one() and pull_one() are the definition, in double.
template <class T>
class ProgramBias final : public BiasPart<T> {
 public:
  explicit ProgramBias(std::shared_ptr<const PlannedProgram> program)
      : program_(std::move(program)) {}

  T apply_one(const ScoreSite& site, const ScoreRows<T>& rows, T score) const override;
  T pull_one(const ScoreSite& site, const ScoreRows<T>& rows, T score, T dscore,
             const ScoreGradients<T>& gradients) const override;
  void apply(const TileSite& site, const TileRows<T>& rows,
             const ScoreTile<T>& tile) const override;
  void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
            const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const override;
  void prefetch_apply(const TileSite& site, Prefetch& prefetch) const override;
  void prefetch_pull(const TileSite& site, Prefetch& prefetch) const override;
  index gradient_size() const override { return program_->sums(); }
  bool sums_by_batch() const override { return program_->sums_by_batch(); }
  void store_gradient(const double* sums, index heads) const override;
  void start_gradient(const Context& ctx) const override;
  SharedGradient shared_gradient() const override;
  bool takes_packed() const override { return false; }
  bool needs_rows() const override { return false; }
  bool needs_scores() const override { return program_->program().gradient_reads_score(); }
  void name_parameters(OverlapCheck& memory) const override;
  void name_gradients(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  void start_call() const override { program_->start_call(); }
  std::string name() const override;

 private:
  void store(int read, const double* sums, index heads) const;

  std::shared_ptr<const PlannedProgram> program_;
};

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
  // Comparisons of q, k and numbers keep low <= j - i <= high, and so for keys and queries.
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
