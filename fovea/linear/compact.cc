// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/compact.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>

#include "fovea/base/check.h"

namespace fovea {

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr double kZeroLevel = 128, kMostLevels = 127;
constexpr std::string_view kBlocks[] = {"words.", "characters."};

std::string prefix_of(const NgramBlock& block) {
  return std::string(kBlocks[block.kind == NgramKind::kWords ? 0 : 1]);
}

// The share of the texts with an n-gram: idf = log((1 + texts) / (1 + with)) + 1.
double share_of(float idf) { return std::exp(1 - double{idf}); }

// A column with its block, and the name's number there.
struct Column {
  index column = 0;
  std::size_t block = 0;
  std::int32_t number = 0;
  double matters = 0;  // the mean square of what it adds to the logits, without the length
};

// The most important first.
std::vector<Column> by_importance(const LinearModel& model) {
  const std::vector<NgramBlock>& blocks = model.features().blocks;
  const std::vector<float>& weights = model.weights().weights;
  const auto K = static_cast<std::size_t>(model.weights().outputs());
  std::vector<Column> columns;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::int32_t n = 0; n < blocks[b].names.size(); ++n) {
      const double idf = double{blocks[b].idf[static_cast<std::size_t>(n)]};
      Column column{static_cast<index>(columns.size()), b, n};
      for (std::size_t k = 0; k < K; ++k) {
        const double added = idf * double{weights[columns.size() * K + k]};
        column.matters += added * added;
      }
      column.matters *= share_of(blocks[b].idf[static_cast<std::size_t>(n)]);
      columns.push_back(column);
    }
  }
  std::stable_sort(columns.begin(), columns.end(),
                   [](const Column& a, const Column& b) { return a.matters > b.matters; });
  return columns;
}

// By how much dropping n-grams of a block lowers the square of a text's length.
double longer_by(const NgramBlock& block, const std::vector<bool>& keeps) {
  double all = 0, kept = 0;
  for (std::size_t n = 0; n < block.idf.size(); ++n) {
    const double square = share_of(block.idf[n]) * std::pow(double{block.idf[n]}, 2);
    all += square;
    if (keeps[n]) kept += square;
  }
  return kept > 0 ? all / kept : 1;
}

// The length of a usual text is that many times the damping (damping_of in linear_model.cc).
constexpr double kUsualLength = 4;

// Moves the first `count` columns into a model of their own.
LinearModel model_of(const LinearModel& model, std::span<const Column> kept) {
  const NgramFeatures& features = model.features();
  const LinearWeights& all = model.weights();
  const auto K = static_cast<std::size_t>(all.outputs());
  NgramFeatures few{.rules = features.rules};
  LinearWeights weights = all;
  weights.weights.clear();
  std::vector<double> bias(all.weights.end() - static_cast<std::ptrdiff_t>(K), all.weights.end());
  index first = 0;
  for (std::size_t b = 0; b < features.blocks.size(); ++b) {
    const NgramBlock& block = features.blocks[b];
    std::vector<std::int32_t> numbers;
    std::vector<bool> keeps(block.idf.size());
    for (const Column& column : kept) {
      if (column.block != b) continue;
      numbers.push_back(column.number);
      keeps[static_cast<std::size_t>(column.number)] = true;
    }
    std::sort(numbers.begin(), numbers.end(), [&](std::int32_t one, std::int32_t other) {
      return block.names.name(one) < block.names.name(other);
    });
    const double longer = std::sqrt(longer_by(block, keeps));
    NgramBlock own{.kind = block.kind, .damping = block.damping / longer};
    for (const std::int32_t n : numbers) {
      own.names.add(block.names.name(n));
      own.idf.push_back(block.idf[static_cast<std::size_t>(n)]);
      const std::size_t row = static_cast<std::size_t>(first + n) * K;
      for (std::size_t k = 0; k < K; ++k) {
        weights.weights.push_back(static_cast<float>(double{all.weights[row + k]} / longer));
      }
    }
    // The bias gets the mean of what the others add.
    const double usual = std::hypot(kUsualLength, 1) * block.damping;
    const double share = 1 / std::sqrt(static_cast<double>(features.blocks.size()));
    for (std::size_t n = 0; usual > 0 && n < keeps.size(); ++n) {
      if (keeps[n]) continue;
      const double value = share_of(block.idf[n]) * double{block.idf[n]} * share / usual;
      const std::size_t row = (static_cast<std::size_t>(first) + n) * K;
      for (std::size_t k = 0; k < K; ++k) bias[k] += value * double{all.weights[row + k]};
    }
    first += block.names.size();
    few.blocks.push_back(std::move(own));
  }
  for (const double value : bias) weights.weights.push_back(static_cast<float>(value));
  return {std::move(few), std::move(weights)};
}

