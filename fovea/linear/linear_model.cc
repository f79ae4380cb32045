// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/linear_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"

namespace fovea {

namespace {

// From counts to (1 + log t) idf, or to idf, in place. Returns the square of the length.
double weigh(std::span<const std::int32_t> columns, std::span<float> values,
             const std::vector<float>& idf, bool binary) {
  double square = 0;
  for (std::size_t n = 0; n < columns.size(); ++n) {
    const double often = binary ? 1 : 1 + std::log(double{values[n]});
    const double value = often * double{idf[static_cast<std::size_t>(columns[n])]};
    values[n] = static_cast<float>(value);
    square += value * value;
  }
  return square;
}

double length_under(double square, double damping) { return std::sqrt(square + damping * damping); }

index names_in(const NgramFeatures& features) {
  index names = 0;
  for (const NgramBlock& block : features.blocks) names += block.names.size();
  return names;
}

// The part of a block in a row whose columns and values, weighed, are given: scaled, and its
// columns moved. Returns the square of its length.
double scale(std::span<std::int32_t> columns, std::span<float> values, double square,
             const NgramFeatures& features, std::size_t block, index first_column) {
  if (square == 0) return 0;
  const double share = 1 / std::sqrt(static_cast<double>(features.blocks.size()));
  const double factor = share / length_under(square, features.blocks[block].damping);
  for (float& value : values) value = static_cast<float>(double{value} * factor);
  for (std::int32_t& column : columns) column += static_cast<std::int32_t>(first_column);
  return factor * factor * square;
}

std::string_view prefix_of(NgramKind kind) {
  return kind == NgramKind::kWords ? "words." : "characters.";
}

}  // namespace

index NgramFeatures::columns() const { return names_in(*this) + 1; }

index NgramFeatures::values() const {
  index all = 0;
  for (const NgramBlock& block : blocks) all += block.values;
  return all;
}

std::string NgramFeatures::name(index column) const {
  for (const NgramBlock& block : blocks) {
    if (column < block.names.size()) {
      const std::string own(block.names.name(static_cast<std::int32_t>(column)));
      return block.kind == NgramKind::kWords ? own : fmt::format("[{}]", own);
    }
    column -= block.names.size();
  }
  return "";
}

NgramFeatures learn_features(std::span<const std::string> texts, const NgramRules& rules,
                             index outputs) {
  constexpr std::size_t kManyTexts = 1000;
  constexpr index kMostWeights = 100'000'000, kFewestKept = 10'000, kMostKept = 2'000'000;
  NgramFeatures features{.rules = rules};
  // Where there are many texts, an n-gram of one alone says nothing of others.
  const NgramLimits limits{.least_texts = texts.size() < kManyTexts ? 1 : 2,
                           .most_kept = std::clamp(kMostWeights / outputs, kFewestKept, kMostKept)};
  for (const NgramKind kind : {NgramKind::kWords, NgramKind::kCharacters}) {
    if (!rules.lengths(kind).any()) continue;
    CountedNgrams counted = count_ngrams(texts, rules, kind, limits);
    if (counted.names.size() == 0) continue;
    NgramBlock block{.kind = kind, .values = counted.values()};
    block.names = std::move(counted.names);
    const auto all = static_cast<double>(texts.size());
    for (const std::int32_t with : counted.texts) {
      block.idf.push_back(static_cast<float>(std::log((1 + all) / (1 + with)) + 1));
    }
    features.blocks.push_back(std::move(block));
  }
  if (!features.blocks.empty()) return features;
  throw Error(ErrorCode::kInputTooSmall, "the texts to train on have no n-gram that two share",
              "name a file with more text, or choose --model bag");
}

namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The number that dampens short texts: a part of the length of the usual ones.
double damping_of(const SparseRows& rows, const std::vector<double>& squares) {
  constexpr double kShare = 0.25;
  std::vector<double> lengths;
  for (index i = 0; i < rows.rows(); ++i) {
    if (squares[static_cast<std::size_t>(i)] > 0) {
      lengths.push_back(std::sqrt(squares[static_cast<std::size_t>(i)]));
    }
  }
  return kShare * median_of(std::move(lengths));
}

template <class T>
std::span<T> part_of(std::vector<T>& values, const SparseRows& rows, index i) {
  const index begin = rows.starts[static_cast<std::size_t>(i)];
  const index end = rows.starts[static_cast<std::size_t>(i) + 1];
  return std::span(values).subspan(static_cast<std::size_t>(begin),
                                   static_cast<std::size_t>(end - begin));
}

}  // namespace

