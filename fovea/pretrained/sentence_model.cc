// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/sentence_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/model/text_batch.h"
#include "fovea/pretrained/encoder.h"
#include "fovea/pretrained/folder_tensors.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/translator.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

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
  std::vector<fs::path> dense{};
  bool normalizes = false;
};

// What may follow what stands before it: any number of Dense, and Normalize at the end.
std::string_view known_module(std::size_t n, bool is_last) {
  constexpr std::string_view kFirst[] = {"Transformer", "Pooling"};
  if (n < std::size(kFirst)) return kFirst[n];
  return is_last ? "Dense or Normalize" : "Dense";
}

// Transformer, Pooling and, if they are there, Dense and Normalize, in this order.
Modules read_modules(const fs::path& folder) {
  constexpr std::size_t kMostModules = 16;
  const fs::path file = folder / "modules.json";
  if (!fs::exists(file)) return {.transformer = folder};
  const Json json = read_foreign_json(file);
  const auto* const array = json.get_if<Json::Array>();
  if (array == nullptr || array->size() < 2 || array->size() > kMostModules) {
    fail(array == nullptr ? ErrorCode::kModelDamaged : ErrorCode::kModelWrongKind,
         "{}: expected the modules Transformer, Pooling and perhaps Dense and Normalize",
         file.string());
  }
  Modules modules;
  for (std::size_t n = 0; n < array->size(); ++n) {
    const ForeignObject module((*array)[n], fmt::format("{}: module {}", file.string(), n));
    const std::string type = module.text("type");
    const std::string_view name = class_of(type);
    const bool is_last = n + 1 == array->size();
    const std::string_view known = known_module(n, is_last);
    const bool may_follow = name == "Dense" || (is_last && name == "Normalize");
    if (n < 2 ? name != known : !may_follow) {
      module.refuse("type", fmt::format("{} in this place", known));
    }
    const auto number = static_cast<index>(n);
    if (module.whole("idx", 0, kMostModules, number) != number) {
      module.fail_value("idx", fmt::format("{}", n));
    }
    const fs::path path = folder_of(module, folder);
    if (n == 0) modules.transformer = path;
    if (n == 1) modules.pooling = path;
    if (name == "Dense") modules.dense.push_back(path);
    if (name == "Normalize") modules.normalizes = true;
    module.ignore({"name", "kwargs"});
    module.refuse_others();
  }
  return modules;
}

// How later versions say that the rows of the encoder are what is pooled.
void require_rows_of_text(const ForeignObject& config) {
  const Json text = Json::Object{{"method", std::string("forward")},
                                 {"method_output_name", std::string("last_hidden_state")}};
  config.require("transformer_task", std::string("feature-extraction"));
  config.require("modality_config", Json::Object{{"text", text}});
  config.require("module_output_name", std::string("token_embeddings"));
}

// The longest text: as sentence_bert_config.json says, else as the encoder does, and never more
// than that has positions for.
index max_length_of(const fs::path& folder, index positions, index longest) {
  const fs::path own = folder / "sentence_bert_config.json";
  if (!fs::exists(own)) return longest;
  const Json json = read_foreign_json(own);
  const ForeignObject config(json, own.string());
  const index said = config.whole("max_seq_length", 1, INT32_MAX, longest);
  config.require("do_lower_case", false);
  require_rows_of_text(config);
  config.refuse_others();
  return std::min(said, positions);
}

std::string prompt_of(const fs::path& folder) {
  const fs::path file = folder / "config_sentence_transformers.json";
  if (!fs::exists(file)) return {};
  const Json json = read_foreign_json(file);
  const ForeignObject config(json, file.string());
  if (!config.has("default_prompt_name")) return {};
  return config.object("prompts").text(config.text("default_prompt_name"));
}

SentenceSettings settings_of(const Modules& modules, const fs::path& folder, index width,
                             index positions, index longest) {
  SentenceSettings settings{.normalizes = modules.normalizes,
                            .max_length = max_length_of(modules.transformer, positions, longest),
                            .prompt = prompt_of(folder)};
  if (modules.pooling) {
    const fs::path file = *modules.pooling / "config.json";
    const Json json = read_foreign_json(file);
    settings.pooling = pooling_of(ForeignObject(json, file.string()), width);
  }
  return settings;
}

// As PyTorch calls the functions of one number.
Activation activation_of_module(const ForeignObject& config) {
  constexpr std::pair<std::string_view, Activation> kFunctions[] = {
      {"Identity", Activation::kNone}, {"Tanh", Activation::kTanh}, {"ReLU", Activation::kRelu},
      {"GELU", Activation::kGelu},     {"SiLU", Activation::kSilu},
  };
  constexpr std::string_view kKey = "activation_function";
  const std::string name = config.text(kKey, "torch.nn.modules.activation.Tanh");
  if (name.starts_with("torch.nn.")) {
    for (const auto& [known, function] : kFunctions) {
      if (class_of(name) == known) return function;
    }
  }
  config.refuse(kKey, "Identity, Tanh, ReLU, GELU and SiLU of torch.nn");
}

