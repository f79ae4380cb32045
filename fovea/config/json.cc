// SPDX-License-Identifier: Apache-2.0
// The only file in this folder that includes nlohmann-json, which takes seconds to compile.
#include "fovea/config/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/config/suggest.h"

namespace fovea {

namespace {

constexpr std::size_t kDeepest = 64;

/// Receives the events of the parser and builds the value. It stops at a duplicate key or too deep
/// a level.
class Builder {
 public:
  explicit Builder(const JsonSource& source) : source_(source) {}

  Json take() { return std::move(root_); }

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) {
    if (std::in_range<std::int64_t>(value)) return add(static_cast<std::int64_t>(value));
    return add(value);
  }
  bool number_float(double value, const std::string& text) {
    if (!std::isfinite(value)) fails(fmt::format("the number {} is too large", printable(text)));
    return add(value);
  }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) { fails("binary data is not JSON"); }

  bool start_object(std::size_t) { return open(Level{.object = true}); }
  bool start_array(std::size_t) { return open(Level{.object = false}); }

  bool key(std::string& name) {
    if (!levels_.back().keys.insert(name).second)
      fails(fmt::format("the key {} is there twice", printable(name)));
    levels_.back().members.emplace_back(std::move(name), Json());
    return true;
  }

  bool end_object() {
    Json::Object members = std::move(levels_.back().members);
    levels_.pop_back();
    return add(std::move(members));
  }
  bool end_array() {
    Json::Array elements = std::move(levels_.back().elements);
    levels_.pop_back();
    return add(std::move(elements));
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception&) {
    fails(fmt::format("no valid JSON at byte {}, near {}", position, printable(token)));
  }

 private:
  struct Level {
    bool object;
    Json::Object members = {};
    Json::Array elements = {};
    std::set<std::string> keys = {};
  };

  bool open(Level level) {
    if (levels_.size() == kDeepest) fails("nested too deeply");
    levels_.push_back(std::move(level));
    return true;
  }

  bool add(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
    } else if (levels_.back().object) {
      levels_.back().members.back().second = std::move(value);
    } else {
      levels_.back().elements.push_back(std::move(value));
    }
    return true;
  }

  [[noreturn]] void fails(const std::string& what) const {
    throw Error(source_.code, fmt::format("{}: {}", source_.where, what));
  }

  const JsonSource& source_;
  std::vector<Level> levels_;
  Json root_;
};

std::string quoted_text(const std::string& text) {
  // Bytes that are not UTF-8 (a file name may hold any) are replaced, so that the line stays JSON.
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <class Real>
std::string real_text(Real value) {
  if (!std::isfinite(value)) return "null";
  const std::string text = fmt::format("{}", value);
  // With ".0" it is read back as a double; "1" would be read as a whole number.
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

/// Writes a value; `indent` < 0: in one line.
class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  std::string text;

  void operator()(std::monostate) { text += "null"; }
  void operator()(bool value) { text += value ? "true" : "false"; }
  void operator()(std::int64_t value) { text += std::to_string(value); }
  void operator()(std::uint64_t value) { text += std::to_string(value); }
  void operator()(float value) { text += real_text(value); }
  void operator()(double value) { text += real_text(value); }
  void operator()(const std::string& value) { text += quoted_text(value); }
  void operator()(const Json::Array& array) {
    write_all('[', array, ']', [&](const Json& element) { element.visit(*this); });
  }
  void operator()(const Json::Object& object) {
    write_all('{', object, '}', [&](const auto& member) {
      text += quoted_text(member.first);
      text += indent_ < 0 ? ":" : ": ";
      member.second.visit(*this);
    });
  }

 private:
  template <class Items, class Write>
  void write_all(char open, const Items& items, char close, Write&& write) {
    text += open;
    ++depth_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) text += ',';
      new_line();
      write(items[i]);
    }
    --depth_;
    if (!items.empty()) new_line();
    text += close;
  }

  void new_line() {
    if (indent_ < 0) return;
    text += '\n';
    text.append(static_cast<std::size_t>(indent_) * static_cast<std::size_t>(depth_), ' ');
  }

  int indent_;
  int depth_ = 0;
};

}  // namespace

