// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/tensor_file.h"

#include <string_view>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/option.h"
#include "fovea/tensor/npz.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {

namespace {

struct Format {
  std::string_view name;  // its extension
  std::vector<NamedTensor> (*parse)(std::string_view bytes, std::string_view where);
  void (*check_size)(std::span<const NamedTensor> tensors);
  std::string (*bytes)(std::span<const NamedTensor> tensors);
};

constexpr Format kFormats[] = {
    {".safetensors",
     [](std::string_view bytes, std::string_view where) {
       return parse_safetensors(bytes, where).tensors;
     },
     [](std::span<const NamedTensor>) {},  // no limit
     [](std::span<const NamedTensor> tensors) { return safetensors_bytes(tensors); }},
    {".npz", parse_npz, check_npz_size, npz_bytes}};

const Format& format_of(const std::filesystem::path& path, ErrorCode otherwise) {
  if (const Format* format = find_named(kFormats, path.extension().string())) return *format;
  throw Error(otherwise, fmt::format("{}: not a name of a tensor file", path.string()),
              "its extension says the format: " + names_in(kFormats));
}

}  // namespace

std::vector<NamedTensor> read_tensors(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  const Format& format = format_of(path, ErrorCode::kInputFormat);
  if (bytes.empty()) {
    throw Error(ErrorCode::kEmptyInput, fmt::format("{}: the file is empty", path.string()),
                "write the tensors again");
  }
  try {
    return format.parse(bytes, path.string());
  } catch (const Error& error) {
    // A damaged model and a damaged file of numbers differ in who must act.
    const bool damaged =
        error.code() == ErrorCode::kModelDamaged || error.code() == ErrorCode::kModelWrongKind;
    throw Error(damaged ? ErrorCode::kInputFormat : error.code(), error.what(), error.hint());
  }
}

void check_tensor_path(const std::filesystem::path& path) { format_of(path, ErrorCode::kUsage); }

void check_tensor_sizes(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  format_of(path, ErrorCode::kUsage).check_size(tensors);
}

void write_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  write_file_atomically(path, format_of(path, ErrorCode::kUsage).bytes(tensors));
}

}  // namespace fovea
