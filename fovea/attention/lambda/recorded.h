// SPDX-License-Identifier: Apache-2.0
// A score function that can be recorded as a program, and then runs vectorised over whole tiles.
#pragma once

#include <string>

#include "fovea/attention/bias/bias.h"
#include "fovea/attention/lambda/place.h"
#include "fovea/attention/lambda/program.h"

namespace fovea::detail {

/// value(), derivative() and add_parameters() are the definition; record() is the same function in
/// traced numbers. A function that cannot be recorded (it branches on a score or a place) runs by
/// its definition, score by score, and name() says so.
template <class T>
class RecordedFunction : public ScoreFunction<T> {
 public:
  explicit RecordedFunction(std::string name) : name_(std::move(name)) {}

  void apply(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& tile) const final;
  void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
            const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const final;
  std::string name() const final;

 protected:
  /// The new score. Learned numbers come from program.parameter(), in order.
  virtual Traced record(LaneTape& program, const PlaceOf<Traced>& place) const = 0;

 private:
  int record(LaneTape& program, const Sequence& sequence, index head) const;

  std::string name_;
};

}  // namespace fovea::detail
