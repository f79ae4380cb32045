// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/sentence_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/bert.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/wordpiece_files.h"
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

// Of all files that are there, by name and contents.
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
