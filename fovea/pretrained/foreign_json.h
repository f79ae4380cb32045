// SPDX-License-Identifier: Apache-2.0
// The JSON files of other programs: read key by key, so that each value has the type and range that
// is expected, and a key that nobody has asked for is found.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/json.h"

namespace fovea {

/// The most bytes of a tokenizer.json or vocab.txt that is read, and the most tokens of one.
inline constexpr std::size_t kMostTokenizerBytes = std::size_t{256} << 20;
inline constexpr index kMostTokens = 10'000'000;

/// The hint of an error about what fovea does not know of a model from elsewhere.
inline constexpr const char* kReadableHint =
    "the page 'Models from elsewhere' of the documentation lists what can be read";

/// The text of a file of a model folder. Throws kModelMissing if it is not there, kModelDamaged if
/// it is no regular file or has over `most` bytes.
std::string read_foreign_file(const std::filesystem::path& file, std::size_t most);

/// The JSON value in such a file. Throws as above, and kModelDamaged for what is no JSON.
Json read_foreign_json(const std::filesystem::path& file, std::size_t most = std::size_t{16} << 20);

/// An object of such a file. A key with the value null counts as missing. All functions throw
/// kModelDamaged for a value of another type, out of range or missing, and kModelWrongKind for one
/// that fovea does not know; the message names the file, the key and the value.
class ForeignObject {
 public:
  /// `where` begins each message: "model/config.json". The JSON must outlive it.
  ForeignObject(const Json& json, std::string where);

  /// The value, or null.
  const Json* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Whether the key is there with the value null, for those that mean something by it.
  bool is_null(std::string_view key) const;

  index whole(std::string_view key, index least, index most,
              std::optional<index> otherwise = {}) const;
  double number(std::string_view key, double least, double most,
                std::optional<double> otherwise = {}) const;
  bool flag(std::string_view key, std::optional<bool> otherwise = {}) const;
  std::string text(std::string_view key, std::optional<std::string> otherwise = {}) const;
  const Json::Array& array(std::string_view key) const;
  ForeignObject object(std::string_view key) const;

  /// Throws unless the key is missing or has this value, the only one that fovea knows.
  void require(std::string_view key, const Json& only) const;
  /// These keys say nothing that matters.
  void ignore(std::initializer_list<std::string_view> keys) const;
  /// Nor do those whose value is false, 0 or empty.
  void ignore_what_is_off() const;
  /// Throws kModelWrongKind if there is a key that was not asked for.
  void refuse_others() const;

  /// Throws kModelWrongKind, "WHERE: KEY is VALUE: `expected`".
  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const;
  [[noreturn]] void fail_value(std::string_view key, std::string_view expected) const;

  const std::string& where() const { return where_; }

 private:
  const Json& required(std::string_view key, std::string_view expected) const;

  const Json& json_;
  std::string where_;
  mutable std::set<std::string, std::less<>> asked_;
};

}  // namespace fovea
