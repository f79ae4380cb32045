// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/bert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/hugging_face.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr index kMostBlocks = 1000, kMostWidth = index{1} << 20;

// A parameter of ours, and the tensors whose rows it has, one behind another.
struct TensorNames {
  std::string_view ours;
  std::array<std::string_view, 3> theirs;
};

constexpr TensorNames kOutsideBlocks[] = {
    {"embedding.tokens", {"embeddings.word_embeddings.weight"}},
    {"embedding.positions", {"embeddings.position_embeddings.weight"}},
    {"types.weight", {"embeddings.token_type_embeddings.weight"}},
    {"embedding_norm.weight", {"embeddings.LayerNorm.weight"}},
    {"embedding_norm.bias", {"embeddings.LayerNorm.bias"}},
    {"pooler.weight", {"pooler.dense.weight"}},
    {"pooler.bias", {"pooler.dense.bias"}},
};

// Behind "blocks.N." and "encoder.layer.N.".
constexpr TensorNames kOfBlock[] = {
    {"attention.qkv.weight",
     {"attention.self.query.weight", "attention.self.key.weight", "attention.self.value.weight"}},
    {"attention.qkv.bias",
     {"attention.self.query.bias", "attention.self.key.bias", "attention.self.value.bias"}},
    {"attention.out.weight", {"attention.output.dense.weight"}},
    {"attention.out.bias", {"attention.output.dense.bias"}},
    {"attention_norm.weight", {"attention.output.LayerNorm.weight"}},
    {"attention_norm.bias", {"attention.output.LayerNorm.bias"}},
    {"feed_forward.in.weight", {"intermediate.dense.weight"}},
    {"feed_forward.in.bias", {"intermediate.dense.bias"}},
    {"feed_forward.out.weight", {"output.dense.weight"}},
    {"feed_forward.out.bias", {"output.dense.bias"}},
    {"feed_forward_norm.weight", {"output.LayerNorm.weight"}},
    {"feed_forward_norm.bias", {"output.LayerNorm.bias"}},
};
constexpr index kTensorsOfBlock = 16;

template <std::size_t N>
const TensorNames& row_of(const TensorNames (&rows)[N], std::string_view ours) {
  for (const TensorNames& row : rows) {
    if (row.ours == ours) return row;
  }
  fail(ErrorCode::kInternal, "bert: no tensor is called {}", ours);
}

// The names of the tensors of a parameter.
std::vector<std::string> tensors_of(std::string_view ours) {
  constexpr std::string_view kBlocks = "blocks.";
  const TensorNames* row = nullptr;
  std::string prefix;
  if (ours.starts_with(kBlocks)) {
    const std::size_t end = ours.find('.', kBlocks.size());
    prefix = fmt::format("encoder.layer.{}.", ours.substr(kBlocks.size(), end - kBlocks.size()));
    row = &row_of(kOfBlock, ours.substr(end + 1));
  } else {
    row = &row_of(kOutsideBlocks, ours);
  }
  std::vector<std::string> names;
  for (const std::string_view name : row->theirs) {
    if (!name.empty()) names.push_back(prefix + std::string(name));
  }
  return names;
}

class WeightReader {
 public:
  explicit WeightReader(const fs::path& folder)
      : folder_(folder), tensors_(folder), prefix_(prefix_of(tensors_)) {}

  bool has(const std::string& name) const { return tensors_.has(prefix_ + name); }

  // Before memory is taken for what the configuration says.
  void check_sizes(const BertConfig& c) const {
    check_shape(prefix_ + "embeddings.word_embeddings.weight", c.vocabulary, c.width);
    check_shape(prefix_ + "embeddings.position_embeddings.weight", c.block, c.width);
    check_shape(prefix_ + "embeddings.token_type_embeddings.weight", c.types, c.width);
    if (std::ssize(tensors_.names()) < c.layers * kTensorsOfBlock) {
      fail(ErrorCode::kModelDamaged, "{}: {} tensors are too few for {} layers", folder_.string(),
           tensors_.names().size(), c.layers);
    }
    if (c.layers > 0) {
      check_shape(prefix_ + "encoder.layer.0.intermediate.dense.weight", c.ff, c.width);
    }
    const double block =
        static_cast<double>(c.width) * static_cast<double>(4 * c.width + 2 * c.ff + 16);
    const double all = static_cast<double>(c.vocabulary + c.block + c.types + c.width) *
                           static_cast<double>(c.width) +
                       static_cast<double>(c.layers) * block;
    require_memory("the model", all * sizeof(float), "use a machine that has more memory");
  }

