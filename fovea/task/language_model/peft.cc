// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/peft.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/words.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/task/language_model/adapters.h"
#include "fovea/task/load_parts.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace fs = std::filesystem;

void export_peft(const fs::path& run, const fs::path& folder) {
  const LanguageModelSettings settings = load_settings(run);
  const BaseOptions& options = settings.from;
  if (options.lora == 0) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: the folder holds no adapters", run.string()),
                "train some: fovea train lm --base MODEL --lora 8");
  }
  const TextCutter cutter = make_cutter(read_tokenizer_data(run), run.string());
  const std::string name = architecture_name(cutter.pretrained);
  const Safetensors weights = read_adapters(run, settings, name);
  std::set<std::string> products;
  for (const NamedTensor& one : weights.tensors) {
    const std::string_view target = std::string_view(one.name).substr(0, one.name.rfind(".lora_"));
    products.insert(std::string(target.substr(target.rfind('.') + 1)));
  }
  // transformers keeps the matrices of GPT-2 transposed.
  const bool transposed = architecture_for(settings.model, name).name == "gpt2";
  const Json::Object config = {{"base_model_name_or_path", options.base},
                               {"bias", "none"},
                               {"fan_in_fan_out", transposed},
                               {"inference_mode", true},
                               {"lora_alpha", alpha_of(options)},
                               {"lora_dropout", 0.0},
                               {"peft_type", "LORA"},
                               {"r", options.lora},
                               {"target_modules", Json::Array(products.begin(), products.end())},
                               {"task_type", "CAUSAL_LM"},
                               {"use_dora", false},
                               {"use_rslora", options.lora_rs}};
  const std::string bytes = safetensors_bytes(weights.tensors, {{"format", "pt"}});
  require_disk_space(folder, bytes.size());
  create_folders(folder);
  remove_file(folder / kPeftFiles[1]);
  write_file_atomically(folder / kPeftFiles[0], bytes);
  write_file_atomically(folder / kPeftFiles[1], Json(config).pretty());
}

AdapterChoice adapter_choice(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  if (equals == text.npos) return {fs::path(text), 1};
  const char* const end = text.data() + text.size();
  double factor = 1;
  const auto [read, error] = std::from_chars(text.data() + equals + 1, end, factor);
  if (error != std::errc() || read != end) return {fs::path(text), 1};  // a folder of that name
  if (!std::isfinite(factor)) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--adapter {}: the factor must be finite", printable(text)),
                "as in --adapter polite=0.5");
  }
  return {fs::path(text.substr(0, equals)), factor};
}

namespace {

constexpr std::string_view kPartA = ".lora_A.weight", kPartB = ".lora_B.weight";

// What a folder holds.
struct AdapterFolder {
  index rank = 0;
  double scale = 1;
  Safetensors weights;
  std::string where = {};  // the file of these
};

AdapterFolder read_peft(const fs::path& folder) {
  const fs::path file = folder / kPeftFiles[1];
  const Json json = read_foreign_json(file);
  const ForeignObject config(json, file.string());
  config.require("peft_type", "LORA");
  config.require("bias", "none");
  for (const char* const key : {"use_dora", "lora_bias", "use_qalora"}) config.require(key, false);
  const index rank = config.whole("r", 1, 65536);
  const double alpha = config.number("lora_alpha", -1e9, 1e9);
  const bool by_root = config.flag("use_rslora", false);
  config.ignore({"base_model_name_or_path", "auto_mapping", "revision", "task_type",
                 "inference_mode", "lora_dropout", "target_modules", "exclude_modules",
                 "init_lora_weights", "fan_in_fan_out", "peft_version", "layers_to_transform",
                 "layers_pattern", "megatron_core", "qalora_group_size", "ensure_weight_tying",
                 "target_parameters"});
  config.ignore_what_is_off();
  config.refuse_others();
  const fs::path weights = folder / kPeftFiles[0];
  const double root = std::sqrt(static_cast<double>(rank));
  return {.rank = rank,
          .scale = alpha / (by_root ? root : static_cast<double>(rank)),
          .weights = read_safetensors(weights),
          .where = weights.string()};
}

// Whether these are the weights of the model, or of that which its own adapters change.
bool stands_on(const fs::path& model, const std::string& checksum) {
  if (weights_checksum(model) == checksum) return true;
  return !is_pretrained(model) && load_settings(model).from.base_checksum == checksum;
}

// A run folder of --lora, whose base must be this model.
AdapterFolder read_run(const fs::path& folder, const AdaptedModelFile& base) {
  const LanguageModelSettings settings = load_settings(folder);
  if (settings.from.lora == 0) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: a whole model, not adapters", folder.string()),
                "name a folder of train lm --lora, or of PEFT");
  }
  if (!stands_on(base.path, settings.from.base_checksum)) {
    throw Error(
        ErrorCode::kModelWrongKind,
        fmt::format("{}: adapters of another model than {}", folder.string(), base.path.string()),
        fmt::format("they were trained on {}", settings.from.base));
  }
  return {.rank = settings.from.lora,
          .scale = adapter_scale(settings.from),
          .weights = read_adapters(folder, settings, base.architecture),
          .where = (folder / kWeightsName).string()};
}

