// SPDX-License-Identifier: Apache-2.0
#include "fovea/config/field.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "fovea/base/error.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/suggest.h"

namespace fovea {

namespace {

template <class T>
constexpr bool kIsWhole =
    std::is_same_v<T, int> || std::is_same_v<T, index> || std::is_same_v<T, std::uint64_t>;
template <class T>
constexpr bool kIsReal = std::is_same_v<T, float> || std::is_same_v<T, double>;

/// Calls f with the target: a reference to the value, or the Choice or Several.
template <class F>
decltype(auto) visit_target(const Field& field, F&& f) {
  return std::visit(
      [&](auto& target) -> decltype(auto) {
        if constexpr (std::is_pointer_v<std::decay_t<decltype(target)>>)
          return f(*target);
        else
          return f(target);
      },
      field.target);
}

std::vector<std::string> between_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

template <class Number>
bool store(Field& field, Number value) {
  return visit_target(field, [&](auto& target) {
    using T = std::decay_t<decltype(target)>;
    if constexpr (kIsReal<T>) {
      const T stored = static_cast<T>(value);
      if (!std::isfinite(stored)) return false;
      target = stored;
      return true;
    } else if constexpr (kIsWhole<T> && std::is_integral_v<Number>) {
      if (!std::in_range<T>(value)) return false;
      target = static_cast<T>(value);
      return true;
    } else if constexpr (std::is_same_v<T, Several> && std::is_integral_v<Number>) {
      return target.set({std::to_string(value)});
    } else {
      return false;
    }
  });
}

template <class T>
bool parse(std::string_view text, T& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool parse_bool(std::string_view text, bool& value) {
  constexpr std::string_view kYes[] = {"true", "yes", "on", "1"};
  constexpr std::string_view kNo[] = {"false", "no", "off", "0"};
  value = std::find(std::begin(kYes), std::end(kYes), text) != std::end(kYes);
  return value || std::find(std::begin(kNo), std::end(kNo), text) != std::end(kNo);
}

bool store_text(Field& field, const std::string& text) {
  return visit_target(field, [&](auto& target) {
    using T = std::decay_t<decltype(target)>;
    if constexpr (std::is_same_v<T, bool>) {
      bool value = false;
      return parse_bool(text, value) && set_bool(field, value);
    } else if constexpr (kIsWhole<T> || kIsReal<T>) {
      T value{};
      return parse(text, value) && store(field, value);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      return set_list(field, {text});
    } else {
      return set_text(field, text);
    }
  });
}

// "at least 0 and below 1 (0: never)", "in 1 to 8", "above 0".
std::string rule_of(const ValueRange& range) {
  std::string rule;
  if (std::isinf(range.most)) {
    rule = range.above ? fmt::format("above {}", range.least)
                       : fmt::format("at least {}", range.least);
  } else if (!range.above && !range.below) {
    rule = fmt::format("in {} to {}", range.least, range.most);
  } else if (!range.above) {
    rule = fmt::format("at least {} and below {}", range.least, range.most);
  } else if (range.below) {
    rule = fmt::format("above {} and below {}", range.least, range.most);
  } else {
    rule = fmt::format("above {} and at most {}", range.least, range.most);
  }
  return range.zero.empty() ? rule : fmt::format("{} (0: {})", rule, range.zero);
}

bool has(const ValueRange& range, double value) {
  const bool low = range.above ? value > range.least : value >= range.least;
  const bool high = range.below ? value < range.most : value <= range.most;
  return low && high && std::isfinite(value);
}

std::vector<double> numbers_of(const Field& field) {
  return visit_target(field, [](auto& target) -> std::vector<double> {
    using T = std::decay_t<decltype(target)>;
    if constexpr (kIsWhole<T> || kIsReal<T>) {
      return {static_cast<double>(target)};
    } else if constexpr (std::is_same_v<T, Several>) {
      std::vector<double> numbers;
      if (!target.names.empty()) return numbers;
      for (const std::string& text : target.get()) numbers.push_back(std::stod(text));
      return numbers;
    } else {
      return {};
    }
  });
}

// Calls f with each part of "a|b|c" until it returns true.
template <class F>
bool any_part(std::string_view parts, F&& f) {
  while (true) {
    const std::size_t bar = parts.find('|');
    if (f(parts.substr(0, bar))) return true;
    if (bar == std::string_view::npos) return false;
    parts.remove_prefix(bar + 1);
  }
}

bool is_met(const FieldNeeds& needs, std::span<const Field> fields) {
  bool known = false;
  const bool met = any_part(needs.fields, [&](std::string_view name) {
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& one) { return one.last_name() == name; });
    if (field == fields.end()) return false;
    known = true;
    const std::string value = value_text(*field);
    if (needs.values.empty()) {
      return !any_part("|0|false|none", [&](std::string_view off) { return value == off; });
    }
    return any_part(needs.values, [&](std::string_view wanted) { return value == wanted; });
  });
  return met || !known;
}

// "--tokenizer word or auto"
std::string words_of(const FieldNeeds& needs) {
  const std::string name = option_name(needs.fields.substr(0, needs.fields.find('|')));
  std::string words;
  any_part(needs.values, [&](std::string_view value) {
    words =
        words.empty() ? fmt::format("{} {}", name, value) : fmt::format("{} or {}", words, value);
    return false;
  });
  return needs.values.empty() ? name : words;
}

}  // namespace

