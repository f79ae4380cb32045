// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/folder_tensors.h"

#include <fmt/format.h>

#include <set>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/foreign_json.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFile = "model.safetensors", kIndex = "model.safetensors.index.json";
constexpr std::string_view kPickles[] = {"pytorch_model.bin", "pytorch_model.bin.index.json",
                                         "model.ckpt.index", "tf_model.h5"};
constexpr Hint kAgain{"get the model again: files of several versions do not fit together"};

[[noreturn]] void fail_without_weights(const fs::path& folder) {
  for (const std::string_view name : kPickles) {
    if (!fs::exists(folder / name)) continue;
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: fovea reads model.safetensors, never {}, which can run programs",
                            folder.string(), name),
                "save the model as safetensors: model.save_pretrained(DIR, "
                "safe_serialization=True)");
  }
  throw Error(ErrorCode::kModelMissing, fmt::format("{}: {} is missing", folder.string(), kFile),
              "name a folder that transformers or sentence-transformers has saved");
}

// A plain name: not of a folder, and in no other one.
bool is_plain_file(std::string_view name) {
  return !name.empty() && name.find('/') == name.npos && name.find('\\') == name.npos &&
         name.find('\0') == name.npos && name.front() != '.' && name.ends_with(".safetensors");
}

}  // namespace

FolderTensors::FolderTensors(const fs::path& folder) : folder_(folder) {
  const bool whole = fs::exists(folder / kFile);
  if (!whole && !fs::exists(folder / kIndex)) fail_without_weights(folder);
  whole ? add(folder / kFile) : add_indexed(folder / kIndex);
}

void FolderTensors::add(const fs::path& path) {
  auto file = std::make_unique<const File>(path);
  const std::vector<std::string>& names = file->tensors.names();
  for (std::size_t n = 0; n < names.size(); ++n) {
    if (!places_.emplace(names[n], Place{file.get(), n}).second) {
      fail(ErrorCode::kModelDamaged, kAgain, "{}: the tensor {} is in another file, too",
           path.string(), printable(names[n]));
    }
    names_.push_back(names[n]);
  }
  files_.push_back(std::move(file));
}

void FolderTensors::add_indexed(const fs::path& path) {
  constexpr std::size_t kMostFiles = 10'000;
  const Json json = read_foreign_json(path);
  const ForeignObject file(json, path.string());
  file.ignore({"metadata"});
  const ForeignObject map = file.object("weight_map");
  file.refuse_others();
  std::set<std::string> files;
  for (const auto& [name, its_file] : json.at("weight_map").object()) {
    const auto* const text = its_file.get_if<std::string>();
    if (text == nullptr || !is_plain_file(*text))
      map.fail_value(name, "the name of a file beside it");
    files.insert(*text);
  }
  if (files.empty() || files.size() > kMostFiles) {
    fail(ErrorCode::kModelDamaged, kAgain, "{}: weight_map names {} files", path.string(),
         files.size());
  }
  for (const std::string& one : files) {
    try {
      add(folder_ / one);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kMissingInput) throw;
      throw error.with(ErrorCode::kModelMissing,
                       fmt::format("{}: names {}: {}", path.string(), one, error.what()));
    }
  }
  for (const auto& [name, its_file] : json.at("weight_map").object()) {
    const auto found = places_.find(name);
    if (found == places_.end() || found->second.file->name != its_file.text()) {
      fail(ErrorCode::kModelDamaged, kAgain, "{}: the tensor {} is not in {}", path.string(),
           printable(name), its_file.text());
    }
  }
}

const FolderTensors::Place& FolderTensors::place_of(std::string_view name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) {
    fail(ErrorCode::kModelDamaged, kAgain, "{}: the tensor {} is missing", folder_.string(),
         printable(name));
  }
  return found->second;
}

const Shape& FolderTensors::shape(std::string_view name) const {
  const Place& place = place_of(name);
  return place.file->tensors.shape(place.number);
}

std::string_view FolderTensors::type(std::string_view name) const {
  const Place& place = place_of(name);
  return place.file->tensors.type(place.number);
}

void FolderTensors::read(std::string_view name, Vec<float> to) const {
  const Place& place = place_of(name);
  place.file->tensors.read_widened(place.number, to);
}

std::optional<BlockType> FolderTensors::block_type(std::string_view name) const {
  const Place& place = place_of(name);
  return place.file->tensors.block_type(place.number);
}

std::string FolderTensors::bytes(std::string_view name) const {
  const Place& place = place_of(name);
  const Tensor values = place.file->tensors.read(place.number);
  if (values.dtype() != DType::kUInt8) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: tensor {} is {}; expected U8", folder_.string(), printable(name),
                            type(name)),
                kReadableHint);
  }
  const auto bytes = values.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

SharedBytes FolderTensors::blocks(std::string_view name) const {
  const Place& place = place_of(name);
  return place.file->tensors.blocks(place.number);
}

}  // namespace fovea
