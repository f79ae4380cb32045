// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/text/keyed_hash.h"

namespace fovea {

namespace {

using Config = LanguageModelConfig;

index one(const Config&) { return 1; }  // a vector is a row
index vocabulary(const Config& c) { return c.vocabulary; }
index width(const Config& c) { return c.width; }
index hidden(const Config& c) { return c.ff; }
index queries(const Config& c) { return c.heads * c.head_dim; }
index keys(const Config& c) { return c.kv_heads * c.head_dim; }

constexpr std::string_view kLlamaKeys[] = {
    "vocab_size",
    "context_length",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "rope.freq_base",
    "rope.dimension_count",
    "tensor_data_layout",
};

std::span<const WeightRow> llama_weights() {
  static const std::vector<WeightRow> rows = {
      {"embedding.tokens", {{"token_embd.weight", vocabulary}}},
      {"blocks.{}.attention.qkv.weight",
       {{"blk.{}.attn_q.weight", queries, RowOrder::kQueryPairs},
        {"blk.{}.attn_k.weight", keys, RowOrder::kKeyPairs},
        {"blk.{}.attn_v.weight", keys}}},
      {"blocks.{}.attention.out.weight", {{"blk.{}.attn_output.weight", width}}},
      {"blocks.{}.attention_norm.weight", {{"blk.{}.attn_norm.weight", one}}},
      {"blocks.{}.feed_forward.in.weight", {{"blk.{}.ffn_up.weight", hidden}}},
      {"blocks.{}.feed_forward.gate.weight", {{"blk.{}.ffn_gate.weight", hidden}}},
      {"blocks.{}.feed_forward.out.weight", {{"blk.{}.ffn_down.weight", width}}},
      {"blocks.{}.feed_forward_norm.weight", {{"blk.{}.ffn_norm.weight", one}}},
      {"norm.weight", {{"output_norm.weight", one}}},
      {"output.weight", {{"output.weight", vocabulary}}},
  };
  return rows;
}

// ------------------------------------------------------------------------------------- weights

// The number of the layer in "blocks.12.attention.qkv.weight", if the name has the pattern.
std::optional<std::string> number_in(std::string_view name, std::string_view pattern) {
  const std::size_t hole = pattern.find("{}");
  if (hole == pattern.npos) return name == pattern ? std::optional<std::string>("") : std::nullopt;
  const std::string_view front = pattern.substr(0, hole), back = pattern.substr(hole + 2);
  if (name.size() <= front.size() + back.size() || !name.starts_with(front) ||
      !name.ends_with(back)) {
    return std::nullopt;
  }
  const std::string_view number =
      name.substr(front.size(), name.size() - front.size() - back.size());
  if (number.find_first_not_of("0123456789") != number.npos) return std::nullopt;
  return std::string(number);
}

class WeightReader {
 public:
  WeightReader(const Architecture& architecture, const Config& config, const TensorSource& tensors)
      : architecture_(architecture), config_(config), tensors_(tensors) {
    for (std::size_t n = 0; n < tensors.names().size(); ++n) places_.emplace(tensors.names()[n], n);
  }

  void set(Parameter& parameter) {
    for (const WeightRow& row : architecture_.weights) {
      const auto number = number_in(parameter.name, row.parameter);
      if (!number) continue;
      Rows<float> to = parameter.value.rows<float>();
      index begin = 0;
      for (const WeightPart& part : row.parts) {
        const index rows = part.rows(config_);
        copy(to.slice(begin, begin + rows), part, fmt::format(fmt::runtime(part.name), *number));
        begin += rows;
      }
      check(begin == to.rows, "{}: {} rows for {}", parameter.name, begin, to.rows);
      ++parameter.version;
      return;
    }
    fail(ErrorCode::kInternal, "no tensor of {} becomes {}", architecture_.name, parameter.name);
  }

  void refuse_others() const {
    for (const std::string& name : tensors_.names()) {
      if (places_.find(name)->second == kUsed) continue;
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("tensor {} is not one of {}'s: the model computes what fovea does "
                              "not know",
                              printable(name), architecture_.name),
                  "take a model without it");
    }
  }

 private:
  static constexpr std::size_t kUsed = ~std::size_t{0};

  void copy(Rows<float> to, const WeightPart& part, const std::string& name) {
    const auto found = places_.find(name);
    if (found == places_.end()) {
      throw Error(ErrorCode::kModelDamaged, fmt::format("tensor {} is missing", name),
                  "get the model again; a part of it may be in another file");
    }
    const Shape shape = tensors_.info(found->second).shape;
    const bool fits = shape.axes() == 2
                          ? shape[0] == to.rows && shape[1] == to.columns
                          : shape.axes() == 1 && to.rows == 1 && shape[0] == to.columns;
    if (!fits) {
      fail(ErrorCode::kModelDamaged, "tensor {} is {}; its sizes ask for [{}, {}]", name,
           to_string(shape), to.rows, to.columns);
    }
    const Tensor values = tensors_.read(found->second);
    found->second = kUsed;
    const index heads = part.order == RowOrder::kAsTheyAre  ? 0
                        : part.order == RowOrder::kKeyPairs ? config_.kv_heads
                                                            : config_.heads;
    copy_rows(values.rows<float>(), to, heads);
  }

  // With heads, rows 2 j and 2 j + 1 of each become its rows j and j + half.
  static void copy_rows(Rows<const float> from, Rows<float> to, index heads) {
    const index head = heads == 0 ? to.rows : to.rows / heads, half = head / 2;
    for (index n = 0; n < to.rows; ++n) {
      const index in_head = n % head;
      const index source = heads == 0 ? n : n - in_head + in_head % half * 2 + in_head / half;
      std::copy_n(from[source], to.columns, to[n]);
    }
  }

  const Architecture& architecture_;
  const Config& config_;
  const TensorSource& tensors_;
  KeyedMap<std::string, std::size_t> places_;  // kUsed: was read
};

}  // namespace

std::span<const Architecture> architectures() {
  static const Architecture rows[] = {{"llama", kLlamaKeys, llama_weights()}};
  return rows;
}

const Architecture& architecture(std::string_view name) {
  if (const Architecture* const row = find_named(architectures(), name)) return *row;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("the architecture {} is not one that fovea knows: {}", printable(name),
                          names_in(architectures())),
              "docs/models.md lists what can be read");
}

void set_weights(std::span<Parameter* const> parameters, const Architecture& architecture,
                 const LanguageModelConfig& config, const TensorSource& tensors) {
  WeightReader reader(architecture, config, tensors);
  for (Parameter* const parameter : parameters) reader.set(*parameter);
  reader.refuse_others();
}

}  // namespace fovea
