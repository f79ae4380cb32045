// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/model_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/tensor/zip.h"

namespace fovea {

namespace fs = std::filesystem;

ModelFiles ModelFiles::of_archive(std::string_view bytes, std::span<const std::string_view> may_be,
                                  const std::string& where) {
  ModelFiles files{fs::path(where)};
  files.in_archive_ = true;
  try {
    const MemorySource source(bytes);
    std::uint64_t left = kMostTokenizerBytes;
    for (const ZipEntry& entry : read_zip_directory(source, where)) {
      if (std::ranges::find(may_be, entry.name) == may_be.end()) {
        fail(ErrorCode::kModelDamaged, "{}: {} does not belong there", where,
             printable(entry.name));
      }
      if (entry.size > left) {
        fail(ErrorCode::kModelDamaged, "{}: over {} bytes of files", where, kMostTokenizerBytes);
      }
      left -= entry.size;
      std::string text(static_cast<std::size_t>(entry.size), '\0');
      ZipMemberReader reader(source, entry, where);
      reader.read(text);
      reader.finish();
      if (!files.members_.emplace(entry.name, std::move(text)).second) {
        fail(ErrorCode::kModelDamaged, "{}: {} is there twice", where, entry.name);
      }
    }
  } catch (const Error& error) {
    throw error.with(ErrorCode::kModelDamaged, error.what());
  }
  return files;
}

bool ModelFiles::has(std::string_view name) const {
  if (in_archive_) return members_.contains(name);
  std::error_code ignored;
  return fs::exists(folder_ / name, ignored);
}

std::string ModelFiles::text(std::string_view name, std::size_t most) const {
  if (!in_archive_) return read_foreign_file(folder_ / name, most);
  const auto found = members_.find(name);
  if (found == members_.end()) {
    fail(ErrorCode::kModelDamaged, "{}: {} is missing", folder_.string(), name);
  }
  return found->second;
}

Json ModelFiles::json(std::string_view name) const {
  return parse_json(text(name), {path(name), ErrorCode::kModelDamaged});
}

std::string ModelFiles::archive(std::span<const std::string_view> names) const {
  std::vector<ZipMember> members;
  for (const std::string_view name : names) {
    if (has(name)) members.push_back({std::string(name), text(name)});
  }
  return zip_bytes(members);
}

}  // namespace fovea
