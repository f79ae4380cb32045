// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/tensor_file.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/tensor/npz.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {

namespace {

// Enough for a file with few tensors. The header is held in memory three times: as bytes, parsed,
// and as a list.
constexpr std::uint64_t kMostHeaderBytes = std::uint64_t{4} << 20;

struct Format {
  std::string_view name;  // its extension
  std::unique_ptr<TensorSource> (*open)(const ByteSource& file, std::string where);
  void (*check)(std::span<const NamedTensor> tensors);
  std::string (*bytes)(std::span<const NamedTensor> tensors);
  int copies;  // of the values that bytes() makes
};

constexpr Format kFormats[] = {
    {".safetensors",
     [](const ByteSource& file, std::string where) -> std::unique_ptr<TensorSource> {
       return std::make_unique<SafetensorsSource>(file, std::move(where), kMostHeaderBytes);
     },
     [](std::span<const NamedTensor>) {},  // no limit
     [](std::span<const NamedTensor> tensors) { return safetensors_bytes(tensors); }, 1},
    {".npz",
     [](const ByteSource& file, std::string where) -> std::unique_ptr<TensorSource> {
       return std::make_unique<NpzSource>(file, std::move(where));
     },
     check_npz, npz_bytes, 2}};

const Format& format_of(std::string_view extension, const std::filesystem::path& path,
                        ErrorCode otherwise) {
  if (const Format* format = find_named(kFormats, extension)) return *format;
  throw Error(otherwise, fmt::format("{}: not a name of a tensor file", path.string()),
              "its extension says the format: " + names_in(kFormats));
}

const Format& output_format(const std::filesystem::path& path) {
  return format_of(path.extension().string(), path, ErrorCode::kUsage);
}

// Turns kModelDamaged into kInputFormat: this file is an input of the user, not a model of fovea.
template <class F>
auto as_input(F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    const bool damaged =
        error.code() == ErrorCode::kModelDamaged || error.code() == ErrorCode::kModelWrongKind;
    if (!damaged) throw;
    throw error.with(ErrorCode::kInputFormat, error.what());
  }
}

std::size_t place_of(std::string_view name, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  check(found != names.end(), "tensors: there is no {}", printable(name));
  return static_cast<std::size_t>(found - names.begin());
}

void require_memory_for(std::span<const TensorInfo> wanted, std::string_view where) {
  double bytes = 0;
  for (const TensorInfo& info : wanted) {
    bytes += static_cast<double>(info.shape.size()) * static_cast<double>(byte_size(info.dtype));
  }
  require_memory(fmt::format("{}: its tensors", where), bytes, "use smaller tensors");
}

}  // namespace

TensorFile::TensorFile(const std::filesystem::path& path, std::string_view format)
    : where_(path.string()), file_(path) {
  const Format& known = format_of(format, path, ErrorCode::kInputFormat);
  if (file_.size() == 0) {
    throw Error(ErrorCode::kEmptyInput, fmt::format("{}: the file is empty", where_),
                "write the tensors again");
  }
  tensors_ = as_input([&] { return known.open(file_, where_); });
}

TensorInfo TensorFile::info(std::string_view name) const {
  return as_input([&] { return tensors_->info(place_of(name, names())); });
}

std::vector<NamedTensor> TensorFile::read(std::span<const TensorInfo> wanted) const {
  require_memory_for(wanted, where_);
  return as_input([&] {
    tensors_->verify();
    std::vector<NamedTensor> tensors;
    for (const TensorInfo& info : wanted) {
      tensors.push_back({info.name, tensors_->read(place_of(info.name, names()))});
    }
    return tensors;
  });
}

std::vector<NamedTensor> TensorFile::read() const {
  std::vector<TensorInfo> infos;
  for (const std::string& name : names()) infos.push_back(info(name));
  return read(infos);
}

void check_tensor_path(const std::filesystem::path& path) { output_format(path); }

void check_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  output_format(path).check(tensors);
}

double memory_to_write(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  double bytes = 0;
  for (const NamedTensor& named : tensors) {
    bytes += static_cast<double>(named.tensor.bytes().size());
  }
  return output_format(path).copies * bytes;
}

void write_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  write_file_atomically(path, output_format(path).bytes(tensors));
}

}  // namespace fovea
