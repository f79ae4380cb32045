// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/embed/embedder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/grad/ops.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/sentence_encoder.h"
#include "fovea/tensor/checksum.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/train/options.h"

namespace fovea {

namespace {

constexpr double kCostOfEmbedded = 20000;  // to read it: about that of so many flops
constexpr index kEmbeddedTokens = 1024;    // a longer text is a batch of its own
constexpr index kSmallestBatch = 256;      // tokens
// Where a model reads texts of any length, memory is foreseen for such; for longer ones as they
// come.
constexpr index kPlannedTokens = 4096;

PoolingKind pooling_of(EmbedPooling said, PoolingKind own) {
  switch (said) {
    case EmbedPooling::kMean:
      return PoolingKind::kMean;
    case EmbedPooling::kCls:
      return PoolingKind::kFirst;
    case EmbedPooling::kMax:
      return PoolingKind::kMax;
    case EmbedPooling::kModel:
      break;
  }
  return own;
}

// Divides by the length, as torch.nn.functional.normalize does.
void normalize(Vec<float> x) {
  constexpr double kLeast = 1e-12;
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  const double scale = 1 / std::max(std::sqrt(sum), kLeast);
  for (float& value : x) value = static_cast<float>(value * scale);
}

}  // namespace

std::string EmbedRules::text() const {
  return fmt::format("{} {} {} {} {}", to_string(pooling), normalizes, normalizes_again, columns,
                     prompt);
}

EmbedRules embed_rules(const SentenceModel& model, const EmbedOptions& options,
                       std::span<const std::string> said) {
  const auto is_said = [&](std::string_view name) {
    return std::find(said.begin(), said.end(), name) != said.end();
  };
  const SentenceSettings& own = model.settings;
  require_option(options.truncate_dim <= model.width(), "truncate_dim", options.truncate_dim,
                 "at most {}, the columns of the model's vectors", model.width());
  const bool says_normalize = is_said("normalize");
  return {.pooling = pooling_of(options.pooling, own.pooling),
          .normalizes = says_normalize ? options.normalize : own.normalizes,
          .normalizes_again = says_normalize && options.normalize && options.truncate_dim > 0,
          .prompt = is_said("prompt") ? options.prompt : own.prompt,
          .columns = options.truncate_dim > 0 ? options.truncate_dim : model.width()};
}

Embedder::Embedder(const Context& context, const SentenceModel& model, EmbedRules rules)
    : context_(context), model_(model), rules_(std::move(rules)), tapes_(context) {
  require_memory_for(std::clamp(model.settings.max_length, kEmbeddedTokens, kPlannedTokens));
}

void Embedder::require_memory_for(index longest) {
  if (longest <= planned_) return;
  planned_ = longest;
  const TapeLoad load{.tokens = longest,
                      .mode = TapeMode::kInference,
                      .sequences = longest,
                      .precision = context_.precision()};
  require_memory("the vectors",
                 model_.model.plan_apart(context_, load).bytes() +
                     plan_passes_apart(context_, model_.dense.config(), load).bytes(),
                 "use fewer threads (--threads), or a machine with more memory");
}

Rows<const float> Embedder::embed(std::span<const std::string_view> texts) {
  const auto count = static_cast<index>(texts.size());
  read_.resize(texts.size());
  context_.for_ranges(count, kCostOfEmbedded, [&](index begin, index end) {
    for (auto n = static_cast<std::size_t>(begin); n < static_cast<std::size_t>(end); ++n) {
      const std::string prompted =
          rules_.prompt.empty() ? std::string() : rules_.prompt + std::string(texts[n]);
      read_[n] = marked_tokens(*model_.tokenizer, prompted.empty() ? texts[n] : prompted,
                               model_.settings.max_length);
    }
  });
  std::vector<index> lengths;
  lengths.reserve(texts.size());
  for (const MarkedTokens& text : read_) {
    lengths.push_back(static_cast<index>(text.ids.size()));
    tokens_ += lengths.back();
    truncated_ += text.truncated ? 1 : 0;
  }
  if (count > 0) require_memory_for(*std::ranges::max_element(lengths));
  texts_ += count;
  values_.resize(texts.size() * static_cast<std::size_t>(rules_.columns));
  const BatchSizes sizes{.fewest = kSmallestBatch, .most = kEmbeddedTokens};
  tapes_.for_each(LengthBatches(lengths, sizes, context_.threads()),
                  [&](Tape& tape, std::span<const index> batch) { embed_batch(tape, batch); });
  return {values_.data(), count, rules_.columns};
}

Tensor Embedder::embed_all(std::span<const std::string> texts,
                           const std::function<void(index)>& done) {
  const auto count = static_cast<index>(texts.size());
  Tensor all = Tensor::empty({count, rules_.columns});
  std::vector<std::string_view> part;
  std::size_t bytes = 0;
  index first = 0;
  for (index n = 0; n < count; ++n) {
    part.push_back(texts[static_cast<std::size_t>(n)]);
    bytes += part.back().size();
    const bool is_full = part.size() >= kTextsAtOnce || bytes >= kBytesAtOnce;
    if (!is_full && n + 1 < count) continue;
    const Rows<const float> found = embed(part);
    for (index i = 0; i < found.rows; ++i) {
      std::copy_n(found[i], rules_.columns, all.rows<float>()[first + i]);
    }
    first = n + 1;
    part.clear();
    bytes = 0;
    done(first);
  }
  return all;
}

void Embedder::embed_batch(Tape& tape, std::span<const index> batch) {
  tape.reset(TapeMode::kInference);
  const auto text_at = [&](index n) -> const MarkedTokens& {
    return read_[static_cast<std::size_t>(batch[static_cast<std::size_t>(n)])];
  };
  const auto count = static_cast<index>(batch.size());
  auto* const offsets = tape.saved<std::int32_t>(count + 1);
  offsets[0] = 0;
  for (index n = 0; n < count; ++n) {
    offsets[n + 1] = offsets[n] + static_cast<std::int32_t>(text_at(n).ids.size());
  }
  auto* const ids = tape.saved<std::int32_t>(offsets[count]);
  for (index n = 0; n < count; ++n) {
    std::copy(text_at(n).ids.begin(), text_at(n).ids.end(), ids + offsets[n]);
  }
  const TextRows rows{.ids = {ids, offsets[count]}, .offsets = {offsets, count + 1}};
  const Variable found = model_.dense.forward(
      tape, pooled_rows(tape, rules_.pooling, model_.model.forward(tape, rows)));
  for (index n = 0; n < count; ++n) {
    float* const to = values_.data() + batch[static_cast<std::size_t>(n)] * rules_.columns;
    finish({found.value<float>()[n], model_.width()}, {to, rules_.columns});
  }
}

void Embedder::finish(Vec<const float> pooled_row, Vec<float> to) const {
  std::vector<float> x(pooled_row.begin(), pooled_row.end());
  if (rules_.normalizes) normalize(x);
  std::copy_n(x.begin(), to.size, to.begin());
  if (rules_.normalizes_again) normalize(to);
  if (std::all_of(to.begin(), to.end(), [](float value) { return std::isfinite(value); })) return;
  throw Error(ErrorCode::kModelDamaged, "a vector of the model is not finite",
              "get the model again");
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = "vectors", kKey = "fovea-vectors";
constexpr std::string_view kSmallerCorpus = "search a part of the corpus at a time";

double length_of_vector(Vec<const float> x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

// x / |x|; zeros stay zeros.
void make_unit(Vec<float> x) {
  const double length = length_of_vector(x);
  if (length == 0) return;
  for (float& value : x) value = static_cast<float>(value / length);
}

// A text of all that the vectors depend on.
std::string key_of(const Embedder& embedder, const SentenceModel& model,
                   std::span<const std::string> lines) {
  std::size_t next = 0;
  bool ends = false;  // the line was given; its end comes
  const std::string of_lines = xxh3_128_of([&]() -> std::string_view {
    if (ends) {
      ends = false;
      return "\n";
    }
    while (next < lines.size() && lines[next].empty()) {
      ++next;
      return "\n";
    }
    if (next == lines.size()) return {};
    ends = true;
    return lines[next++];
  });
  return xxh3_128(
      {of_lines, model.checksum, embedder.rules().text(), to_string(embedder.precision())});
}

// The vectors of the file, if they have the key.
std::optional<Tensor> read_kept(const fs::path& file, const std::string& key, const Shape& shape) {
  if (!fs::exists(fs::symlink_status(file))) return std::nullopt;
  Safetensors stored;
  try {
    const FileSource bytes(file);
    SafetensorsSource source(bytes, file.string());
    require_memory("the vectors", static_cast<double>(bytes.size()), kSmallerCorpus);
    source.verify(ChecksumRule::kRequired);
    stored = source.take();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutOfMemory) throw;
    throw Error(
        ErrorCode::kOutputExists,
        fmt::format("{}: is no file of vectors, or it is damaged: {}", file.string(), error.what()),
        "remove it, and the vectors are made again");
  }
  const auto found = stored.metadata.find(std::string(kKey));
  if (found == stored.metadata.end()) {
    throw Error(ErrorCode::kOutputExists,
                fmt::format("{}: was not written by fovea embed --search", file.string()),
                "move it away");
  }
  const Tensor* const vectors = stored.find(kName);
  const bool fits = found->second == key && vectors != nullptr &&
                    vectors->dtype() == DType::kFloat32 && vectors->shape() == shape;
  return fits ? std::optional<Tensor>(*vectors) : std::nullopt;
}

}  // namespace

double cosine(Vec<const float> a, Vec<const float> b) {
  const double both = length_of_vector(a) * length_of_vector(b);
  double sum = 0;
  for (index i = 0; i < a.size; ++i) sum += static_cast<double>(a[i]) * b[i];
  return both == 0 ? 0 : sum / both;
}

CorpusVectors corpus_vectors(Embedder& embedder, const SentenceModel& model,
                             const std::string& file, std::span<const std::string> lines,
                             const std::function<void(index)>& done) {
  const index columns = embedder.rules().columns;
  const auto count = static_cast<index>(lines.size());
  const fs::path kept = file + ".vectors.safetensors";
  const std::string key = key_of(embedder, model, lines);
  if (const auto vectors = read_kept(kept, key, {count, columns})) return {.vectors = *vectors};
  require_memory("the vectors",
                 2 * static_cast<double>(count) * static_cast<double>(columns) * sizeof(float),
                 kSmallerCorpus);
  CorpusVectors result{.vectors = embedder.embed_all(lines, done), .made = true};
  for (index n = 0; n < count; ++n) make_unit({result.vectors.rows<float>()[n], columns});
  try {
    const NamedTensor named[] = {{std::string(kName), result.vectors}};
    write_safetensors(kept, named, {{std::string(kKey), key}});
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutOfMemory) throw;
    result.notes.push_back(fmt::format("the vectors are not kept: {}", error.what()));
  }
  return result;
}

