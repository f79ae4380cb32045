// SPDX-License-Identifier: Apache-2.0
// Samples of numbers over time, normalised, as batches name them; from an .npz file, with what is
// known about them.
//
//   x        float32, float64: [sample, time, features], or [sample, time, joints, features]
//   lengths  int32, int64, uint8: [sample], the time steps of each; without it, all of x
//   labels   [sample] of whole numbers or texts, the class; [sample, labels] of 0 and 1, several
//            labels; [sample] of any numbers, to be predicted themselves
//
// Other arrays are not read, nor what lies behind the length of a sample.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/view.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

/// The way in which the array `labels` is read.
enum class FrameLabels {
  kNone,     ///< it is not read
  kClass,    ///< one class each
  kSeveral,  ///< flags: their names are "0", "1", ...
  kNumber,   ///< one number each
};

struct FrameFile {
  std::string name;  ///< of the file
  Tensor x;          ///< finite within the lengths
  index joints = 0;  ///< 0: x has three axes
  index features = 0;
  std::vector<index> lengths;                    ///< [sample] 1 to the time steps of x
  std::vector<std::vector<std::string>> labels;  ///< [sample] of classes and flags
  std::vector<double> numbers;                   ///< [sample] of numbers

  index samples() const { return x.shape()[0]; }
  index steps() const { return x.shape()[1]; }
};

/// Throws kUsage for standard input, what FileSource throws, kEmptyInput for a file without bytes
/// or samples, kInputFormat: no .npz file, a damaged one, an array that is missing or of another
/// type, shape or range, a number that is not finite. The message names the file, the array and the
/// sample.
FrameFile read_frame_file(const std::string& file, FrameLabels labels);

/// "FILE: sample 3".
std::string place_of_sample(const std::string& file, index sample);

/// Throws kInputFormat if a file that should hold texts is an .npz by its name and first bytes.
void require_no_npz(const std::string& file);

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
