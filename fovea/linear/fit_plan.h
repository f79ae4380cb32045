// SPDX-License-Identifier: Apache-2.0
// What the fit of a linear model tries: folds, weightings and values of C. Internal.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/linear/fit.h"

namespace fovea {

/// Whether C and the weighting are chosen by kMostMeasured of the outputs.
bool is_sampled(ClassifierTask task, index outputs);

/// The folds by which C and the weighting are chosen; 0: there are too few texts.
index fold_count(index texts, ClassifierTask task, index outputs, const LinearFitOptions& options);

/// The folds by which the chosen model is calibrated, at least as many. The model of all texts says
/// more than one of two thirds of them; the fewer texts, the more it differs. So parts are smaller,
/// but have 10 texts.
index calibration_folds(index texts, ClassifierTask task, index outputs,
                        const LinearFitOptions& options);

/// What to try with each C: weightings, with all n-grams and without those of words. Where all of
/// them take long, only what is better almost always.
std::vector<LinearTrial> paths_of(const NgramFeatures& features, index texts, ClassifierTask task,
                                  const LinearFitOptions& options);

/// The values of C to try, each four times that before it.
std::vector<double> path_of(NgramWeighting weighting, ClassifierTask task, index folds,
                            const LinearFitOptions& options);

/// The part of cross-validation in which each text is measured: as many of each class in each, and
/// equal texts in one.
std::vector<std::int32_t> draw_folds(const LinearData& data, index folds, std::uint64_t seed);

/// What problems keep from one C to the next, if all of it takes at most this many bytes.
inline constexpr double kMostKept = 1e9;
double kept_bytes(index texts, index columns, index states);

/// With more columns, weights side by side would be too large for the caches, and for many threads.
inline constexpr index kMostColumnsOfLanes = 500'000;

/// Whether each of so many outputs is solved by itself.
inline bool solves_alone(index outputs, index columns) {
  return outputs == 1 || columns > kMostColumnsOfLanes;
}

}  // namespace fovea
