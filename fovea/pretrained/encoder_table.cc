// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/encoder_table.h"

#include <fmt/format.h>

#include "fovea/base/check.h"
#include "fovea/pretrained/hugging_face.h"

namespace fovea {

namespace {

constexpr index kMostBlocks = 1000, kMostWidth = index{1} << 20;

constexpr EncoderTensor kBert[] = {
    {"embedding.tokens", {"embeddings.word_embeddings"}},
    {"embedding.positions", {"embeddings.position_embeddings"}},
    {"types", {"embeddings.token_type_embeddings"}},
    {"embedding_norm", {"embeddings.LayerNorm"}},
    {"pooler", {"pooler.dense"}},
};

constexpr EncoderTensor kBertBlock[] = {
    {"attention.qkv", {"attention.self.query", "attention.self.key", "attention.self.value"}},
    {"attention.out", {"attention.output.dense"}},
    {"attention_norm", {"attention.output.LayerNorm"}},
    {"feed_forward.in", {"intermediate.dense"}},
    {"feed_forward.out", {"output.dense"}},
    {"feed_forward_norm", {"output.LayerNorm"}},
};

constexpr EncoderTensor kDistilBert[] = {
    {"embedding.tokens", {"embeddings.word_embeddings"}},
    {"embedding.positions", {"embeddings.position_embeddings"}},
    {"embedding_norm", {"embeddings.LayerNorm"}},
};

constexpr EncoderTensor kDistilBertBlock[] = {
    {"attention.qkv", {"attention.q_lin", "attention.k_lin", "attention.v_lin"}},
    {"attention.out", {"attention.out_lin"}},
    {"attention_norm", {"sa_layer_norm"}},
    {"feed_forward.in", {"ffn.lin1"}},
    {"feed_forward.out", {"ffn.lin2"}},
    {"feed_forward_norm", {"output_layer_norm"}},
};

constexpr EncoderTensor kMpnet[] = {
    {"embedding.tokens", {"embeddings.word_embeddings"}},
    {"embedding.positions", {"embeddings.position_embeddings"}},
    {"embedding_norm", {"embeddings.LayerNorm"}},
    {"distances", {"encoder.relative_attention_bias"}},
    {"pooler", {"pooler.dense"}},
};

constexpr EncoderTensor kMpnetBlock[] = {
    {"attention.qkv", {"attention.attn.q", "attention.attn.k", "attention.attn.v"}},
    {"attention.out", {"attention.attn.o"}},
    {"attention_norm", {"attention.LayerNorm"}},
    {"feed_forward.in", {"intermediate.dense"}},
    {"feed_forward.out", {"output.dense"}},
    {"feed_forward_norm", {"output.LayerNorm"}},
};

// The layers of a head that has two of its own.
constexpr EncoderArchitecture::Heads kTwoLayers = {
    .pooler = "classifier.dense", .text = "classifier.out_proj", .tokens = "classifier"};

// RoBERTa and XLM-RoBERTa differ in their tokenizers alone.
constexpr EncoderArchitecture roberta(std::string_view name, std::string_view class_name) {
  return {.name = name,
          .class_name = class_name,
          .prefix = "roberta.",
          .layer = "encoder.layer.",
          .tensors = kBert,
          .of_block = kBertBlock,
          .keys = {},
          .heads = kTwoLayers,
          .padding = PaddingRule::kFromFile};
}

constexpr EncoderArchitecture kEncoders[] = {
    {.name = "bert",
     .class_name = "Bert",
     .prefix = "bert.",
     .layer = "encoder.layer.",
     .tensors = kBert,
     .of_block = kBertBlock,
     .keys = {},
     .heads = {.pooler = "", .text = "classifier", .tokens = "classifier"}},
    roberta("roberta", "Roberta"),
    roberta("xlm-roberta", "XLMRoberta"),
    {.name = "distilbert",
     .class_name = "DistilBert",
     .prefix = "distilbert.",
     .layer = "transformer.layer.",
     .tensors = kDistilBert,
     .of_block = kDistilBertBlock,
     .keys = {.width = "dim",
              .layers = "n_layers",
              .heads = "n_heads",
              .ff = "hidden_dim",
              .activation = "activation",
              .norm_epsilon = "",
              .types = "",
              .dropout = "dropout",
              .text_dropout = "seq_classif_dropout",
              .usual_text_dropout = 0.2},
     .heads = {.pooler = "pre_classifier", .text = "classifier", .tokens = "classifier"},
     .pooled = Activation::kRelu},
    {.name = "mpnet",
     .class_name = "MPNet",
     .prefix = "mpnet.",
     .layer = "encoder.layer.",
     .tensors = kMpnet,
     .of_block = kMpnetBlock,
     .keys = {.types = "", .buckets = "relative_attention_num_buckets"},
     .heads = kTwoLayers,
     .padding = PaddingRule::kAlwaysOne},
};

std::string known_encoders() {
  std::string names;
  const std::size_t last = std::size(kEncoders) - 1;
  for (std::size_t n = 0; n <= last; ++n) {
    names += fmt::format("{}{}", n == 0 ? "" : n == last ? " and " : ", ", kEncoders[n].name);
  }
  return names;
}

std::int32_t padding_of(PaddingRule rule, const ForeignObject& config) {
  switch (rule) {
    case PaddingRule::kNone:
      return -1;
    case PaddingRule::kFromFile:
      return static_cast<std::int32_t>(config.whole("pad_token_id", 0, INT32_MAX, 1));
    case PaddingRule::kAlwaysOne:
      return 1;
  }
  return -1;
}

const EncoderTensor& row_of(std::span<const EncoderTensor> rows, std::string_view ours) {
  for (const EncoderTensor& row : rows) {
    if (row.ours == ours) return row;
  }
  fail(ErrorCode::kInternal, "encoder: no tensor is called {}", ours);
}

// "weight" of "output.weight"; tables have no such end, and are called weight elsewhere.
std::string_view part_of_name(std::string_view& ours) {
  for (const std::string_view part : {".weight", ".bias"}) {
    if (!ours.ends_with(part)) continue;
    ours.remove_suffix(part.size());
    return part;
  }
  return ".weight";
}

}  // namespace

const EncoderArchitecture& encoder_architecture(const ForeignObject& config) {
  const std::string name = config.text("model_type", "bert");
  for (const EncoderArchitecture& row : kEncoders) {
    if (row.name == name) return row;
  }
  config.refuse("model_type", known_encoders() + " here");
}

BertConfig encoder_config(const EncoderArchitecture& architecture, const ForeignObject& config) {
  const EncoderArchitecture::Keys& keys = architecture.keys;
  BertConfig c;
  c.vocabulary = config.whole("vocab_size", 1, INT32_MAX);
  c.width = config.whole(keys.width, 1, kMostWidth);
  c.layers = config.whole(keys.layers, 0, kMostBlocks);
  c.heads = config.whole(keys.heads, 1, kMostWidth);
  c.ff = config.whole(keys.ff, 1, kMostWidth);
  c.padding = padding_of(architecture.padding, config);
  const index first = c.padding + 1;
  c.block = config.whole("max_position_embeddings", first + 1, INT32_MAX) - first;
  c.types = keys.types.empty() ? 0 : config.whole(keys.types, 1, INT32_MAX, 2);
  if (!keys.norm_epsilon.empty()) c.norm_epsilon = config.number(keys.norm_epsilon, 0, 1, 1e-12);
  if (!keys.buckets.empty()) {
    c.buckets = 32;  // transformers computes with as many, whatever the file says
    config.require(keys.buckets, c.buckets);
  }
  if (c.width % c.heads != 0) {
    config.fail_value(keys.heads, fmt::format("a divisor of {} {}", keys.width, c.width));
  }
  c.activation = hugging_face_activation(config, keys.activation, "gelu", false);
  c.pooled = architecture.pooled;
  config.require("position_embedding_type", "absolute");
  config.require("is_decoder", false);
  config.require("add_cross_attention", false);
  config.require("is_encoder_decoder", false);
  config.require("quantization_config", Json());
  config.require("pruned_heads", Json(Json::Object{}));
  ignore_what_says_nothing(config);
  // How weights began, what training drops, and heads of other kinds.
  config.ignore({"_num_labels",
                 "attention_probs_dropout_prob",
                 "chunk_size_feed_forward",
                 "classifier_dropout",
                 "directionality",
                 "dropout",
                 "emb_size",
                 "embedding_size",
                 "finetuning_task",
                 "hidden_dropout_prob",
                 "num_labels",
                 "pooler_fc_size",
                 "pooler_num_attention_heads",
                 "pooler_num_fc_layers",
                 "pooler_size_per_head",
                 "pooler_type",
                 "prefix",
                 "qa_dropout",
                 "sep_token_id",
                 "seq_classif_dropout",
                 "sinusoidal_pos_embds",
                 "tie_weights_",
                 "tie_word_embeddings",
                 "torchscript",
                 "use_bfloat16"});
  config.refuse_others();
  return c;
}

void take_dropout(BertConfig& c, const EncoderArchitecture& architecture, const ForeignObject& said,
                  BertHead head) {
  constexpr double kUsual = 0.1, kMost = 0.99;
  const EncoderArchitecture::Keys& keys = architecture.keys;
  c.dropout = said.number(keys.dropout, 0, kMost, kUsual);
  const bool has_own = head == BertHead::kText || keys.usual_text_dropout < 0;
  const double usual = keys.usual_text_dropout < 0 ? c.dropout : keys.usual_text_dropout;
  c.head_dropout = has_own ? said.number(keys.text_dropout, 0, kMost, usual) : c.dropout;
}

std::vector<std::string> encoder_tensors(const EncoderArchitecture& architecture, BertHead head,
                                         std::string_view ours) {
  constexpr std::string_view kBlocks = "blocks.";
  const std::string_view part = part_of_name(ours);
  const auto of_head = [&](std::string_view name) {
    return std::vector<std::string>{fmt::format(".{}{}", name, part)};
  };
  const auto& [pooler, text, tokens] = architecture.heads;
  if (ours == "output") return of_head(head == BertHead::kText ? text : tokens);
  if (ours == "pooler" && head == BertHead::kText && !pooler.empty()) return of_head(pooler);
  std::span<const EncoderTensor> rows = architecture.tensors;
  std::string before;
  if (ours.starts_with(kBlocks)) {
    const std::size_t end = ours.find('.', kBlocks.size());
    before =
        fmt::format("{}{}.", architecture.layer, ours.substr(kBlocks.size(), end - kBlocks.size()));
    rows = architecture.of_block;
    ours.remove_prefix(end + 1);
  }
  std::vector<std::string> names;
  for (const std::string_view name : row_of(rows, ours).theirs) {
    if (!name.empty()) names.push_back(fmt::format("{}{}{}", before, name, part));
  }
  return names;
}

std::vector<std::string> encoder_tensor_names(const EncoderArchitecture& architecture,
                                              BertHead head, std::string_view ours) {
  std::vector<std::string> names = encoder_tensors(architecture, head, ours);
  const std::string_view prefix = head == BertHead::kNone ? "" : architecture.prefix;
  for (std::string& name : names) {
    name = name.starts_with('.') ? name.substr(1) : fmt::format("{}{}", prefix, name);
  }
  return names;
}

}  // namespace fovea
