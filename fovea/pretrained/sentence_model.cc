// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/sentence_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/pretrained/encoder.h"
#include "fovea/pretrained/foreign_json.h"
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

// The longest text: as sentence_bert_config.json says, else as the encoder does, and never more
// than that has positions for.
index max_length_of(const fs::path& folder, index positions, index longest) {
  const fs::path own = folder / "sentence_bert_config.json";
  if (!fs::exists(own)) return longest;
  const Json json = read_foreign_json(own);
  const ForeignObject config(json, own.string());
  const index said = config.whole("max_seq_length", 1, INT32_MAX, longest);
  config.require("do_lower_case", false);
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

fs::path transformer_folder(const fs::path& folder) { return read_modules(folder).transformer; }

SentenceSettings sentence_settings(const fs::path& folder, index width, index positions,
                                   index longest) {
  return settings_of(read_modules(folder), folder, width, positions, longest);
}

SentenceModel load_sentence_model(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    const bool is_file = fs::exists(folder);
    throw Error(is_file ? ErrorCode::kModelWrongKind : ErrorCode::kModelMissing,
                fmt::format("{}: {}", folder.string(),
                            is_file ? "a file, and no folder of an encoder" : "no such folder"),
                "name a folder that sentence-transformers or transformers has saved");
  }
  const Modules modules = read_modules(folder);
  LoadedEncoder encoder = load_encoder(modules.transformer, BertHead::kNone);
  const BertConfig& config = encoder.model.config();
  SentenceSettings settings =
      settings_of(modules, folder, config.width, config.block, encoder.max_length);
  require_room_for_marks(*encoder.tokenizer, settings.max_length, folder.string());
  const std::string checksum = xxh3_128(checksum_of(modules, folder) + checksum_of(encoder.model));
  return {.model = std::move(encoder.model),
          .tokenizer = std::move(encoder.tokenizer),
          .settings = std::move(settings),
          .checksum = checksum};
}

}  // namespace fovea