std::vector<std::vector<Hit>> nearest(const Context& context, const CorpusVectors& corpus,
                                      Rows<const float> queries, index top) {
  constexpr index kMostScores = index{1} << 24;  // at once
  const index lines = corpus.vectors.shape()[0], columns = queries.columns;
  std::vector<std::vector<Hit>> found(static_cast<std::size_t>(queries.rows));
  if (lines == 0) return found;
  const index at_once = std::max<index>(1, kMostScores / lines);
  Tape tape(context, TapeMode::kInference);
  for (index first = 0; first < queries.rows; first += at_once) {
    const index count = std::min(at_once, queries.rows - first);
    Tensor asked = Tensor::empty({count, columns});
    for (index n = 0; n < count; ++n) {
      std::copy_n(queries[first + n], columns, asked.rows<float>()[n]);
      make_unit({asked.rows<float>()[n], columns});
    }
    tape.reset(TapeMode::kInference);
    const Variable y = linear(tape, tape.constant(asked.rows<const float>()),
                              tape.constant(corpus.vectors.rows<float>()));
    const Rows<const float> scores = y.value<float>();
    context.for_ranges(count, 4.0 * static_cast<double>(lines), [&](index begin, index end) {
      std::vector<index> order(static_cast<std::size_t>(lines));
      for (index n = begin; n < end; ++n) {
        const float* const of = scores[n];
        std::iota(order.begin(), order.end(), index{0});
        const auto best = order.begin() + static_cast<std::ptrdiff_t>(std::min(top, lines));
        std::partial_sort(order.begin(), best, order.end(),
                          [&](index a, index b) { return of[a] != of[b] ? of[a] > of[b] : a < b; });
        auto& hits = found[static_cast<std::size_t>(first + n)];
        for (auto row = order.begin(); row != best; ++row) hits.push_back({*row, of[*row]});
      }
    });
  }
  return found;
}

}  // namespace fovea
