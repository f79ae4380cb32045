// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"

namespace fovea {

namespace {

// A feature whose deviation is below this part of its size has only rounding errors.
constexpr double kConstant = 1e-9;

// Calls f(column, value) for all numbers of a sample within its length.
template <class F>
void for_each_number(const FrameFile& file, index sample, F&& f) {
  const index frame = std::max<index>(file.joints, 1) * file.features;
  const index count = file.lengths[static_cast<std::size_t>(sample)] * frame;
  const index begin = sample * file.steps() * frame;
  const auto visit = [&](const auto* values) {
    for (index n = 0; n < count; ++n) f(n % file.features, double{values[begin + n]});
  };
  file.x.dtype() == DType::kFloat32 ? visit(file.x.data<float>()) : visit(file.x.data<double>());
}

[[noreturn]] void fail_far(const FrameFile& file, index sample, index feature, double value,
                           const FrameScale& scale) {
  const auto at = static_cast<std::size_t>(feature);
  throw Error(
      ErrorCode::kInputFormat,
      fmt::format("{}: x: feature {}: expected numbers like those of the training (mean {}, "
                  "standard deviation {}), got {}, too far from them for float32",
                  place_of_sample(file.name, sample), feature, scale.mean[at], scale.deviation[at],
                  value),
      "correct it, or shorten the sample by lengths");
}

std::string axes_text(index joints, index features) {
  return joints > 0 ? fmt::format("[sample, time, {}, {}]", joints, features)
                    : fmt::format("[sample, time, {}]", features);
}

}  // namespace

FrameScale scale_of(std::span<const FrameFile> files, const std::vector<bool>& left_out) {
  const auto features = static_cast<std::size_t>(files[0].features);
  FrameScale scale{std::vector<double>(features), std::vector<double>(features)};
  std::vector<double> counts(features);
  const auto for_all = [&](const auto& f) {
    std::size_t number = 0;
    for (const FrameFile& file : files) {
      for (index s = 0; s < file.samples(); ++s) {
        if (!left_out[number++]) for_each_number(file, s, f);
      }
    }
  };
  for_all([&](index c, double value) {
    const auto at = static_cast<std::size_t>(c);
    counts[at] += 1;
    scale.mean[at] += (value - scale.mean[at]) / counts[at];
  });
  for_all([&](index c, double value) {
    const auto at = static_cast<std::size_t>(c);
    const double distance = value - scale.mean[at];
    scale.deviation[at] += distance * distance;
  });
  for (std::size_t c = 0; c < features; ++c) {
    double& deviation = scale.deviation[c];
    deviation = std::sqrt(deviation / std::max(counts[c], 1.0));
    const bool changes = deviation > kConstant * std::abs(scale.mean[c]) && deviation > 0;
    if (!changes) deviation = 1;
  }
  return scale;
}

void append(FrameSet& set, const FrameFile& file, const FrameScale& scale) {
  constexpr index kMost = std::numeric_limits<std::int32_t>::max();
  const index columns = std::max<index>(file.joints, 1) * file.features;
  index steps = 0;
  for (const index length : file.lengths) steps += length;
  if (steps > kMost - set.starts.back()) {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: the samples together have 2^31 time steps or more", file.name),
                "use fewer or shorter samples");
  }
  // A vector that grows exists twice.
  require_memory(fmt::format("{}: its numbers", file.name),
                 2.0 * sizeof(float) * static_cast<double>(steps + set.starts.back()) *
                     static_cast<double>(columns),
                 "use fewer or shorter samples");
  set.columns = columns;
  set.values.reserve(set.values.size() + static_cast<std::size_t>(steps * columns));
  for (index s = 0; s < file.samples(); ++s) {
    for_each_number(file, s, [&](index c, double value) {
      const auto at = static_cast<std::size_t>(c);
      const auto normalised = static_cast<float>((value - scale.mean[at]) / scale.deviation[at]);
      if (!std::isfinite(normalised)) fail_far(file, s, c, value, scale);
      set.values.push_back(normalised);
    });
    set.starts.push_back(set.starts.back() + file.lengths[static_cast<std::size_t>(s)]);
  }
}

void require_shape(const FrameFile& file, index joints, index features, std::string_view whose) {
  if (file.joints == joints && file.features == features) return;
  throw Error(
      ErrorCode::kInputFormat,
      fmt::format("{}: x: expected {}, as {} has, got {}", file.name, axes_text(joints, features),
                  whose, axes_text(file.joints, file.features)),
      "joints and features must be the same everywhere, and in the same order");
}

}  // namespace fovea
