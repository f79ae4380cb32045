// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/foreign_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::string_view kAgain = "get the model again, or take another one";

std::string shown(const Json* value) {
  return value == nullptr ? "missing" : excerpt(value->line());
}

// A switch, a number or a list of nothing.
bool is_off(const Json& value) {
  constexpr std::string_view kOff[] = {"null", "false", "0", "0.0", "\"\"", "[]", "{}"};
  return std::ranges::count(kOff, value.line()) > 0;
}

}  // namespace

std::string read_foreign_file(const std::filesystem::path& path, std::size_t most) {
  const auto fail_with = [&](ErrorCode code, const std::string& what) {
    throw Error(code, fmt::format("{}: {}", path.string(), what), std::string(kAgain));
  };
  try {
    const FileSource file(path);
    if (file.size() > most) {
      fail_with(ErrorCode::kModelDamaged,
                fmt::format("{} bytes; expected at most {}", file.size(), most));
    }
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    file.read(0, text);
    return text;
  } catch (const Error& error) {
    const bool missing = error.code() == ErrorCode::kMissingInput;
    if (!missing && error.code() != ErrorCode::kNotARegularFile) throw;
    throw error.with(missing ? ErrorCode::kModelMissing : ErrorCode::kModelDamaged, error.what());
  }
}

Json read_foreign_json(const std::filesystem::path& file, std::size_t most) {
  return parse_json(read_foreign_file(file, most), {file.string(), ErrorCode::kModelDamaged});
}

ForeignObject::ForeignObject(const Json& json, std::string where)
    : json_(json), where_(std::move(where)) {
  if (json.get_if<Json::Object>() != nullptr) return;
  throw Error(ErrorCode::kModelDamaged,
              fmt::format("{}: expected an object, got {}", where_, shown(&json)),
              std::string(kAgain));
}

const Json* ForeignObject::find(std::string_view key) const {
  asked_.emplace(key);
  const Json* const value = json_.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool ForeignObject::is_null(std::string_view key) const {
  const Json* const value = json_.find(key);
  return value != nullptr && value->is_null();
}

void ForeignObject::fail_value(std::string_view key, std::string_view expected) const {
  throw Error(
      ErrorCode::kModelDamaged,
      fmt::format("{}: {} is {}; expected {}", where_, printable(key), shown(find(key)), expected),
      std::string(kAgain));
}

void ForeignObject::refuse(std::string_view key, std::string_view expected) const {
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: {} is {}; fovea knows {}", where_, printable(key), shown(find(key)),
                          expected),
              kReadableHint);
}

const Json& ForeignObject::required(std::string_view key, std::string_view expected) const {
  const Json* const value = find(key);
  if (value == nullptr) fail_value(key, expected);
  return *value;
}

index ForeignObject::whole(std::string_view key, index least, index most,
                           std::optional<index> otherwise) const {
  if (otherwise && !has(key)) return *otherwise;
  const std::string expected = fmt::format("a whole number from {} to {}", least, most);
  const auto* const value = required(key, expected).get_if<std::int64_t>();
  if (value == nullptr || *value < least || *value > most) fail_value(key, expected);
  return *value;
}

double ForeignObject::number(std::string_view key, double least, double most,
                             std::optional<double> otherwise) const {
  if (otherwise && !has(key)) return *otherwise;
  const std::string expected = fmt::format("a number from {} to {}", least, most);
  const Json& value = required(key, expected);
  double number = 0;
  if (const auto* whole = value.get_if<std::int64_t>()) {
    number = static_cast<double>(*whole);
  } else if (const auto* real = value.get_if<double>()) {
    number = *real;
  } else {
    fail_value(key, expected);
  }
  if (!(number >= least && number <= most)) fail_value(key, expected);
  return number;
}

bool ForeignObject::flag(std::string_view key, std::optional<bool> otherwise) const {
  if (otherwise && !has(key)) return *otherwise;
  const auto* const value = required(key, "true or false").get_if<bool>();
  if (value == nullptr) fail_value(key, "true or false");
  return *value;
}

std::string ForeignObject::text(std::string_view key, std::optional<std::string> otherwise) const {
  if (otherwise && !has(key)) return *otherwise;
  const auto* const value = required(key, "a text").get_if<std::string>();
  if (value == nullptr) fail_value(key, "a text");
  return *value;
}

const Json::Array& ForeignObject::array(std::string_view key) const {
  const auto* const value = required(key, "an array").get_if<Json::Array>();
  if (value == nullptr) fail_value(key, "an array");
  return *value;
}

ForeignObject ForeignObject::object(std::string_view key) const {
  const Json& value = required(key, "an object");
  if (value.get_if<Json::Object>() == nullptr) fail_value(key, "an object");
  return {value, fmt::format("{}: {}", where_, key)};
}

void ForeignObject::require(std::string_view key, const Json& only) const {
  const Json* const value = find(key);
  if (value != nullptr && value->line() != only.line()) refuse(key, only.line());
}

void ForeignObject::ignore(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) asked_.emplace(key);
}

void ForeignObject::ignore_what_is_off() const {
  for (const auto& [key, value] : json_.object()) {
    if (is_off(value)) asked_.emplace(key);
  }
}

void ForeignObject::refuse_others() const {
  for (const auto& [key, value] : json_.object()) {
    if (asked_.find(key) != asked_.end()) continue;
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: {} is {}; fovea does not know what that changes", where_,
                            printable(key), shown(&value)),
                kReadableHint);
  }
}

}  // namespace fovea