  void set(Parameter& parameter) {
    const Rows<float> to = parameter.value.rows<float>();
    const std::vector<std::string> names = tensors_of(parameter.name);
    const bool is_vector = parameter.value.shape().axes() == 1;
    const index parts = std::ssize(names);
    const index size = parameter.value.size() / parts;
    for (index n = 0; n < parts; ++n) {
      const std::string name = present(prefix_ + names[static_cast<std::size_t>(n)]);
      check_shape(name, is_vector ? size : to.rows / parts, is_vector ? 0 : to.columns);
      tensors_.read(name, {to.data + n * size, size});
      used_.insert(name);
    }
    ++parameter.version;
  }

  // What is no part of BERT itself: heads, and numbers that older versions have saved.
  void refuse_others() const {
    for (const std::string& name : tensors_.names()) {
      const bool is_head = name.starts_with("cls.") || name.starts_with("classifier.") ||
                           name.starts_with("qa_outputs.");
      if (is_head || name == prefix_ + "embeddings.position_ids" || used_.contains(name)) continue;
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("{}: the tensor {} is not one of BERT's: the model computes what "
                              "fovea does not know",
                              folder_.string(), printable(name)),
                  kReadableHint);
    }
  }

 private:
  static std::string prefix_of(const FolderTensors& tensors) {
    return tensors.has("bert.embeddings.word_embeddings.weight") ? "bert." : "";
  }

  // Models that were converted from TensorFlow call the parts of a norm gamma and beta.
  std::string present(std::string name) const {
    constexpr std::pair<std::string_view, std::string_view> kOlder[] = {
        {"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}};
    if (tensors_.has(name)) return name;
    for (const auto& [now, before] : kOlder) {
      if (!name.ends_with(now)) continue;
      const std::string older = name.substr(0, name.size() - now.size()) + std::string(before);
      if (tensors_.has(older)) return older;
    }
    return name;
  }

  void check_shape(const std::string& name, index rows, index columns) const {
    const Shape expected = columns == 0 ? Shape{rows} : Shape{rows, columns};
    const Shape& shape = tensors_.shape(name);
    if (shape == expected) return;
    fail(ErrorCode::kModelDamaged, "{}: the tensor {} is {}; config.json asks for {}",
         folder_.string(), name, to_string(shape), to_string(expected));
  }

  fs::path folder_;
  FolderTensors tensors_;
  std::string prefix_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace

BertConfig bert_config(const ForeignObject& config) {
  if (config.text("model_type", "bert") != "bert") config.refuse("model_type", "bert here");
  BertConfig c;
  c.vocabulary = config.whole("vocab_size", 1, INT32_MAX);
  c.width = config.whole("hidden_size", 1, kMostWidth);
  c.layers = config.whole("num_hidden_layers", 0, kMostBlocks);
  c.heads = config.whole("num_attention_heads", 1, kMostWidth);
  c.ff = config.whole("intermediate_size", 1, kMostWidth);
  c.block = config.whole("max_position_embeddings", 1, INT32_MAX);
  c.types = config.whole("type_vocab_size", 1, INT32_MAX, 2);
  c.norm_epsilon = config.number("layer_norm_eps", 0, 1, 1e-12);
  if (c.width % c.heads != 0) {
    config.fail_value("num_attention_heads", fmt::format("a divisor of hidden_size {}", c.width));
  }
  c.activation = hugging_face_activation(config, "hidden_act", "gelu", false);
  config.require("position_embedding_type", "absolute");
  config.require("is_decoder", false);
  config.require("add_cross_attention", false);
  config.require("is_encoder_decoder", false);
  config.require("quantization_config", Json());
  config.require("pruned_heads", Json(Json::Object{}));
  ignore_what_says_nothing(config);
  config.ignore({"attention_probs_dropout_prob", "chunk_size_feed_forward", "classifier_dropout",
                 "directionality", "emb_size", "embedding_size", "finetuning_task",
                 "hidden_dropout_prob", "pooler_fc_size", "pooler_num_attention_heads",
                 "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "prefix",
                 "sep_token_id", "tie_word_embeddings", "torchscript", "use_bfloat16"});
  config.refuse_others();
  return c;
}

Bert read_bert(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  const Json json = read_foreign_json(file);
  BertConfig config = bert_config(ForeignObject(json, file.string()));
  WeightReader reader(folder);
  config.pools = reader.has("pooler.dense.weight");
  reader.check_sizes(config);
  Bert model(config, {.memory = ParameterMemory::kUnwritten});
  for (Parameter* const parameter : model.parameters()) reader.set(*parameter);
  reader.refuse_others();
  return model;
}

}  // namespace fovea
