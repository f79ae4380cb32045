// SPDX-License-Identifier: Apache-2.0
// Configurations as JSON objects. JSON values and their text are in json.cc.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "fovea/base/printable.h"
#include "fovea/config/json.h"
#include "fovea/config/suggest.h"

namespace fovea {

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