SparseRows training_rows(const Context& context, std::span<const std::string> texts,
                         NgramFeatures& features) {
  const auto count = static_cast<index>(texts.size());
  std::vector<SparseRows> parts;
  std::vector<double> squares(texts.size());
  index first_column = 0, size = count;
  for (std::size_t b = 0; b < features.blocks.size(); ++b) {
    NgramBlock& block = features.blocks[b];
    SparseRows rows = count_rows(context, texts, features.rules, block.kind, block.names);
    std::vector<double> own(texts.size());
    context.for_ranges(count, 1000, [&](index begin, index end) {
      for (index i = begin; i < end; ++i) {
        own[static_cast<std::size_t>(i)] =
            weigh(part_of(rows.columns, rows, i), part_of(rows.values, rows, i), block.idf,
                  features.rules.binary);
      }
    });
    block.damping = damping_of(rows, own);
    context.for_ranges(count, 1000, [&](index begin, index end) {
      for (index i = begin; i < end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        squares[at] += scale(part_of(rows.columns, rows, i), part_of(rows.values, rows, i), own[at],
                             features, b, first_column);
      }
    });
    first_column += block.names.size();
    size += rows.size();
    parts.push_back(std::move(rows));
  }
  require_memory("the n-grams of the texts", SparseRows::bytes_of(static_cast<double>(size)),
                 "use less text, or a machine with more memory");
  SparseRows all;
  all.columns.reserve(static_cast<std::size_t>(size));
  all.values.reserve(static_cast<std::size_t>(size));
  for (index i = 0; i < count; ++i) {
    for (SparseRows& rows : parts) {
      const auto columns = part_of(rows.columns, rows, i);
      const auto values = part_of(rows.values, rows, i);
      all.columns.insert(all.columns.end(), columns.begin(), columns.end());
      all.values.insert(all.values.end(), values.begin(), values.end());
    }
    all.columns.push_back(static_cast<std::int32_t>(first_column));
    all.values.push_back(static_cast<float>(std::sqrt(squares[static_cast<std::size_t>(i)])));
    all.starts.push_back(static_cast<index>(all.columns.size()));
  }
  return all;
}

SparseRow FeatureReader::read(std::string_view text) {
  columns_.clear();
  values_.clear();
  reader_.read(text);
  double square = 0;
  index first_column = 0;
  for (std::size_t b = 0; b < features_.blocks.size(); ++b) {
    const NgramBlock& block = features_.blocks[b];
    const std::size_t begin = columns_.size();
    append_counts(reader_, block.kind, block.names, found_, columns_, values_);
    const auto columns = std::span(columns_).subspan(begin);
    const auto values = std::span(values_).subspan(begin);
    const double own = weigh(columns, values, block.idf, features_.rules.binary);
    square += scale(columns, values, own, features_, b, first_column);
    first_column += block.names.size();
  }
  columns_.push_back(static_cast<std::int32_t>(first_column));
  values_.push_back(static_cast<float>(std::sqrt(square)));
  return {columns_, values_};
}

double sigmoid(double z) {
  if (z >= 0) return 1 / (1 + std::exp(-z));
  const double e = std::exp(z);
  return e / (1 + e);
}

void to_log_odds(ClassifierTask task, std::span<double> logits) {
  if (task != ClassifierTask::kSingleLabel) return;
  const auto best = std::max_element(logits.begin(), logits.end());
  const double largest = *best;
  // The sum of the others may be far below the largest, so that one is never taken from the sum.
  double others = 0;
  for (auto z = logits.begin(); z != logits.end(); ++z) {
    if (z != best) others += std::exp(*z - largest);
  }
  for (auto z = logits.begin(); z != logits.end(); ++z) {
    const double rest = z == best ? others : 1 + others - std::exp(*z - largest);
    *z -= largest + std::log(std::max(rest, 1e-300));
  }
}

namespace {

void mapped_predictions(ClassifierTask task, std::span<const double> logits, float* values,
                        std::span<const IsotonicMap> isotonic) {
  std::vector<double> p(logits.begin(), logits.end());
  to_log_odds(task, p);
  double sum = 0;
  for (std::size_t k = 0; k < p.size(); ++k) sum += p[k] = isotonic[k](p[k]);
  if (task == ClassifierTask::kBinary) {
    values[0] = static_cast<float>(1 - p[0]);
    values[1] = static_cast<float>(p[0]);
    return;
  }
  const double all = task == ClassifierTask::kSingleLabel ? sum : 1;
  for (std::size_t k = 0; k < p.size(); ++k) values[k] = static_cast<float>(p[k] / all);
}

}  // namespace