DenseConfig dense_config(const fs::path& folder, index in) {
  constexpr index kMostWidth = index{1} << 20;
  const fs::path file = folder / "config.json";
  const Json json = read_foreign_json(file);
  const ForeignObject config(json, file.string());
  if (config.whole("in_features", 1, kMostWidth) != in) {
    config.fail_value("in_features", fmt::format("{}, as wide as what it reads", in));
  }
  const DenseConfig found{.in = in,
                          .out = config.whole("out_features", 1, kMostWidth),
                          .bias = config.flag("bias", true),
                          .residual = config.flag("use_residual", false),
                          .activation = activation_of_module(config)};
  for (const std::string_view key : {"module_input_name", "module_output_name"}) {
    config.require(key, std::string("sentence_embedding"));
  }
  config.refuse_others();
  return found;
}

// Before memory is taken for what the configuration says.
void check_dense(const FolderTensors& tensors, const DenseConfig& config, const fs::path& folder) {
  std::size_t count = 0;
  const auto check_shape = [&](const char* name, const Shape& expected) {
    ++count;
    const Shape& shape = tensors.shape(name);
    if (shape == expected) return;
    fail(ErrorCode::kModelDamaged, "{}: the tensor {} is {}; config.json asks for {}",
         folder.string(), name, to_string(shape), to_string(expected));
  };
  check_shape("linear.weight", {config.out, config.in});
  if (config.bias) check_shape("linear.bias", {config.out});
  if (config.projects()) check_shape("residual.weight", {config.out, config.in});
  if (tensors.names().size() == count) return;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: expected {} tensors of a Dense module, got {}", folder.string(),
                          count, tensors.names().size()),
              kReadableHint);
}

// "0.linear.weight" is linear.weight in the folder of the first of these modules.
Dense read_dense(const std::vector<fs::path>& folders, index width) {
  DenseConfigs configs;
  std::vector<FolderTensors> files;
  for (const fs::path& folder : folders) {
    configs.push_back(dense_config(folder, configs.empty() ? width : configs.back().out));
    files.emplace_back(folder);
    check_dense(files.back(), configs.back(), folder);
  }
  Dense dense(configs, {.memory = ParameterMemory::kUnwritten});
  for (Parameter* const one : dense.parameters()) {
    const std::size_t point = one->name.find('.');
    const std::size_t layer = std::stoul(one->name.substr(0, point));
    files[layer].read(one->name.substr(point + 1), one->value.vec<float>());
    require_finite(*one);
    ++one->version;
  }
  return dense;
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
        modules.transformer / "vocab.txt", modules.transformer / "spiece.model"}) {
    if (!fs::exists(file)) continue;
    all += xxh3_128(read_foreign_file(file, kMostTokenizerBytes));
  }
  for (const fs::path& dense : modules.dense) {
    all += xxh3_128(read_foreign_file(dense / "config.json", kMostTokenizerBytes));
  }
  return all;
}

std::string checksum_of(std::span<Parameter* const> parameters) {
  std::string all;
  for (const Parameter* const parameter : parameters) {
    const auto bytes = parameter->value.bytes();
    all += xxh3_128({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return all;
}

}  // namespace

fs::path transformer_folder(const fs::path& folder) { return read_modules(folder).transformer; }

SentenceSettings sentence_settings(const fs::path& folder, index width, index positions,
                                   index longest) {
  const Modules modules = read_modules(folder);
  if (!modules.dense.empty()) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: the module {} is Dense, and a training has no layers over the "
                            "pooled row",
                            (folder / "modules.json").string(), 2),
                "make vectors with the model: fovea embed, or fovea similar");
  }
  return settings_of(modules, folder, width, positions, longest);
}

namespace {

struct LoadedRows {
  RowEncoder model;
  EncoderText text;
};

LoadedRows load_rows(const fs::path& folder) {
  if (has_source_encoder(folder)) {
    ForeignSourceEncoder loaded = load_source_encoder(folder);
    return {RowEncoder(std::move(loaded.model)), std::move(loaded.text)};
  }
  LoadedEncoder loaded = load_encoder(folder, BertHead::kNone);
  return {RowEncoder(std::move(loaded.model)), {std::move(loaded.tokenizer), loaded.max_length}};
}

}  // namespace

SentenceModel load_sentence_model(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    const bool is_file = fs::exists(folder);
    throw Error(is_file ? ErrorCode::kModelWrongKind : ErrorCode::kModelMissing,
                fmt::format("{}: {}", folder.string(),
                            is_file ? "a file, and no folder of an encoder" : "no such folder"),
                "name a folder that sentence-transformers or transformers has saved");
  }
  const Modules modules = read_modules(folder);
  LoadedRows encoder = load_rows(modules.transformer);
  const index width = encoder.model.width();
  SentenceSettings settings =
      settings_of(modules, folder, width, encoder.model.block(), encoder.text.max_length);
  require_room_for_marks(*encoder.text.tokenizer, settings.max_length, folder.string());
  Dense dense = read_dense(modules.dense, width);
  std::string all = checksum_of(modules, folder) + checksum_of(encoder.model.parameters());
  if (!modules.dense.empty()) all += checksum_of(dense.parameters());
  return {.model = std::move(encoder.model),
          .tokenizer = std::move(encoder.text.tokenizer),
          .settings = std::move(settings),
          .checksum = xxh3_128(all),
          .dense = std::move(dense)};
}

}  // namespace fovea
