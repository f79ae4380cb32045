// SPDX-License-Identifier: Apache-2.0
// The only file that includes toml++, which takes seconds to compile.
#include "fovea/config/toml.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "fovea/base/error.h"
#include "fovea/base/file.h"
#include "fovea/base/printable.h"
#include "fovea/config/suggest.h"

namespace fovea {

namespace {

std::string place(std::string_view where, const toml::source_position& position) {
  return fmt::format("{}:{}:{}", where, position.line, position.column);
}

std::string_view last_part(std::string_view name) {
  return name.substr(name.rfind('.') + 1);  // npos + 1 is 0
}

std::string table_of(const Field& field) {
  const std::size_t dot = field.name.rfind('.');
  return dot == std::string::npos ? "" : field.name.substr(0, dot);
}

std::string with_underscores(std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::optional<std::vector<std::string>> texts_of(const toml::array& array) {
  std::vector<std::string> texts;
  for (const toml::node& element : array) {
    if (!element.is_string()) return std::nullopt;
    texts.push_back(element.as_string()->get());
  }
  return texts;
}

bool set_value(Field& field, const toml::node& value) {
  if (const auto* flag = value.as_boolean()) return set_bool(field, flag->get());
  if (const auto* whole = value.as_integer()) return set_number(field, std::int64_t{whole->get()});
  if (const auto* real = value.as_floating_point()) return set_number(field, real->get());
  if (const auto* text = value.as_string()) {
    return set_text(field, text->get()) || set_list(field, {text->get()});
  }
  const auto* array = value.as_array();
  auto texts = array == nullptr ? std::nullopt : texts_of(*array);
  return texts && set_list(field, std::move(*texts));
}

class TomlReader {
 public:
  TomlReader(std::vector<Field>& fields, std::string_view where) : fields_(fields), where_(where) {}

  std::vector<std::string> names_set;

  void read(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, value] : table) read_member(prefix, key, value);
  }

 private:
  void read_member(const std::string& prefix, const toml::key& key, const toml::node& value) {
    const std::string path = prefix + with_underscores(key.str());
    if (value.is_table() && is_struct(path)) return read(*value.as_table(), path + ".");
    Field& field = find(path, key);
    if (std::find(names_set.begin(), names_set.end(), field.name) != names_set.end()) {
      fails(key.source().begin, fmt::format("'{}' is set twice", last_part(field.name)));
    }
    if (!set_value(field, value)) {
      std::ostringstream text;
      text << toml::node_view<const toml::node>(value);
      fails(value.source().begin, fmt::format("'{}': expected {}; got {}", key.str(),
                                              expected_value(field), printable(text.str())));
    }
    names_set.push_back(field.name);
  }

  bool is_struct(const std::string& path) const {
    return std::any_of(fields_.begin(), fields_.end(),
                       [&](const Field& field) { return field.name.starts_with(path + "."); });
  }

  Field& find(const std::string& path, const toml::key& key) {
    for (Field& field : fields_) {
      if (field.name == path) return field;
    }
    const auto ends_so = [&](const Field& field) { return last_part(field.name) == path; };
    const auto field = std::find_if(fields_.begin(), fields_.end(), ends_so);
    if (field == fields_.end()) unknown(key);
    if (std::count_if(fields_.begin(), fields_.end(), ends_so) > 1) {
      fails(key.source().begin, fmt::format("'{}' is in several tables; put it into one, like [{}]",
                                            key.str(), table_of(*field)));
    }
    return *field;
  }

  [[noreturn]] void unknown(const toml::key& key) const {
    std::vector<std::string> names;
    for (const Field& field : fields_) names.emplace_back(last_part(field.name));
    fails(key.source().begin, fmt::format("unknown key {}", printable(key.str())),
          did_you_mean(key.str(), names));
  }

  [[noreturn]] void fails(const toml::source_position& position, const std::string& what,
                          const std::string& hint = {}) const {
    throw Error(ErrorCode::kConfig, fmt::format("{}: {}", place(where_, position), what), hint);
  }

  std::vector<Field>& fields_;
  std::string_view where_;
};

std::string toml_value(const Field& field) {
  const auto quoted_text = [](const std::string& text) {
    std::ostringstream out;
    out << toml::node_view<const toml::node>(toml::value<std::string>(text));
    return out.str();
  };
  if (const auto* text = std::get_if<std::string*>(&field.target)) return quoted_text(**text);
  if (const auto* list = std::get_if<std::vector<std::string>*>(&field.target)) {
    std::vector<std::string> texts;
    for (const std::string& text : **list) texts.push_back(quoted_text(text));
    return fmt::format("[{}]", fmt::join(texts, ", "));
  }
  const std::string text = value_text(field);
  if (std::holds_alternative<Choice>(field.target)) return quoted_text(text);
  return text;
}

bool has_toml(const Field& field) {
  if (const auto* real = std::get_if<double*>(&field.target)) return std::isfinite(**real);
  if (const auto* real = std::get_if<float*>(&field.target)) return std::isfinite(**real);
  return true;
}

}  // namespace

std::vector<std::string> set_from_toml(std::vector<Field> fields, std::string_view text,
                                       std::string_view where) {
  try {
    const toml::table table = toml::parse(text);
    TomlReader reader(fields, where);
    reader.read(table, "");
    return reader.names_set;
  } catch (const toml::parse_error& error) {
    throw Error(ErrorCode::kConfig,
                fmt::format("{}: {}", place(where, error.source().begin), error.description()));
  }
}

std::vector<std::string> set_from_toml_file(std::vector<Field> fields,
                                            const std::filesystem::path& path) {
  return set_from_toml(std::move(fields), read_file(path), path.string());
}

std::string toml_text(std::span<const Field> fields) {
  std::vector<Field> ordered(fields.begin(), fields.end());
  // What belongs to no table can only stand before the first.
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const Field& field) { return table_of(field).empty(); });
  std::string text;
  std::string table;
  for (const Field& field : ordered) {
    if (table_of(field) != table) {
      table = table_of(field);
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", table);
    }
    if (!has_toml(field)) continue;
    text += fmt::format("# {}\n{} = {}\n", field.help, last_part(field.name), toml_value(field));
  }
  return text;
}

}  // namespace fovea