void predictions_of(ClassifierTask task, std::span<const double> logits, float* values,
                    std::span<const IsotonicMap> isotonic) {
  if (!isotonic.empty()) return mapped_predictions(task, logits, values, isotonic);
  switch (task) {
    case ClassifierTask::kRegression:
    case ClassifierTask::kMultiLabel: {
      const bool is_number = task == ClassifierTask::kRegression;
      for (std::size_t k = 0; k < logits.size(); ++k) {
        values[k] = static_cast<float>(is_number ? logits[k] : sigmoid(logits[k]));
      }
      return;
    }
    case ClassifierTask::kBinary:
      values[0] = static_cast<float>(sigmoid(-logits[0]));
      values[1] = static_cast<float>(sigmoid(logits[0]));
      return;
    case ClassifierTask::kSingleLabel:
      break;
  }
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double z : logits) sum += std::exp(z - largest);
  for (std::size_t k = 0; k < logits.size(); ++k) {
    values[k] = static_cast<float>(std::exp(logits[k] - largest) / sum);
  }
}

LinearModel::LinearModel(NgramFeatures features, LinearWeights weights)
    : features_(std::move(features)), weights_(std::move(weights)) {
  const index expected = features_.columns() * weights_.outputs();
  check(static_cast<index>(weights_.weights.size()) == expected &&
            static_cast<index>(weights_.prior.size()) == weights_.outputs(),
        "linear model: {} weights and {} priors; expected {} and {}", weights_.weights.size(),
        weights_.prior.size(), expected, weights_.outputs());
}

index LinearModel::parameters() const {
  return static_cast<index>(weights_.weights.size() + weights_.prior.size());
}

void LinearModel::logits(const SparseRow& row, std::span<double> logits) const {
  const index K = weights_.outputs();
  std::copy(weights_.prior.begin(), weights_.prior.end(), logits.begin());
  for (std::size_t n = 0; n < row.columns.size(); ++n) {
    const float* const of_column = weights_.weights.data() + index{row.columns[n]} * K;
    const double value = double{row.values[n]};
    for (index k = 0; k < K; ++k) {
      logits[static_cast<std::size_t>(k)] += value * double{of_column[k]};
    }
  }
}

void LinearModel::predict(const SparseRow& row, float* values) const {
  constexpr index kFew = 16;
  const index K = weights_.outputs();
  double few[kFew];
  std::vector<double> many;
  std::span<double> z(few, static_cast<std::size_t>(std::min(K, kFew)));
  if (K > kFew) {
    many.resize(static_cast<std::size_t>(K));
    z = many;
  }
  logits(row, z);
  const bool is_known = row.values.back() > 0;
  predictions_of(
      weights_.task, z, values,
      is_known ? std::span<const IsotonicMap>(weights_.isotonic) : std::span<const IsotonicMap>());
}

LogitParts LinearModel::parts_of(std::string_view text, index output) const {
  check(output >= 0 && output < weights_.outputs(), "linear model: logit {} of {}", output,
        weights_.outputs());
  FeatureReader reader(features_);
  const SparseRow row = reader.read(text);
  const auto weight = [&](std::size_t n) {
    const index at = index{row.columns[n]} * weights_.outputs() + output;
    return double{row.values[n]} * double{weights_.weights[static_cast<std::size_t>(at)]};
  };
  const std::size_t last = row.columns.size() - 1;
  LogitParts parts{.base = double{weights_.prior[static_cast<std::size_t>(output)]} + weight(last)};
  index first_column = 0;
  for (const NgramBlock& block : features_.blocks) {
    const std::size_t begin = parts.shares.size();
    std::vector<std::int32_t> columns;
    reader.ngrams().for_each(block.kind,
                             [&](std::string_view name, std::size_t from, std::size_t to) {
                               const std::int32_t number = block.names.find(name);
                               if (number < 0) return;
                               columns.push_back(number + static_cast<std::int32_t>(first_column));
                               parts.shares.push_back({from, to, features_.name(columns.back())});
                             });
    // Each occurrence has an equal part of what its n-gram adds.
    std::vector<std::int32_t> sorted = columns;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t s = 0; s < columns.size(); ++s) {
      const auto at = std::lower_bound(row.columns.begin(), row.columns.end(), columns[s]);
      const auto [first, end] = std::equal_range(sorted.begin(), sorted.end(), columns[s]);
      parts.shares[begin + s].share = weight(static_cast<std::size_t>(at - row.columns.begin())) /
                                      static_cast<double>(end - first);
    }
    first_column += block.names.size();
  }
  return parts;
}