std::string Json::line() const {
  Writer writer(-1);
  visit(writer);
  return std::move(writer.text);
}

std::string Json::pretty() const {
  Writer writer(2);
  visit(writer);
  return std::move(writer.text) + "\n";
}

Json::Object members_but(Json::Object members, std::span<const std::string_view> keys) {
  std::erase_if(members, [&](const auto& member) { return contains(keys, member.first); });
  return members;
}

std::string_view Json::kind() const {
  constexpr std::string_view kKinds[] = {"null",     "true or false", "a whole number",
                                         "a number", "a number",      "a number",
                                         "a text",   "a list",        "an object"};
  return kKinds[value_.index()];
}

bool Json::boolean() const {
  if (const bool* value = get_if<bool>()) return *value;
  unexpected("true or false");
}

index Json::whole() const {
  if (const auto* value = get_if<std::int64_t>()) return *value;
  const auto* value = get_if<std::uint64_t>();
  if (value != nullptr && std::in_range<std::int64_t>(*value)) return static_cast<index>(*value);
  unexpected("a whole number");
}

double Json::number() const {
  if (is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (const auto* value = get_if<double>()) return *value;
  if (const auto* value = get_if<float>()) return *value;
  if (const auto* value = get_if<std::uint64_t>()) return static_cast<double>(*value);
  if (const auto* value = get_if<std::int64_t>()) return static_cast<double>(*value);
  unexpected("a number");
}

const std::string& Json::text() const {
  if (const auto* value = get_if<std::string>()) return *value;
  unexpected("a text");
}

const Json::Array& Json::array() const {
  if (const auto* value = get_if<Array>()) return *value;
  unexpected("a list");
}

const Json::Object& Json::object() const {
  if (const auto* value = get_if<Object>()) return *value;
  unexpected("an object");
}

const Json* Json::find(std::string_view key) const {
  const Object& members = object();
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& member) { return member.first == key; });
  return found == members.end() ? nullptr : &found->second;
}

const Json& Json::at(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) fail(ErrorCode::kConfig, "the key '{}' is missing", key);
  return *value;
}

void Json::unexpected(std::string_view expected) const {
  fail(ErrorCode::kConfig, "expected {}; got {}", expected, kind());
}

