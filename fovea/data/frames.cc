// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/words.h"
#include "fovea/data/npz_arrays.h"

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

namespace {

constexpr std::string_view kArchive = "PK";  // the first bytes of a .zip

[[noreturn]] void bad(const std::string& where, const std::string& what, const std::string& hint) {
  throw Error(ErrorCode::kInputFormat, fmt::format("{}: {}", where, what), hint);
}

void read_values(FrameFile& file, const NpzArrays& arrays) {
  const std::string shapes = "x is [sample, time, features] or [sample, time, joints, features]";
  const std::size_t n = arrays.required("x", "numpy.savez(FILE, x=..., labels=...): " + shapes);
  const TensorInfo info = arrays.source().info(n);
  const std::string where = arrays.where("x");
  if (info.dtype != DType::kFloat32 && info.dtype != DType::kFloat64) {
    bad(where, fmt::format("expected float32 or float64, got {}", to_string(info.dtype)),
        "save x.astype(numpy.float32)");
  }
  const index axes = info.shape.axes();
  if (axes != 3 && axes != 4) {
    bad(where, fmt::format("expected 3 or 4 axes, got {}", to_string(info.shape)), shapes);
  }
  if (info.shape[0] == 0) {
    throw Error(ErrorCode::kEmptyInput, fmt::format("{}: expected samples, got none", where),
                "write at least one sample");
  }
  if (info.shape.size() == 0) {
    bad(where, fmt::format("an axis has no entries: {}", to_string(info.shape)), shapes);
  }
  file.x = arrays.source().read(n);
  file.joints = axes == 4 ? info.shape[2] : 0;
  file.features = info.shape[axes - 1];
}

// Whole numbers of any type, as they are.
std::vector<std::int64_t> whole_numbers(const Tensor& tensor) {
  const Tensor wide = tensor.to(DType::kInt64);
  const auto values = wide.vec<std::int64_t>();
  return {values.begin(), values.end()};
}

bool is_whole(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUInt8;
}

void require_one_each(const FrameFile& file, const Shape& shape, const std::string& where) {
  if (shape.axes() == 1 && shape[0] == file.samples()) return;
  bad(where,
      fmt::format("expected [{}], one for each sample of x, got {}", file.samples(),
                  to_string(shape)),
      "give each sample one entry");
}

void read_lengths(FrameFile& file, const NpzArrays& arrays) {
  if (!arrays.has("lengths")) {
    file.lengths.assign(static_cast<std::size_t>(file.samples()), file.steps());
    return;
  }
  const std::string where = arrays.where("lengths");
  const std::size_t n = arrays.required("lengths", "");
  const TensorInfo info = arrays.source().info(n);
  if (!is_whole(info.dtype)) {
    bad(where, fmt::format("expected int32, int64 or uint8, got {}", to_string(info.dtype)),
        "save lengths.astype(numpy.int32)");
  }
  require_one_each(file, info.shape, where);
  for (const std::int64_t length : whole_numbers(arrays.source().read(n))) {
    if (length < 1 || length > file.steps()) {
      bad(where,
          fmt::format("sample {}: expected 1 to {}, the time steps of x, got {}",
                      file.lengths.size(), file.steps(), length),
          "a length counts the time steps that are no padding; leave out samples without any");
    }
    file.lengths.push_back(length);
  }
}

// Refuses numbers within the length of a sample that are not finite.
template <class T>
void require_finite(const FrameFile& file) {
  const index J = std::max<index>(file.joints, 1), F = file.features, frame = J * F;
  const T* const values = file.x.data<T>();
  for (index s = 0; s < file.samples(); ++s) {
    const T* const sample = values + s * file.steps() * frame;
    const index count = file.lengths[static_cast<std::size_t>(s)] * frame;
    const T* const found =
        std::find_if_not(sample, sample + count, [](T value) { return is_finite_float32(value); });
    if (found == sample + count) continue;
    const index at = found - sample;
    const std::string joint =
        file.joints > 0 ? fmt::format(", joint {}", at % frame / F) : std::string();
    bad(fmt::format("{}: x: sample {}, time step {}{}, feature {}", file.name, s, at / frame, joint,
                    at % F),
        fmt::format("expected a finite number, got {}", why_not_float32(*found)),
        "correct it, or shorten the sample by lengths");
  }
}

void read_classes(FrameFile& file, const NpzArrays& arrays, std::size_t n,
                  const std::string& where) {
  const Tensor texts = arrays.source().read_texts(n);
  if (texts.defined()) {
    const Shape& shape = texts.shape();
    require_one_each(file, Shape(std::vector<index>(shape.begin(), shape.end() - 1)), where);
    const index width = shape[shape.axes() - 1];
    for (index s = 0; s < shape[0]; ++s) {
      const std::string place = fmt::format("{}: sample {}", where, s);
      file.labels.push_back(
          {text_of_characters(texts.data<std::int32_t>() + s * width, width, place)});
      if (file.labels.back()[0].empty()) {
        bad(place, "the label is empty", "give each sample a label");
      }
    }
    return;
  }
  const TensorInfo info = arrays.source().info(n);
  if (!is_whole(info.dtype)) {
    bad(where, fmt::format("expected whole numbers or texts, got {}", to_string(info.dtype)),
        "save labels.astype(numpy.int64); numbers to predict need --regression");
  }
  require_one_each(file, info.shape, where);
  for (const std::int64_t label : whole_numbers(arrays.source().read(n))) {
    file.labels.push_back({std::to_string(label)});
  }
}

void read_flags(FrameFile& file, const NpzArrays& arrays, std::size_t n, const std::string& where) {
  const TensorInfo info = arrays.source().info(n);
  if (info.shape.axes() != 2 || info.shape[0] != file.samples() || info.shape[1] == 0) {
    bad(where,
        fmt::format("expected [{}, labels], a row for each sample of x, got {}", file.samples(),
                    to_string(info.shape)),
        "with --multi-label, labels has a column of 0 and 1 for each label");
  }
  const Tensor flags = arrays.source().read(n).to(DType::kFloat64);
  const double* const values = flags.data<double>();
  const index columns = info.shape[1];
  for (index s = 0; s < file.samples(); ++s) {
    std::vector<std::string>& labels = file.labels.emplace_back();
    for (index k = 0; k < columns; ++k) {
      const double value = values[s * columns + k];
      if (value != 0 && value != 1) {
        bad(where, fmt::format("sample {}, label {}: expected 0 or 1, got {}", s, k, value),
            "with --multi-label, 1 says that a sample has the label");
      }
      if (value == 1) labels.push_back(std::to_string(k));
    }
  }
}

void read_numbers(FrameFile& file, const NpzArrays& arrays, std::size_t n,
                  const std::string& where) {
  require_one_each(file, arrays.source().info(n).shape, where);
  const Tensor numbers = arrays.source().read(n).to(DType::kFloat64);
  for (const double number : numbers.vec<double>()) {
    if (!is_finite_float32(number)) {
      bad(where,
          fmt::format("sample {}: expected a finite number, got {}", file.numbers.size(),
                      why_not_float32(number)),
          "correct it, or leave the sample out");
    }
    file.numbers.push_back(number);
    file.labels.push_back({fmt::format("{}", number)});
  }
}

void read_labels(FrameFile& file, const NpzArrays& arrays, FrameLabels labels) {
  if (labels == FrameLabels::kNone) return;
  const std::size_t n = arrays.required("labels", "numpy.savez(FILE, x=..., labels=...)");
  const std::string where = arrays.where("labels");
  if (labels == FrameLabels::kClass) return read_classes(file, arrays, n, where);
  if (labels == FrameLabels::kSeveral) return read_flags(file, arrays, n, where);
  read_numbers(file, arrays, n, where);
}

}  // namespace

