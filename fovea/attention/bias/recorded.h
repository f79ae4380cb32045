// SPDX-License-Identifier: Apache-2.0
// A score function that can be written down: whole tiles are computed by vectors.
#pragma once

#include <string>

#include "fovea/attention/bias/bias.h"
#include "fovea/attention/bias/place.h"
#include "fovea/attention/bias/tape.h"

namespace fovea {

/// value(), derivative() and add_parameters() are its definition, as of any score function;
/// record() is the same in traced numbers. What cannot be written down, since it branches on a
/// score or a place, is computed by its definition, score by score, and the name says so.
template <class T>
class RecordedFunction : public ScoreFunction<T> {
 public:
  explicit RecordedFunction(std::string name) : name_(std::move(name)) {}

  void apply(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& tile) const final;
  void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
            const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const final;
  std::string name() const final;

 protected:
  /// The new score. Learned numbers come from tape.parameter(), in order.
  virtual Traced record(LaneTape& tape, const PlaceOf<Traced>& place) const = 0;

 private:
  int record(LaneTape& tape, const Sequence& sequence, index head) const;

  std::string name_;
};

}  // namespace fovea