Bytes sorted_names(const NgramNames& names) {
  Bytes bytes;
  std::string_view before;
  for (std::int32_t n = 0; n < names.size(); ++n) {
    const std::string_view name = names.name(n);
    const auto differ = std::mismatch(before.begin(), before.end(), name.begin(), name.end());
    const auto shared = static_cast<std::size_t>(differ.second - name.begin());
    bytes.push_back(static_cast<std::uint8_t>(shared));
    bytes.insert(bytes.end(), name.begin() + static_cast<std::ptrdiff_t>(shared), name.end());
    bytes.push_back('\n');
    before = name;
  }
  return bytes;
}

std::uint8_t level_of(double weight, double largest) {
  if (largest == 0) return static_cast<std::uint8_t>(kZeroLevel);
  const double s = std::copysign(std::sqrt(std::abs(weight) / largest), weight);
  return static_cast<std::uint8_t>(std::lround(kZeroLevel + kMostLevels * s));
}

double weight_of(std::uint8_t level, double largest) {
  const double s = (static_cast<double>(level) - kZeroLevel) / kMostLevels;
  return largest * s * std::abs(s);
}

double step_of(std::span<const float> range) { return (double{range[1]} - double{range[0]}) / 255; }

Tensor tensor_of(const Bytes& bytes) {
  return Tensor::of<std::uint8_t>({static_cast<index>(bytes.size())},
                                  std::span<const std::uint8_t>(bytes));
}

void append_weights(const LinearModel& model, std::vector<NamedTensor>& all) {
  const index K = model.weights().outputs(), names = model.features().bias_column();
  const std::span<const float> weights(model.weights().weights);
  const auto of_names = weights.first(static_cast<std::size_t>(names * K));
  std::vector<float> largest(static_cast<std::size_t>(K));
  for (std::size_t i = 0; i < of_names.size(); ++i) {
    float& most = largest[i % static_cast<std::size_t>(K)];
    most = std::max(most, std::abs(of_names[i]));
  }
  Bytes levels;
  for (std::size_t i = 0; i < of_names.size(); ++i) {
    levels.push_back(
        level_of(double{of_names[i]}, double{largest[i % static_cast<std::size_t>(K)]}));
  }
  all.push_back({"weight.levels", tensor_of(levels).reshape({names, K})});
  all.push_back({"weight.largest", Tensor::of<float>({K}, largest)});
  all.push_back({"weight.bias", Tensor::of<float>({K}, weights.last(static_cast<std::size_t>(K)))});
}

void append_block(const NgramBlock& block, std::vector<NamedTensor>& all) {
  const std::string prefix = prefix_of(block);
  std::vector<float> range = {0, 0};
  if (!block.idf.empty()) {
    const auto [least, most] = std::minmax_element(block.idf.begin(), block.idf.end());
    range = {*least, *most};
  }
  const double step = step_of(range);
  Bytes levels;
  for (const float idf : block.idf) {
    const double level = step > 0 ? (double{idf} - double{range[0]}) / step : 0;
    levels.push_back(static_cast<std::uint8_t>(std::lround(level)));
  }
  all.push_back({prefix + "sorted_names", tensor_of(sorted_names(block.names))});
  all.push_back({prefix + "idf_levels", tensor_of(levels)});
  all.push_back({prefix + "idf_range", Tensor::of<float>({2}, range)});
}

double bytes_of(const std::vector<NamedTensor>& tensors) {
  constexpr double kHeader = 2048;  // of the file, which says names and shapes
  double bytes = kHeader;
  for (const auto& [name, tensor] : tensors) {
    bytes += static_cast<double>(tensor.size() * byte_size(tensor.dtype()));
  }
  return bytes;
}

}  // namespace

LinearModel pruned(const LinearModel& model, index bytes) {
  const std::vector<Column> columns = by_importance(model);
  const std::span<const Column> all(columns);
  const auto fits = [&](std::size_t count) {
    return bytes_of(compact_tensors(model_of(model, all.first(count)))) <=
           static_cast<double>(bytes);
  };
  // An n-gram takes at least a byte of idf, two of its name and one for each logit.
  const auto least = static_cast<std::size_t>(3 + model.weights().outputs());
  std::size_t fit = 0, most = std::min(all.size(), static_cast<std::size_t>(bytes) / least);
  if (fits(most)) return model_of(model, all.first(most));
  const std::size_t close = most / 100;  // one part in a hundred is near enough
  while (most - fit > std::max<std::size_t>(close, 1)) {
    const std::size_t middle = fit + (most - fit) / 2;
    (fits(middle) ? fit : most) = middle;
  }
  if (fit > 0) return model_of(model, all.first(fit));
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{} bytes have no room for an n-gram of {} outputs", bytes,
                          model.weights().outputs()),
              "allow more");
}

