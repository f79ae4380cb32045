// SPDX-License-Identifier: Apache-2.0
// Samples of numbers over time from an .npz file, with what is known about them.
//
//   x        float32, float64: [sample, time, features], or [sample, time, joints, features]
//   lengths  int32, int64, uint8: [sample], the time steps of each; without it, all of x
//   labels   [sample] of whole numbers or texts, the class; [sample, labels] of 0 and 1, several
//            labels; [sample] of any numbers, to be predicted themselves
//
// Other arrays are not read, nor what lies behind the length of a sample.
#pragma once

#include <string>
#include <vector>

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

}  // namespace fovea