std::string_view Field::table() const {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? std::string_view() : std::string_view(name).substr(0, dot);
}

detail::FieldGroup detail::FieldGroup::nested(std::string_view name,
                                              const FieldTraits& inner) const {
  FieldGroup group{path.empty() ? std::string(name) : fmt::format("{}.{}", path, name), inner};
  if (group.traits.resume == OnResume::kAsGroup) group.traits.resume = traits.resume;
  return group;
}

void detail::FieldGroup::add(std::string_view name, std::string_view help, FieldTarget target,
                             const FieldTraits& own, std::vector<Field>& fields) const {
  FieldGroup one = nested(name, own);
  fields.push_back({.name = std::move(one.path),
                    .help = std::string(help),
                    .target = std::move(target),
                    .traits = one.traits,
                    .table_also = traits.also});
}

void require_ranges(std::span<const Field> fields) {
  for (const Field& field : fields) {
    const ValueRange& range = field.traits.range;
    for (const double number : numbers_of(field)) {
      if (has(range, number)) continue;
      const bool several = std::holds_alternative<Several>(field.target);
      fail_option(field.name, several ? fmt::format("{}", number) : value_text(field),
                  std::isinf(range.least) ? "a finite number" : rule_of(range));
    }
  }
}

std::string unmet_need(const Field& field, std::span<const Field> fields) {
  for (const FieldNeeds& needs : {field.traits.needs, field.traits.also_needs}) {
    if (!needs.fields.empty() && !is_met(needs, fields)) return words_of(needs);
  }
  return "";
}

Several detail::several_of(std::vector<index>& values) {
  Several several;
  several.get = [&values] {
    std::vector<std::string> texts;
    for (const index value : values) texts.push_back(std::to_string(value));
    return texts;
  };
  several.set = [&values](const std::vector<std::string>& texts) {
    std::vector<index> numbers(texts.size());
    for (std::size_t n = 0; n < texts.size(); ++n) {
      if (!parse(texts[n], numbers[n])) return false;
    }
    if (numbers.empty()) return false;
    values = std::move(numbers);
    return true;
  };
  return several;
}

std::string expected_value(const Field& field) {
  return visit_target(field, [](auto& target) -> std::string {
    using T = std::decay_t<decltype(target)>;
    if constexpr (std::is_same_v<T, bool>) return "true or false";
    if constexpr (std::is_same_v<T, std::uint64_t>)
      return "a whole number, not negative and below 2^64";
    if constexpr (std::is_same_v<T, std::string>) return "a text";
    if constexpr (std::is_same_v<T, std::vector<std::string>>) return "a list of texts";
    if constexpr (kIsWhole<T>) return "a whole number";
    if constexpr (kIsReal<T>) return "a finite number";
    if constexpr (std::is_same_v<T, Choice>) {
      return fmt::format("one of: {}", fmt::join(target.names, ", "));
    }
    if constexpr (std::is_same_v<T, Several>) {
      if (target.names.empty()) return "whole numbers with commas";
      return fmt::format("some of, with commas: {}", fmt::join(target.names, ", "));
    }
  });
}

std::string value_text(const Field& field) {
  return visit_target(field, [](auto& target) -> std::string {
    using T = std::decay_t<decltype(target)>;
    if constexpr (std::is_same_v<T, Choice>)
      return target.get();
    else if constexpr (std::is_same_v<T, std::vector<std::string>>)
      return fmt::format("{}", fmt::join(target, ","));
    else if constexpr (std::is_same_v<T, Several>)
      return fmt::format("{}", fmt::join(target.get(), ","));
    else
      return fmt::format("{}", target);
  });
}

void set_from_text(Field& field, std::span<const std::string> texts, std::string_view called) {
  const bool list = std::holds_alternative<std::vector<std::string>*>(field.target);
  if (list && set_list(field, {texts.begin(), texts.end()})) return;
  if (texts.size() == 1 && store_text(field, texts[0])) return;
  const auto* choice = std::get_if<Choice>(&field.target);
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{}: expected {}; got {}", called, expected_value(field),
                          texts.empty() ? "nothing" : printable(texts.back())),
              choice && !texts.empty() ? did_you_mean(texts.back(), choice->names) : "");
}

void set_from_text(Field& field, const std::string& text, std::string_view called) {
  set_from_text(field, std::span(&text, 1), called);
}

bool set_number(Field& field, std::int64_t value) { return store(field, value); }
bool set_number(Field& field, std::uint64_t value) { return store(field, value); }
bool set_number(Field& field, double value) { return store(field, value); }

bool set_bool(Field& field, bool value) {
  bool* const* target = std::get_if<bool*>(&field.target);
  if (target != nullptr) **target = value;
  return target != nullptr;
}

bool set_text(Field& field, const std::string& value) {
  if (const auto* text = std::get_if<std::string*>(&field.target)) {
    **text = value;
    return true;
  }
  if (const auto* several = std::get_if<Several>(&field.target)) {
    return several->set(between_commas(value));
  }
  const auto* choice = std::get_if<Choice>(&field.target);
  return choice != nullptr && choice->set(value);
}

bool set_list(Field& field, std::vector<std::string> values) {
  if (const auto* several = std::get_if<Several>(&field.target)) return several->set(values);
  const auto* target = std::get_if<std::vector<std::string>*>(&field.target);
  if (target != nullptr) **target = std::move(values);
  return target != nullptr;
}

}  // namespace fovea