Json parse_json(std::string_view text, const JsonSource& source) {
  // The parser takes a zero byte for the end of the text, and skips a byte order mark.
  if (text.find('\0') != std::string_view::npos || text.starts_with("\xef\xbb\xbf")) {
    throw Error(source.code,
                fmt::format("{}: a zero byte or byte order mark is not JSON", source.where));
  }
  Builder builder(source);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

// Configurations as JSON objects. JSON values and their text are in json.cc.

namespace {

// One value alone stands without an array.
Json value_of(const Several& several) {
  Json::Array values;
  for (const std::string& text : several.get()) {
    values.push_back(several.names.empty() ? Json(std::stoll(text)) : Json(text));
  }
  return values.size() == 1 ? values[0] : Json(std::move(values));
}

Json value_of(const Field& field) {
  return std::visit(
      [](const auto& target) -> Json {
        using T = std::decay_t<decltype(target)>;
        if constexpr (std::is_same_v<T, Choice>) {
          return target.get();
        } else if constexpr (std::is_same_v<T, std::vector<std::string>*>) {
          return Json::Array(target->begin(), target->end());
        } else if constexpr (std::is_same_v<T, Several>) {
          return value_of(target);
        } else {
          return *target;
        }
      },
      field.target);
}

/// Fields whose names share the first `prefix` letters; those of one nested struct lie together.
Json object_of(std::span<const Field> fields, std::size_t prefix) {
  Json::Object members;
  for (std::size_t i = 0; i < fields.size();) {
    const std::string& name = fields[i].name;
    const std::size_t dot = name.find('.', prefix);
    if (dot == std::string::npos) {
      members.emplace_back(name.substr(prefix), value_of(fields[i++]));
      continue;
    }
    std::size_t end = i;
    while (end < fields.size() && fields[end].name.compare(0, dot + 1, name, 0, dot + 1) == 0)
      ++end;
    members.emplace_back(name.substr(prefix, dot - prefix),
                         object_of(fields.subspan(i, end - i), dot + 1));
    i = end;
  }
  return members;
}

bool set_value(Field& field, const Json& value) {
  if (const bool* flag = value.get_if<bool>()) return set_bool(field, *flag);
  if (const auto* whole = value.get_if<std::int64_t>()) return set_number(field, *whole);
  if (const auto* large = value.get_if<std::uint64_t>()) return set_number(field, *large);
  if (const auto* real = value.get_if<double>()) return set_number(field, *real);
  if (const auto* text = value.get_if<std::string>()) return set_text(field, *text);
  if (value.is_null()) {
    double* const* real = std::get_if<double*>(&field.target);
    if (real != nullptr) **real = std::numeric_limits<double>::quiet_NaN();
    return real != nullptr;
  }
  const Json::Array* array = value.get_if<Json::Array>();
  if (array == nullptr) return false;
  std::vector<std::string> texts;
  for (const Json& element : *array) {
    const std::string* text = element.get_if<std::string>();
    const auto* whole = element.get_if<std::int64_t>();
    const bool numbers = std::holds_alternative<Several>(field.target);
    if (text == nullptr && (whole == nullptr || !numbers)) return false;
    texts.push_back(text != nullptr ? *text : std::to_string(*whole));
  }
  return set_list(field, std::move(texts));
}

class FieldsReader {
 public:
  FieldsReader(std::vector<Field>& fields, const JsonSource& source)
      : fields_(fields), source_(source), seen_(fields.size()) {}

  void read(const Json& object, const std::string& prefix) {
    const Json::Object* members = object.get_if<Json::Object>();
    if (members == nullptr) fails(fmt::format("expected an object; got {}", object.kind()));
    for (const auto& [key, value] : *members) read_member(prefix + key, value);
  }

  void require_all() const {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (!seen_[i]) fails(fmt::format("the key '{}' is missing", fields_[i].name));
    }
  }

 private:
  void read_member(const std::string& path, const Json& value) {
    const auto is_inside = [&](const Field& field) { return field.name.starts_with(path + "."); };
    const auto field = std::find_if(fields_.begin(), fields_.end(),
                                    [&](const Field& f) { return f.name == path; });
    if (field == fields_.end()) {
      if (std::none_of(fields_.begin(), fields_.end(), is_inside)) unknown(path);
      return read(value, path + ".");
    }
    if (!set_value(*field, value)) {
      const std::string* text = value.get_if<std::string>();
      fails(fmt::format("'{}': expected {}; got {}", path, expected_value(*field),
                        printable(text ? *text : value.line())));
    }
    seen_[static_cast<std::size_t>(field - fields_.begin())] = true;
  }

  [[noreturn]] void unknown(const std::string& path) const {
    std::vector<std::string> names;
    for (const Field& field : fields_) names.push_back(field.name);
    fails(fmt::format("unknown key {}", printable(path)), did_you_mean(path, names));
  }

  [[noreturn]] void fails(const std::string& what, const std::string& hint = {}) const {
    throw Error(source_.code, fmt::format("{}: {}", source_.where, what), hint);
  }

  std::vector<Field>& fields_;
  const JsonSource& source_;
  std::vector<bool> seen_;
};

}  // namespace

Json json_of(std::span<const Field> fields) { return object_of(fields, 0); }

void set_from_json(std::vector<Field> fields, const Json& json, const JsonSource& source,
                   MissingKeys missing) {
  FieldsReader reader(fields, source);
  reader.read(json, "");
  if (missing == MissingKeys::kAreErrors) reader.require_all();
}

}  // namespace fovea
