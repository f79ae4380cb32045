// SPDX-License-Identifier: Apache-2.0
// A folder of a translator as transformers would have written it, whose parts a test may change;
// and the pairs of golden batches.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/file.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/translator.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {

struct TranslatorFiles {
  /// Replaces a member of a JSON file, or adds it; an empty text removes it.
  void set(const std::string& file, const std::string& key, const std::string& value) {
    Json::Object object = parse_json(texts.at(file), {file}).object();
    std::erase_if(object, [&](const auto& member) { return member.first == key; });
    if (!value.empty()) object.emplace_back(key, parse_json(value, {"a test"}));
    texts[file] = Json(std::move(object)).line();
  }
  NamedTensor& tensor(std::string_view name) {
    return *std::ranges::find(tensors, name, &NamedTensor::name);
  }
  void remove(std::string_view name) {
    std::erase_if(tensors, [&](const NamedTensor& one) { return one.name == name; });
  }

  void write(const std::filesystem::path& folder) const {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    for (const auto& [name, text] : texts) write_file_atomically(folder / name, text);
    write_safetensors(folder / "model.safetensors", tensors);
  }

  std::map<std::string, std::string> texts;
  std::vector<NamedTensor> tensors;
};

using GoldenIds = std::vector<std::vector<std::int32_t>>;

/// The first sentences of `sources`, with their translations behind the mark of the beginning.
struct GoldenPairs {
  GoldenPairs(const GoldenIds& sources, const GoldenIds& targets, token begin) {
    for (std::size_t n = 0; n < targets.size(); ++n) {
      source.insert(source.end(), sources[n].begin(), sources[n].end());
      from.push_back(static_cast<std::int32_t>(source.size()));
      target.push_back(begin);
      target.insert(target.end(), targets[n].begin(), targets[n].end());
      to.push_back(static_cast<std::int32_t>(target.size()));
    }
  }
  TranslationBatch view() const {
    return {.source = {.ids = {source.data(), std::ssize(source)},
                       .offsets = {from.data(), std::ssize(from)}},
            .target = {.ids = {target.data(), std::ssize(target)},
                       .offsets = {to.data(), std::ssize(to)}}};
  }

  std::vector<std::int32_t> source, target, from = {0}, to = {0};
};

inline Translator in_double(const ForeignTranslator& loaded) {
  Translator model(loaded.config, 1, DType::kFloat64);
  for (std::size_t n = 0; n < model.parameters().size(); ++n) {
    const Tensor& from = loaded.model->parameters()[n]->value;
    Parameter& to = *model.parameters()[n];
    std::ranges::copy(from.vec<float>(), to.value.vec<double>().begin());
    ++to.version;
  }
  return model;
}

inline void expect_near(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t n = 0; n < found.size(); ++n) {
    EXPECT_NEAR(found[n], expected[n], 2e-5 * largest) << n;
  }
}

/// Token by token, with what is kept of those before.
inline std::vector<float> logits_of_steps(const ForeignTranslator& loaded,
                                          const GoldenPairs& pairs) {
  TranslatorDecoder decoder(Context(1), *loaded.model);
  decoder.begin(pairs.view().source);
  std::vector<std::vector<float>> rows(pairs.target.size());
  std::vector<index> going(pairs.to.size() - 1);
  std::iota(going.begin(), going.end(), index{0});
  std::vector<index> parents = going;
  for (index step = 0; !going.empty(); ++step) {
    std::vector<std::int32_t> ids;
    std::vector<std::size_t> places;
    for (const index pair : going) {
      places.push_back(static_cast<std::size_t>(pairs.to[static_cast<std::size_t>(pair)] + step));
      ids.push_back(pairs.target[places.back()]);
    }
    const auto logits = decoder.step(parents, {ids.data(), std::ssize(ids)});
    std::vector<index> next;
    parents.clear();
    for (std::size_t n = 0; n < going.size(); ++n) {
      const float* const row = logits[static_cast<index>(n)];
      rows[places[n]].assign(row, row + logits.columns);
      if (static_cast<std::int32_t>(places[n]) + 1 ==
          pairs.to[static_cast<std::size_t>(going[n]) + 1]) {
        continue;
      }
      next.push_back(going[n]);
      parents.push_back(static_cast<index>(n));
    }
    going = std::move(next);
  }
  std::vector<float> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

}  // namespace fovea