std::vector<NamedTensor> compact_tensors(const LinearModel& model) {
  std::vector<NamedTensor> all;
  append_weights(model, all);
  for (NamedTensor& tensor : model.tensors()) {
    const bool same = tensor.name == "prior" || tensor.name == "threshold" ||
                      tensor.name.starts_with("isotonic.") || tensor.name.ends_with(".damping");
    if (same) all.push_back(std::move(tensor));
  }
  for (const NgramBlock& block : model.features().blocks) append_block(block, all);
  return all;
}

bool is_compact(const Safetensors& tensors) { return tensors.find("weight.levels") != nullptr; }

namespace {

template <class T>
std::span<const T> values_of(const Safetensors& tensors, const std::string& name, index expected,
                             const std::string& where) {
  const Tensor& tensor = tensors.at(name);
  if (tensor.dtype() != kDTypeOf<T> || (expected >= 0 && tensor.size() != expected)) {
    fail(ErrorCode::kModelDamaged, "{}: tensor {}: expected {} {} values, got {} {}", where, name,
         expected < 0 ? "any number of" : std::to_string(expected), to_string(kDTypeOf<T>),
         tensor.size(), to_string(tensor.dtype()));
  }
  return {tensor.data<T>(), static_cast<std::size_t>(tensor.size())};
}

Bytes names_from(std::span<const std::uint8_t> bytes, const std::string& where) {
  Bytes text;
  std::size_t before = 0;  // where the name before begins
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t shared = bytes[at++];
    const std::size_t begin = text.size();
    if (shared > 0 && before + shared >= begin) {
      fail(ErrorCode::kModelDamaged, "{}: byte {} says that {} bytes are those of the name before",
           where, at - 1, shared);
    }
    for (std::size_t i = 0; i < shared; ++i) text.push_back(text[before + i]);
    while (at < bytes.size() && bytes[at] != '\n') text.push_back(bytes[at++]);
    if (at == bytes.size()) fail(ErrorCode::kModelDamaged, "{}: the last name has no end", where);
    text.push_back(bytes[at++]);
    before = begin;
  }
  return text;
}

void unpack_weights(const Safetensors& compact, const std::string& where,
                    std::vector<NamedTensor>& all) {
  const auto K = static_cast<index>(compact.at("weight.bias").size());
  const auto bias = values_of<float>(compact, "weight.bias", -1, where);
  const auto largest = values_of<float>(compact, "weight.largest", K, where);
  const auto levels = values_of<std::uint8_t>(compact, "weight.levels", -1, where);
  if (K == 0 || static_cast<index>(levels.size()) % K != 0) {
    fail(ErrorCode::kModelDamaged, "{}: {} levels are no rows of {}", where, levels.size(), K);
  }
  std::vector<float> weights;
  weights.reserve(levels.size() + bias.size());
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const float most = largest[i % static_cast<std::size_t>(K)];
    weights.push_back(static_cast<float>(weight_of(levels[i], double{most})));
  }
  weights.insert(weights.end(), bias.begin(), bias.end());
  const index rows = static_cast<index>(weights.size()) / K;
  all.push_back({"weight", Tensor::of<float>({rows, K}, std::span<const float>(weights))});
}

void unpack_block(const Safetensors& compact, const std::string& prefix, const std::string& where,
                  std::vector<NamedTensor>& all) {
  const auto packed = values_of<std::uint8_t>(compact, prefix + "sorted_names", -1, where);
  all.push_back(
      {prefix + "names",
       tensor_of(names_from(packed, fmt::format("{}: tensor {}sorted_names", where, prefix)))});
  const auto range = values_of<float>(compact, prefix + "idf_range", 2, where);
  std::vector<float> idf;
  for (const std::uint8_t level :
       values_of<std::uint8_t>(compact, prefix + "idf_levels", -1, where)) {
    idf.push_back(static_cast<float>(double{range[0]} + step_of(range) * level));
  }
  all.push_back({prefix + "idf",
                 Tensor::of<float>({static_cast<index>(idf.size())}, std::span<const float>(idf))});
}

}  // namespace

Safetensors unpacked(const Safetensors& compact, const std::string& where) {
  Safetensors plain{.tensors = {}, .metadata = compact.metadata};
  unpack_weights(compact, where, plain.tensors);
  for (const std::string_view block : kBlocks) {
    const std::string prefix(block);
    if (compact.find(prefix + "sorted_names") == nullptr) continue;
    unpack_block(compact, prefix, where, plain.tensors);
    plain.tensors.push_back({prefix + "damping", compact.at(prefix + "damping")});
  }
  for (const char* const name :
       {"prior", "threshold", "isotonic.ends", "isotonic.log_odds", "isotonic.probability"}) {
    if (const Tensor* tensor = compact.find(name)) plain.tensors.push_back({name, *tensor});
  }
  return plain;
}

}  // namespace fovea
