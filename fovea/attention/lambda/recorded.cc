// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/recorded.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "fovea/attention/lambda/lane_program.h"
#include "fovea/attention/lambda/run_lanes.h"

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
  LaneTape program = LaneTape::of<T>(LaneTape::Learned::kConstant);
  const int result = record(program, site.sequence, site.head);
  if (!program.is_valid()) return BiasPart<T>::apply(site, rows, tile);
  const Rows<T> values = tile.rows(site);
  run_lanes<T>(program, LaneProgram(program, result, {}),
               {values, values, tile.lanes, site.query, site.key}, nullptr);
}

template <class T>
void RecordedFunction<T>::pull(const TileSite& site, const TileRows<T>& rows,
                               const ScoreTile<T>& scores, const ScoreTile<T>& dscores,
                               const TileGradients<T>& gradients) const {
  LaneTape program = LaneTape::of<T>(LaneTape::Learned::kSymbol);
  const int result = record(program, site.sequence, site.head);
  const int of_score = program.is_valid() ? program.differentiate(result) : 0;
  if (!program.is_valid()) return BiasPart<T>::pull(site, rows, scores, dscores, gradients);
  // Several learned numbers may have the same sum.
  std::array<int, LaneTape::kMostKnown> steps;
  int* end = steps.data();
  for (const KnownGradient& known : program.known_gradients()) {
    if (std::find(steps.data(), end, known.sum) == end) *end++ = known.sum;
  }
  std::array<double, LaneTape::kMostKnown> sums;
  run_lanes<T>(program, LaneProgram(program, of_score, {steps.data(), end}),
               {scores.rows(site), dscores.rows(site), dscores.lanes, site.query, site.key},
               sums.data());
  for (const KnownGradient& known : program.known_gradients()) {
    const auto number = std::find(steps.data(), end, known.sum) - steps.data();
    const double sum = sums[static_cast<std::size_t>(number)];
    program.pull_known(known.known, known.scale * sum, gradients.parameters);
  }
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
