// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/sentence_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/hugging_face.h"
#include "fovea/pretrained/tokenizer_files.h"
#include "fovea/tensor/checksum.h"

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

  // Heads, and numbers that older versions have saved, are no part of BERT itself and are passed
  // over.
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

namespace {

// The model of a folder, with or without a head, whose tensors are then left out.
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

struct PoolingMode {
  std::string_view flag, name;
  std::optional<PoolingKind> kind;
};

// As sentence-transformers calls them: each a flag, or a name in files of later versions.
constexpr PoolingMode kPoolingModes[] = {
    {"pooling_mode_cls_token", "cls", PoolingKind::kFirst},
    {"pooling_mode_mean_tokens", "mean", PoolingKind::kMean},
    {"pooling_mode_max_tokens", "max", PoolingKind::kMax},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", {}},
    {"pooling_mode_weightedmean_tokens", "weightedmean", {}},
    {"pooling_mode_lasttoken", "lasttoken", {}},
};
constexpr std::string_view kKnownPooling = "one of cls, mean and max";

PoolingKind pooling_of(const ForeignObject& config, index width) {
  for (const std::string_view key : {"word_embedding_dimension", "embedding_dimension"}) {
    if (config.whole(key, 1, INT32_MAX, width) != width) {
      config.fail_value(key, fmt::format("{}, the model's hidden_size", width));
    }
  }
  std::optional<PoolingKind> kind;
  const auto choose = [&](std::string_view key, const PoolingMode& mode) {
    if (kind || !mode.kind) config.refuse(key, kKnownPooling);
    kind = mode.kind;
  };
  for (const PoolingMode& mode : kPoolingModes) {
    if (config.flag(mode.flag, false)) choose(mode.flag, mode);
  }
  if (config.has("pooling_mode")) {
    const std::string name = config.text("pooling_mode");
    const auto* const mode = std::find_if(std::begin(kPoolingModes), std::end(kPoolingModes),
                                          [&](const PoolingMode& one) { return one.name == name; });
    if (mode == std::end(kPoolingModes)) config.refuse("pooling_mode", kKnownPooling);
    choose("pooling_mode", *mode);
  }
  if (!kind) config.fail_value("pooling_mode_mean_tokens", "a kind of pooling that is true");
  config.require("include_prompt", true);
  config.refuse_others();
  return *kind;
}

// "Pooling" of "sentence_transformers.models.Pooling"
std::string_view class_of(std::string_view type) {
  const std::size_t dot = type.rfind('.');
  return dot == type.npos ? type : type.substr(dot + 1);
}

// The folder of a module: a plain name, or none.
fs::path folder_of(const ForeignObject& module, const fs::path& folder) {
  const std::string path = module.text("path", "");
  const bool is_plain = path.find('/') == path.npos && path.find('\\') == path.npos &&
                        path.find('\0') == path.npos && !path.starts_with('.');
  if (!is_plain) module.fail_value("path", "the name of a folder inside the model's");
  return path.empty() ? folder : folder / path;
}

struct Modules {
  fs::path transformer;
  std::optional<fs::path> pooling{};
  bool normalizes = false;
};

// Transformer, Pooling and, if it is there, Normalize, in this order.
Modules read_modules(const fs::path& folder) {
  constexpr std::string_view kOrder[] = {"Transformer", "Pooling", "Normalize"};
  const fs::path file = folder / "modules.json";
  if (!fs::exists(file)) return {.transformer = folder};
  const Json json = read_foreign_json(file);
  const auto* const array = json.get_if<Json::Array>();
  if (array == nullptr || array->size() < 2 || array->size() > 3) {
    fail(array == nullptr ? ErrorCode::kModelDamaged : ErrorCode::kModelWrongKind,
         "{}: expected the modules Transformer, Pooling and perhaps Normalize", file.string());
  }
  Modules modules;
  for (std::size_t n = 0; n < array->size(); ++n) {
    const ForeignObject module((*array)[n], fmt::format("{}: module {}", file.string(), n));
    if (class_of(module.text("type")) != kOrder[n]) {
      module.refuse("type", fmt::format("{} in this place", kOrder[n]));
    }
    if (module.whole("idx", 0, 2, static_cast<index>(n)) != static_cast<index>(n)) {
      module.fail_value("idx", fmt::format("{}", n));
    }
    const fs::path path = folder_of(module, folder);
    if (n == 0) modules.transformer = path;
    if (n == 1) modules.pooling = path;
    if (n == 2) modules.normalizes = true;
    module.ignore({"name", "kwargs"});
    module.refuse_others();
  }
  return modules;
}

// The longest text: as sentence_bert_config.json says, else as the tokenizer does, and never more
// than the model has positions for.
index max_length_of(const fs::path& folder, index positions) {
  const fs::path rules = folder / "tokenizer_config.json",
                 own = folder / "sentence_bert_config.json";
  std::optional<index> longest;
  if (fs::exists(own)) {
    const Json json = read_foreign_json(own);
    const ForeignObject config(json, own.string());
    if (config.has("max_seq_length")) longest = config.whole("max_seq_length", 1, INT32_MAX);
    config.require("do_lower_case", false);
    config.refuse_others();
  }
  if (!longest && fs::exists(rules)) {
    const Json json = read_foreign_json(rules);
    // Models that say nothing have a number here that no text is as long as.
    longest = static_cast<index>(std::min(
        ForeignObject(json, rules.string()).number("model_max_length", 1, 1e300, INT32_MAX),
        static_cast<double>(INT32_MAX)));
  }
  return std::min(longest.value_or(positions), positions);
}

std::string prompt_of(const fs::path& folder) {
  const fs::path file = folder / "config_sentence_transformers.json";
  if (!fs::exists(file)) return {};
  const Json json = read_foreign_json(file);
  const ForeignObject config(json, file.string());
  if (!config.has("default_prompt_name")) return {};
  return config.object("prompts").text(config.text("default_prompt_name"));
}

// The checksum of the names and contents of all files that the vectors depend on.
std::string checksum_of(const Modules& modules, const fs::path& folder) {
  const fs::path pooling = modules.pooling.value_or(folder);
  std::string all;
  for (const fs::path& file :
       {folder / "modules.json", folder / "config_sentence_transformers.json",
        pooling / "config.json", modules.transformer / "config.json",
        modules.transformer / "sentence_bert_config.json",
        modules.transformer / "tokenizer_config.json", modules.transformer / "tokenizer.json",
        modules.transformer / "vocab.txt"}) {
    if (!fs::exists(file)) continue;
    all += xxh3_128(read_foreign_file(file, kMostTokenizerBytes));
  }
  return all;
}

std::string checksum_of(const Bert& model) {
  std::string all;
  for (const Parameter* parameter : model.parameters()) {
    const auto bytes = parameter->value.bytes();
    all += xxh3_128({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return all;
}

}  // namespace

SentenceModel load_sentence_model(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw Error(ErrorCode::kModelMissing, fmt::format("{}: no such folder", folder.string()),
                "name a folder that sentence-transformers or transformers has saved");
  }
  const Modules modules = read_modules(folder);
  SentenceModel result{
      .model = read_bert(modules.transformer),
      .tokenizer = std::make_unique<const WordPiece>(read_wordpiece(modules.transformer)),
      .settings = {.normalizes = modules.normalizes, .prompt = prompt_of(folder)},
      .checksum = {}};
  const BertConfig& config = result.model.config();
  if (result.tokenizer->size() > config.vocabulary) {
    fail(ErrorCode::kModelDamaged, "{}: the tokenizer has {} tokens, the model {}", folder.string(),
         result.tokenizer->size(), config.vocabulary);
  }
  if (modules.pooling) {
    const fs::path file = *modules.pooling / "config.json";
    const Json json = read_foreign_json(file);
    result.settings.pooling = pooling_of(ForeignObject(json, file.string()), config.width);
  }
  result.settings.max_length = max_length_of(modules.transformer, config.block);
  const WordPieceModel& words = result.tokenizer->model();
  const index marks = std::ssize(words.before) + std::ssize(words.after);
  if (marks > result.settings.max_length) {
    fail(ErrorCode::kModelDamaged, "{}: texts have {} marks and at most {} tokens", folder.string(),
         marks, result.settings.max_length);
  }
  result.checksum = xxh3_128(checksum_of(modules, folder) + checksum_of(result.model));
  return result;
}

}  // namespace fovea
