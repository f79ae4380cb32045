// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/recorded.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "fovea/attention/lambda/lane_program.h"
#include "fovea/attention/lambda/run_lanes.h"

namespace fovea {

// Returns the step of the result. An exception of the function is passed on, unless the function
// computed with a number that is no score of the call.
template <class T>
int RecordedFunction<T>::record(LaneTape& tape, const Sequence& sequence, index head) const {
  try {
    const PlaceNumber<Traced> i(tape, 1, 0), j(tape, 0, 1);
    return tape.step_of(record(tape, PlaceOf<Traced>(sequence, head, i, j)));
  } catch (...) {
    if (tape.is_valid()) throw;
  }
  return 0;
}

template <class T>
void RecordedFunction<T>::apply(const TileSite& site, const TileRows<T>& rows,
                                const ScoreTile<T>& tile) const {
  LaneTape tape = LaneTape::of<T>(LaneTape::Learned::kConstant);
  const int result = record(tape, site.sequence, site.head);
  if (!tape.is_valid()) return BiasPart<T>::apply(site, rows, tile);
  const Rows<T> values = tile.rows(site);
  run_lanes<T>(tape, LaneProgram(tape, result, {}),
               {values, values, tile.lanes, site.query, site.key}, nullptr);
}

template <class T>
void RecordedFunction<T>::pull(const TileSite& site, const TileRows<T>& rows,
                               const ScoreTile<T>& scores, const ScoreTile<T>& dscores,
                               const TileGradients<T>& gradients) const {
  LaneTape tape = LaneTape::of<T>(LaneTape::Learned::kSymbol);
  const int result = record(tape, site.sequence, site.head);
  const int of_score = tape.is_valid() ? tape.differentiate(result) : 0;
  if (!tape.is_valid()) return BiasPart<T>::pull(site, rows, scores, dscores, gradients);
  // Several learned numbers may have the same sum.
  std::array<int, LaneTape::kMostKnown> steps;
  int* end = steps.data();
  for (const KnownGradient& known : tape.known_gradients()) {
    if (std::find(steps.data(), end, known.sum) == end) *end++ = known.sum;
  }
  std::array<double, LaneTape::kMostKnown> sums;
  run_lanes<T>(tape, LaneProgram(tape, of_score, {steps.data(), end}),
               {scores.rows(site), dscores.rows(site), dscores.lanes, site.query, site.key},
               sums.data());
  for (const KnownGradient& known : tape.known_gradients()) {
    const auto number = std::find(steps.data(), end, known.sum) - steps.data();
    const double sum = sums[static_cast<std::size_t>(number)];
    tape.pull_known(known.known, known.scale * sum, gradients.parameters);
  }
}

template <class T>
std::string RecordedFunction<T>::name() const {
  LaneTape tape = LaneTape::of<T>(LaneTape::Learned::kSymbol);
  const int result = record(tape, Sequence{.queries = 1, .keys = 1}, 0);
  if (tape.is_valid()) tape.differentiate(result);
  if (tape.is_valid()) return name_;
  const char* const why = tape.is_full() ? "it takes too many steps" : "it branches";
  return fmt::format("{} (score by score: {})", name_, why);
}

template class RecordedFunction<float>;
template class RecordedFunction<double>;

}  // namespace fovea
