// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/base.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"

namespace fovea {

void require_as_base(const Field& said, const Field& base, const std::string& where) {
  if (value_text(said) == value_text(base)) return;
  const std::string option = option_name(said.last_name());
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{}: {} has {}, and a training that begins from it keeps that", option,
                          where, value_text(base)),
              fmt::format("leave {} out, or train a model from the start, without --base", option));
}

void require_as_base(std::span<const Field> said, std::span<const Field> base,
                     const std::vector<std::string>& set,
                     bool (*is_decided)(std::string_view field), const std::string& where) {
  for (std::size_t n = 0; n < said.size(); ++n) {
    if (contains(set, said[n].name) && is_decided(said[n].name))
      require_as_base(said[n], base[n], where);
  }
}

void require_none_idle(std::span<const Field> said, std::span<const Field> usual,
                       const std::vector<std::string>& set, bool (*is_idle)(std::string_view)) {
  for (std::size_t n = 0; n < said.size(); ++n) {
    if (!contains(set, said[n].name) || !is_idle(said[n].name)) continue;
    if (value_text(said[n]) == value_text(usual[n])) continue;
    const std::string option = option_name(said[n].last_name());
    throw Error(ErrorCode::kOptionValue, fmt::format("{}: has no effect with --base", option),
                fmt::format("leave {} out", option));
  }
}

namespace {

// The numbers in "7" or "2-5"; nothing for another text, or for a layer that there is not.
std::optional<std::pair<index, index>> layers_in(std::string_view text, index layers) {
  const std::size_t dash = text.find('-');
  const std::vector<index> first = parse_numbers(text.substr(0, dash), ','),
                           last = dash == text.npos ? first
                                                    : parse_numbers(text.substr(dash + 1), ',');
  if (first.size() != 1 || last.size() != 1) return std::nullopt;
  if (first[0] < 0 || first[0] > last[0] || last[0] >= layers) return std::nullopt;
  return std::pair(first[0], last[0]);
}

// The beginnings of the names of the parameters that are meant.
std::vector<std::string> prefixes_of(const BaseParts& parts, std::string_view said) {
  std::vector<std::string> prefixes;
  while (true) {
    const std::string_view part = said.substr(0, said.find(','));
    if (part == "embeddings") {
      prefixes.insert(prefixes.end(), parts.embeddings.begin(), parts.embeddings.end());
    } else if (const auto layers = layers_in(part, parts.layers)) {
      for (index n = layers->first; n <= layers->second; ++n) {
        prefixes.push_back(fmt::format("{}.{}.", parts.layer, n));
      }
    } else {
      throw Error(ErrorCode::kOptionValue,
                  fmt::format("--freeze: expected embeddings, or layers from 0 to {}; got {}",
                              parts.layers - 1, printable(part)),
                  "as in --freeze embeddings,0-3");
    }
    if (part.size() == said.size()) return prefixes;
    said.remove_prefix(part.size() + 1);
  }
}

}  // namespace

void freeze_parts(std::span<Parameter* const> parameters, const BaseParts& parts,
                  std::string_view said) {
  for (const std::string& prefix : prefixes_of(parts, said)) {
    bool found = false;
    for (Parameter* const parameter : parameters) {
      if (parameter->name.starts_with(prefix)) parameter->frozen = found = true;
    }
    check(found, "--freeze: no parameter begins with {}", prefix);
  }
  const auto is_frozen = [](const Parameter* parameter) { return parameter->frozen; };
  if (!std::ranges::all_of(parameters, is_frozen)) return;
  throw Error(ErrorCode::kOptionValue, fmt::format("--freeze {}: nothing is left to train", said),
              "freeze fewer parts");
}

std::vector<double> layer_rates(std::span<Parameter* const> parameters, const BaseParts& parts,
                                double decay) {
  if (decay == 1) return {};
  const auto rate_of = [&](const std::string& name) {
    for (const std::string& prefix : parts.embeddings) {
      if (name.starts_with(prefix)) return std::pow(decay, parts.layers + 1);
    }
    const std::string before = parts.layer + ".";
    if (!name.starts_with(before)) return 1.0;
    const std::vector<index> number = parse_numbers(
        std::string_view(name).substr(before.size(), name.find('.', before.size()) - before.size()),
        ',');
    return std::pow(decay, parts.layers - number.at(0));
  };
  std::vector<double> rates;
  for (const Parameter* const parameter : parameters) rates.push_back(rate_of(parameter->name));
  return rates;
}

index frozen_values(std::span<Parameter* const> parameters) {
  index count = 0;
  for (const Parameter* const parameter : parameters) {
    if (parameter->frozen) count += parameter->value.shape().size();
  }
  return count;
}

}  // namespace fovea