std::vector<index> LinearModel::strongest(index output, index count, bool largest) const {
  const index K = weights_.outputs(), names = features_.bias_column();
  std::vector<index> order(static_cast<std::size_t>(names));
  std::iota(order.begin(), order.end(), index{0});
  const auto weight = [&](index column) {
    const float w = weights_.weights[static_cast<std::size_t>(column * K + output)];
    return largest ? w : -w;
  };
  const auto kept = std::min(count, names);
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), [&](index a, index b) {
    return weight(a) != weight(b) ? weight(a) > weight(b) : a < b;
  });
  order.resize(static_cast<std::size_t>(kept));
  return order;
}

namespace {

// The points of all maps in turn, and where those of each end.
void append_isotonic(std::span<const IsotonicMap> maps, std::vector<NamedTensor>& all) {
  if (maps.empty()) return;
  std::vector<std::int64_t> ends;
  std::vector<float> log_odds, probabilities;
  for (const IsotonicMap& map : maps) {
    log_odds.insert(log_odds.end(), map.log_odds.begin(), map.log_odds.end());
    probabilities.insert(probabilities.end(), map.probabilities.begin(), map.probabilities.end());
    ends.push_back(static_cast<std::int64_t>(log_odds.size()));
  }
  const auto points = static_cast<index>(log_odds.size());
  all.push_back({"isotonic.ends", Tensor::of<std::int64_t>({static_cast<index>(ends.size())},
                                                           std::span<const std::int64_t>(ends))});
  all.push_back(
      {"isotonic.log_odds", Tensor::of<float>({points}, std::span<const float>(log_odds))});
  all.push_back(
      {"isotonic.probability", Tensor::of<float>({points}, std::span<const float>(probabilities))});
}

}  // namespace

std::vector<NamedTensor> LinearModel::tensors() const {
  const index K = weights_.outputs();
  std::vector<NamedTensor> all;
  all.push_back({"weight", Tensor::of<float>({features_.columns(), K}, weights_.weights)});
  all.push_back({"prior", Tensor::of<float>({K}, weights_.prior)});
  if (const auto& thresholds = weights_.thresholds; !thresholds.empty()) {
    all.push_back({"threshold", Tensor::of<float>({weights_.classes}, thresholds)});
  }
  append_isotonic(weights_.isotonic, all);
  for (const NgramBlock& block : features_.blocks) {
    const std::string prefix(prefix_of(block.kind));
    const std::string& names = block.names.text();
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(names.data()), names.size());
    all.push_back(
        {prefix + "names", Tensor::of<std::uint8_t>({static_cast<index>(bytes.size())}, bytes)});
    all.push_back({prefix + "idf", Tensor::of<float>({block.names.size()}, block.idf)});
    all.push_back({prefix + "damping", Tensor::of<double>({1}, std::span(&block.damping, 1))});
  }
  return all;
}

index predict_texts(const Context& context, const LinearModel& model,
                    std::span<const std::string_view> texts, float* values) {
  constexpr index kTogether = 32;
  const index classes = model.weights().classes, count = static_cast<index>(texts.size());
  std::vector<index> known(texts.size());
  context.for_each((count + kTogether - 1) / kTogether, [&](index item) {
    FeatureReader reader(model.features());
    for (index i = item * kTogether; i < std::min(count, (item + 1) * kTogether); ++i) {
      const SparseRow row = reader.read(texts[static_cast<std::size_t>(i)]);
      model.predict(row, values + i * classes);
      known[static_cast<std::size_t>(i)] = static_cast<index>(row.columns.size()) - 1;
    }
  });
  return std::accumulate(known.begin(), known.end(), index{0});
}

namespace {

// The values of a tensor of one axis or of [n / columns, columns]; all must be finite.
template <class T>
std::vector<T> values_of(const Safetensors& tensors, const std::string& name, index columns,
                         const std::string& where) {
  const Tensor& tensor = tensors.at(name);
  const bool is_list = tensor.shape().axes() == 1;
  const bool fits = tensor.dtype() == kDTypeOf<T> && (is_list || tensor.shape().axes() == 2) &&
                    (columns == 0 ? is_list : tensor.shape().back() == columns);
  if (!fits) {
    fail(ErrorCode::kModelDamaged, "{}: tensor {}: expected {} of shape [{}], got {} {}", where,
         name, to_string(kDTypeOf<T>), columns == 0 ? "n" : fmt::format("n, {}", columns),
         to_string(tensor.dtype()), to_string(tensor.shape()));
  }
  const T* const data = tensor.data<T>();
  std::vector<T> values(data, data + tensor.size());
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::all_of(values.begin(), values.end(), [](T v) { return std::isfinite(v); })) {
      fail(ErrorCode::kModelDamaged, "{}: tensor {} has values that are not finite", where, name);
    }
  }
  return values;
}

