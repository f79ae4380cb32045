// SPDX-License-Identifier: Apache-2.0
// Samples of numbers over time, normalised, as batches name them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "fovea/base/view.h"
#include "fovea/data/frame_file.h"

namespace fovea {

/// A model sees (number - mean) / deviation of each feature.
struct FrameScale {
  std::vector<double> mean = {};       ///< [features]
  std::vector<double> deviation = {};  ///< [features] above 0; 1 of a feature that never changes
};

/// Mean and standard deviation of each feature, over the time steps and joints of the samples that
/// `left_out` does not mark: those of the files one after another. Summed in double, in order.
FrameScale scale_of(std::span<const FrameFile> files, const std::vector<bool>& left_out);

/// The time steps of many samples, one after another.
struct FrameSet {
  index columns = 0;             ///< joints x features
  std::vector<float> values;     ///< [time steps, columns], normalised
  std::vector<index> starts{0};  ///< [samples + 1]

  Rows<const float> rows() const { return {values.data(), starts.back(), columns}; }
  index samples() const { return static_cast<index>(starts.size()) - 1; }
};

/// Adds the samples of a file. Throws kInputFormat if the set would have 2^31 time steps,
/// kOutOfMemory.
void append(FrameSet& set, const FrameFile& file, const FrameScale& scale);

/// Throws kInputFormat unless the file has so many joints and features; `whose` has them.
void require_shape(const FrameFile& file, index joints, index features, std::string_view whose);

}  // namespace fovea
