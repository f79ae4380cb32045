// SPDX-License-Identifier: Apache-2.0
// The small files of a model from elsewhere: what it is made of, and how it reads text. They lie in
// its folder, or in the archive that a model of fovea keeps of the one it began from.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "fovea/config/json.h"
#include "fovea/pretrained/foreign_json.h"

namespace fovea {

class ModelFiles {
 public:
  explicit ModelFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// The members of a ZIP archive, whose bytes are called `where` in messages. Nothing is believed:
  /// `may_be` are the names that it may hold. Throws kModelDamaged.
  static ModelFiles of_archive(std::string_view bytes, std::span<const std::string_view> may_be,
                               const std::string& where);

  bool has(std::string_view name) const;
  /// The text of a file. Throws as read_foreign_file() does.
  std::string text(std::string_view name, std::size_t most = kMostTokenizerBytes) const;
  /// The JSON value in a file. Throws as read_foreign_json() does.
  Json json(std::string_view name) const;
  /// The files of an archive, by their names.
  const std::map<std::string, std::string, std::less<>>& members() const { return members_; }
  /// What these files are called together in messages, and one of them.
  std::string where() const { return folder_.string(); }
  std::string path(std::string_view name) const { return (folder_ / name).string(); }

  /// An archive of those of these files that are there: the same files give the same bytes.
  std::string archive(std::span<const std::string_view> names) const;

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::string, std::less<>> members_ = {};  // of an archive
  bool in_archive_ = false;
};

}  // namespace fovea