std::string place_of_sample(const std::string& file, index sample) {
  return fmt::format("{}: sample {}", file, sample);
}

FrameFile read_frame_file(const std::string& file, FrameLabels labels) {
  if (file == "-") {
    throw Error(ErrorCode::kUsage, "standard input: an .npz file cannot be read from there",
                "name a file: its directory is at its end");
  }
  const FileSource source{std::filesystem::path(file)};
  if (source.size() == 0) {
    throw Error(ErrorCode::kEmptyInput, fmt::format("{}: the file is empty", file),
                "write it again, with numpy.savez");
  }
  FrameFile read{.name = file, .x = {}, .lengths = {}, .labels = {}, .numbers = {}};
  const NpzArrays arrays(source, read.name);
  read_values(read, arrays);
  read_lengths(read, arrays);
  read.x.dtype() == DType::kFloat32 ? require_finite<float>(read) : require_finite<double>(read);
  read_labels(read, arrays, labels);
  return read;
}

void require_no_npz(const std::string& file) {
  // A FIFO of that name is not opened: its writer would wait for a second reader.
  std::error_code ignored;
  if (!file.ends_with(".npz") || !std::filesystem::is_regular_file(file, ignored)) return;
  std::string begin(kArchive.size(), '\0');
  std::ifstream(file, std::ios::binary)
      .read(begin.data(), static_cast<std::streamsize>(begin.size()));
  if (begin != kArchive) return;
  throw Error(ErrorCode::kInputFormat,
              fmt::format("{}: expected texts, got arrays of numbers", file),
              "fovea train classify --input npz trains on them; a model of texts reads texts only");
}

}  // namespace fovea
