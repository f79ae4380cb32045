// SPDX-License-Identifier: Apache-2.0
// JSON: values, their text, and configurations as objects.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/config/field.h"

namespace fovea {

/// A JSON value. Objects keep the order of their keys. Numbers are written with the fewest digits
/// that read back to the same value. JSON has no infinity or NaN: they are written as null.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  template <std::signed_integral T>
  Json(T value) : value_(static_cast<std::int64_t>(value)) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Json(T value) : value_(static_cast<std::uint64_t>(value)) {}
  Json(double value) : value_(value) {}
  Json(float value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  // This does not use the variant's own copy constructor: if memory runs out in it, libstdc++ 12
  // destroys a value that was never built.
  Json(const Json& other) {
    other.visit([this](auto value) { value_ = std::move(value); });
  }
  Json(Json&&) noexcept = default;
  Json& operator=(const Json& other) { return *this = Json(other); }
  Json& operator=(Json&&) noexcept = default;
  ~Json() = default;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  /// The value if it is a T, else nullptr. A whole number that was parsed is a std::int64_t, and a
  /// std::uint64_t only where it is too large for that; any other number is a double.
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&value_);
  }

  /// "null", "a text", ...
  std::string_view kind() const;
  /// Calls f with the value.
  template <class F>
  void visit(F&& f) const {
    std::visit(std::forward<F>(f), value_);
  }

  /// The value as this type. Each throws kConfig, which says what was expected, if it has another
  /// type.
  bool boolean() const;
  index whole() const;
  double number() const;  ///< null is NaN
  const std::string& text() const;
  const Array& array() const;
  const Object& object() const;
  /// The value of a key of an object. If there is none, find returns nullptr and at throws kConfig,
  /// which names the key.
  const Json* find(std::string_view key) const;
  const Json& at(std::string_view key) const;

  /// The text: line() in one line; pretty() in lines indented by two spaces, with a newline at the
  /// end.
  std::string line() const;
  std::string pretty() const;

 private:
  [[noreturn]] void unexpected(std::string_view expected) const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, float, double, std::string, Array,
               Object>
      value_;
};

/// The members of an object without these keys.
Json::Object members_but(Json::Object members, std::span<const std::string_view> keys);

/// Where a text came from, and the error code to throw if it cannot be read.
struct JsonSource {
  std::string where;  ///< begins each message: a path, or path:line
  ErrorCode code = ErrorCode::kConfig;
};

/// Strict: one value and nothing after it, valid UTF-8, no key twice, at most 64 levels deep.
Json parse_json(std::string_view text, const JsonSource& source);

/// The way to treat a field whose key is missing in the text: throw an error, or keep the field's
/// value (so that files of earlier versions can be read).
enum class MissingKeys { kAreErrors, kKeepTheirValue };

Json json_of(std::span<const Field> fields);
/// Throws `source.code` for an unknown key, a wrong type, a value out of range or a missing key.
/// The message names the key; for an unknown one it suggests the nearest known key.
void set_from_json(std::vector<Field> fields, const Json& json, const JsonSource& source,
                   MissingKeys missing = MissingKeys::kAreErrors);

template <HasFields Config>
Json json_of(const Config& config) {
  Config copy = config;
  return json_of(std::span<const Field>(fields_of(copy)));
}

/// The configuration as JSON: to_json_line in one line without a newline, to_json as a file.
template <HasFields Config>
std::string to_json_line(const Config& config) {
  return json_of(config).line();
}
template <HasFields Config>
std::string to_json(const Config& config) {
  return json_of(config).pretty();
}

/// Sets every field of `config` from an object. On an error `config` is unchanged.
template <HasFields Config>
void from_json(std::string_view text, const JsonSource& source, Config& config,
               MissingKeys missing = MissingKeys::kAreErrors) {
  Config result = config;
  set_from_json(fields_of(result), parse_json(text, source), source, missing);
  config = std::move(result);
}

}  // namespace fovea
