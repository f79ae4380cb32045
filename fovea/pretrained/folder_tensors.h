// SPDX-License-Identifier: Apache-2.0
// The tensors of a model folder of Hugging Face: model.safetensors, or the files that
// model.safetensors.index.json names.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/text/keyed_hash.h"

namespace fovea {

class FolderTensors {
 public:
  /// Reads the headers. Throws kModelMissing without such files (pickles are named and refused),
  /// kModelDamaged where index and files contradict each other, and what SafetensorsSource throws.
  explicit FolderTensors(const std::filesystem::path& folder);

  /// All names, in the order of the files.
  const std::vector<std::string>& names() const { return names_; }
  bool has(std::string_view name) const { return places_.find(name) != places_.end(); }
  /// The shape of a tensor. Throws kModelDamaged if there is none of that name.
  const Shape& shape(std::string_view name) const;
  /// Its type in the file: "F16". Throws as shape().
  std::string_view type(std::string_view name) const;
  /// Writes its values, widened from F32, F16 or BF16, to as many floats. Throws kModelWrongKind
  /// for another type.
  void read(std::string_view name, Vec<float> to) const;
  /// As TensorSource has them, by the name.
  std::optional<BlockType> block_type(std::string_view name) const;
  SharedBytes blocks(std::string_view name) const;
  /// The bytes of a tensor of U8. Throws as shape(), and kModelWrongKind for another type.
  std::string bytes(std::string_view name) const;

 private:
  struct File {
    explicit File(const std::filesystem::path& path)
        : name(path.filename().string()), bytes(path), tensors(bytes, path.string()) {}
    std::string name;
    FileSource bytes;
    SafetensorsSource tensors;
  };
  struct Place {
    const File* file;
    std::size_t number;
  };

  void add(const std::filesystem::path& path);
  void add_indexed(const std::filesystem::path& index);
  const Place& place_of(std::string_view name) const;

  std::filesystem::path folder_;
  std::vector<std::unique_ptr<const File>> files_;
  std::vector<std::string> names_;
  KeyedMap<std::string, Place> places_;
};

}  // namespace fovea