// The module of a tensor: "model.layers.0.mlp.up_proj" of "base_model.model. ... .lora_A.weight".
std::string_view module_of(std::string_view tensor, const std::string& where) {
  const bool is_a = tensor.ends_with(kPartA);
  if (!tensor.starts_with(kPeftPrefix) || !(is_a || tensor.ends_with(kPartB))) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: tensor {} is no adapter of a product", where, printable(tensor)),
                kReadableHint);
  }
  tensor.remove_prefix(kPeftPrefix.size());
  tensor.remove_suffix((is_a ? kPartA : kPartB).size());
  return tensor;
}

std::vector<LowRankTarget> targets_of(const AdapterFolder& adapters, const AdaptedModelFile& base) {
  const LanguageModelConfig& config = base.model.config();
  const Architecture& row = architecture_for(config, base.architecture);
  std::map<std::string, TensorPlace, std::less<>> places;
  for (TensorPlace& place : tensor_places(row, ModelForm::kHuggingFace, config)) {
    if (place.shape.axes() == 2) places.emplace(place.theirs, std::move(place));
  }
  std::set<std::string_view> modules;
  for (const NamedTensor& one : adapters.weights.tensors) {
    modules.insert(module_of(one.name, adapters.where));
  }
  std::vector<LowRankTarget> targets;
  for (const std::string_view module : modules) {
    const auto found = places.find(fmt::format("{}.weight", module));
    if (found == places.end()) {
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("{}: adapters of {}, which {} does not have", adapters.where,
                              printable(module), base.path.string()),
                  "they belong to another model");
    }
    const TensorPlace& place = found->second;
    const auto weight = std::ranges::find(base.model.parameters(), place.ours, &Parameter::name);
    check(weight != base.model.parameters().end(), "no parameter {}", place.ours);
    const bool transposed = place.order == RowOrder::kTransposed;
    targets.push_back({.name = fmt::format("{}{}", kPeftPrefix, module),
                       .weight = *weight,
                       .first = place.first,
                       .rows = transposed ? place.shape[1] : place.shape[0]});
  }
  return targets;
}

}  // namespace

std::unique_ptr<LowRankAdapters> load_adapters(const AdaptedModelFile& base,
                                               const AdapterChoice& choice) {
  const fs::path& folder = choice.folder;
  if (!fs::is_directory(folder)) {
    throw Error(ErrorCode::kModelMissing,
                fmt::format("--adapter: {}: no such folder", folder.string()),
                "name a folder of train lm --lora, or of PEFT");
  }
  const AdapterFolder read =
      fs::exists(folder / kPeftFiles[1]) ? read_peft(folder) : read_run(folder, base);
  auto adapters = std::make_unique<LowRankAdapters>(
      base.model.parameters(), targets_of(read, base),
      LowRankOptions{.rank = read.rank, .scale = choice.factor * read.scale});
  restore_parameters(adapters->parameters(), read.weights, read.where);
  return adapters;
}

}  // namespace fovea
