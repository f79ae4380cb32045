// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/of.h"

#include <fmt/core.h>

#include "fovea/attention/lambda/lanes/lane_program.h"

namespace fovea::detail {

// Returns the step of the result. An exception of the function is passed on, unless the function
// computed with a number that is no score of the call.
template <class T>
int RecordedFunction<T>::record(LaneTape& program, const Sequence& sequence, index head) const {
  try {
    const PlaceNumber<Traced> i(program, 1, 0), j(program, 0, 1);
    return program.step_of(record(program, PlaceOf<Traced>(sequence, head, i, j)));
  } catch (...) {
    if (program.is_valid()) throw;
  }
  return 0;
}

template <class T>
void RecordedFunction<T>::apply(const TileSite& site, const TileRows<T>& rows,
                                const ScoreTile<T>& tile) const {
  CompiledLanes<T> lanes(LaneTape::Learned::kConstant);
  const int result = record(lanes.tape(), site.sequence, site.head);
  if (!lanes.compile(result)) return BiasPart<T>::apply(site, rows, tile);
  lanes.apply(site, tile);
}

template <class T>
void RecordedFunction<T>::pull(const TileSite& site, const TileRows<T>& rows,
                               const ScoreTile<T>& scores, const ScoreTile<T>& dscores,
                               const TileGradients<T>& gradients) const {
  CompiledLanes<T> lanes(LaneTape::Learned::kSymbol);
  const int result = record(lanes.tape(), site.sequence, site.head);
  if (!lanes.compile(result)) return BiasPart<T>::pull(site, rows, scores, dscores, gradients);
  lanes.pull(site, scores, dscores, gradients.parameters);
}

template <class T>
std::string RecordedFunction<T>::name() const {
  LaneTape program = LaneTape::of<T>(LaneTape::Learned::kSymbol);
  const int result = record(program, Sequence{.queries = 1, .keys = 1}, 0);
  if (program.is_valid()) program.differentiate(result);
  if (program.is_valid()) return name_;
  const char* const why = program.is_full() ? "it takes too many steps" : "it branches";
  return fmt::format("{} (score by score: {})", name_, why);
}

template class RecordedFunction<float>;
template class RecordedFunction<double>;

}  // namespace fovea::detail