NgramBlock block_from(const Safetensors& tensors, NgramKind kind, const std::string& where) {
  const std::string prefix(prefix_of(kind));
  const auto bytes = values_of<std::uint8_t>(tensors, prefix + "names", 0, where);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  NgramBlock block{
      .kind = kind,
      .names = NgramNames::from_text(text, fmt::format("{}: tensor {}names", where, prefix)),
      .idf = values_of<float>(tensors, prefix + "idf", 0, where)};
  const auto damping = values_of<double>(tensors, prefix + "damping", 0, where);
  if (damping.size() != 1 || damping[0] < 0 ||
      static_cast<index>(block.idf.size()) != block.names.size()) {
    fail(ErrorCode::kModelDamaged, "{}: expected a damping and {} numbers in {}idf, got {} and {}",
         where, block.names.size(), prefix, damping.size(), block.idf.size());
  }
  block.damping = damping[0];
  return block;
}

std::vector<IsotonicMap> isotonic_from(const Safetensors& tensors, index outputs,
                                       const std::string& where) {
  const bool has_maps = std::any_of(tensors.tensors.begin(), tensors.tensors.end(),
                                    [](auto& t) { return t.name.starts_with("isotonic."); });
  if (!has_maps) return {};
  const auto ends = values_of<std::int64_t>(tensors, "isotonic.ends", 0, where);
  const auto log_odds = values_of<float>(tensors, "isotonic.log_odds", 0, where);
  const auto probabilities = values_of<float>(tensors, "isotonic.probability", 0, where);
  const auto all = static_cast<std::int64_t>(log_odds.size());
  std::vector<IsotonicMap> maps;
  bool fits = static_cast<index>(ends.size()) == outputs && !ends.empty() && ends.back() == all &&
              log_odds.size() == probabilities.size();
  std::int64_t begin = 0;
  for (std::size_t k = 0; fits && k < ends.size(); begin = ends[k++]) {
    fits = begin < ends[k] && ends[k] <= all;
    if (!fits) break;
    IsotonicMap map{{log_odds.begin() + begin, log_odds.begin() + ends[k]},
                    {probabilities.begin() + begin, probabilities.begin() + ends[k]}};
    fits = std::adjacent_find(map.log_odds.begin(), map.log_odds.end(), std::greater_equal<>()) ==
               map.log_odds.end() &&
           std::is_sorted(map.probabilities.begin(), map.probabilities.end()) &&
           map.probabilities.front() > 0 && map.probabilities.back() < 1;
    maps.push_back(std::move(map));
  }
  if (fits) return maps;
  fail(ErrorCode::kModelDamaged,
       "{}: tensors isotonic.*: expected ascending points for each of {} outputs", where, outputs);
}

}  // namespace

LinearModel linear_model_from(const Safetensors& tensors, const NgramRules& rules,
                              const ClassifierConfig& config, const std::string& where) {
  NgramFeatures features{.rules = rules};
  for (const NgramKind kind : {NgramKind::kWords, NgramKind::kCharacters}) {
    if (tensors.find(std::string(prefix_of(kind)) + "names") == nullptr) continue;
    features.blocks.push_back(block_from(tensors, kind, where));
  }
  LinearWeights weights{.task = config.task, .classes = config.classes};
  const index K = weights.outputs();
  weights.weights = values_of<float>(tensors, "weight", K, where);
  weights.prior = values_of<float>(tensors, "prior", 0, where);
  const index rows = static_cast<index>(weights.weights.size()) / K;
  if (rows != features.columns() || static_cast<index>(weights.prior.size()) != K) {
    fail(ErrorCode::kModelDamaged,
         "{}: expected weights of {} n-grams and a bias, and {} priors; got {} rows and {} priors",
         where, features.bias_column(), K, rows, weights.prior.size());
  }
  if (tensors.find("threshold") != nullptr) {
    weights.thresholds = values_of<float>(tensors, "threshold", 0, where);
    const auto is_one = [](float value) { return value > 0 && value <= 1; };
    if (static_cast<index>(weights.thresholds.size()) != weights.classes ||
        !std::all_of(weights.thresholds.begin(), weights.thresholds.end(), is_one)) {
      fail(ErrorCode::kModelDamaged, "{}: tensor threshold: expected {} numbers in (0, 1]", where,
           weights.classes);
    }
  }
  weights.isotonic = isotonic_from(tensors, K, where);
  return {std::move(features), std::move(weights)};
}

}  // namespace fovea
