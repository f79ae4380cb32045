// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/exported_files.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "fovea/base/error.h"
#include "fovea/base/file.h"

namespace fovea {

void require_of_fovea(bool is_ours) {
  if (is_ours) return;
  throw Error(ErrorCode::kModelWrongKind, "export is for models that fovea has trained",
              "this model has the form of another program already");
}

Json::Object with_dtype(Json::Object config, DType dtype) {
  constexpr std::string_view kTypes[] = {"dtype", "torch_dtype"};
  config = members_but(std::move(config), kTypes);
  config.emplace_back("dtype", to_string(dtype));
  return config;
}

NamedFile exported_weights(std::vector<NamedTensor> tensors, DType dtype) {
  if (dtype != DType::kFloat32) {
    for (NamedTensor& one : tensors) one.tensor = one.tensor.to(dtype);
  }
  SafetensorsPieces pieces = safetensors_pieces(tensors);
  return {.name = std::string(kWeightsName),
          .bytes = std::move(pieces.header),
          .more = std::move(pieces.values),
          .held = std::move(tensors)};
}

void write_exported(const std::filesystem::path& folder, std::vector<NamedFile> files) {
  std::uintmax_t bytes = 0;
  for (const NamedFile& file : files) bytes += file.size();
  require_disk_space(folder, bytes);
  std::stable_partition(files.begin(), files.end(),
                        [](const NamedFile& file) { return file.name != kExportedFiles.back(); });
  create_folders(folder);
  // config.json first: a folder that has one is whole.
  for (auto name = kExportedFiles.rbegin(); name != kExportedFiles.rend(); ++name) {
    remove_file(folder / *name);
  }
  for (const NamedFile& file : files) {
    create_folders((folder / file.name).parent_path());
    write_named_file(folder, file);
  }
}

}  // namespace fovea
