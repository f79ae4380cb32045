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
#include "fovea/tensor/gguf_writer.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPartA = ".lora_A.weight", kPartB = ".lora_B.weight",
                           kPartM = ".lora_magnitude_vector";

// A run folder of --lora.
struct AdapterRun {
  LanguageModelSettings settings;
  const Architecture& row;
  Safetensors weights;
};

AdapterRun open_run(const fs::path& run) {
  LanguageModelSettings settings = load_settings(run);
  require_adapters(run, settings.from, "train lm");
  const TextCutter cutter = make_cutter(read_tokenizer_data(run), run.string());
  const std::string name = architecture_name(cutter.pretrained);
  Safetensors weights = read_adapters(run, settings, name);
  const Architecture& row = architecture_for(settings.model, name);
  return {std::move(settings), row, std::move(weights)};
}

// The modules that have adapters, by their whole names, without those of A and B.
std::set<std::string> modules_of(const Safetensors& weights) {
  std::set<std::string> modules;
  for (const NamedTensor& one : weights.tensors) {
    modules.insert(one.name.substr(0, one.name.rfind(".lora_")));
  }
  return modules;
}

}  // namespace

void export_peft(const fs::path& run, const fs::path& folder) {
  const auto [settings, row, weights] = open_run(run);
  std::set<std::string> products;
  for (const std::string& module : modules_of(weights)) {
    products.insert(module.substr(module.rfind('.') + 1));
  }
  // transformers keeps the matrices of GPT-2 transposed.
  write_peft(folder, weights.tensors, settings.from,
             {.target_modules = {products.begin(), products.end()},
              .modules_to_save = {},
              .task_type = "CAUSAL_LM",
              .transposed = row.name == "gpt2"});
}

namespace {

// The places of A and B of each product in a file of llama.cpp. Rows of B are those of the weight,
// so they have its order.
std::vector<TensorPlace> gguf_places(const AdapterRun& run) {
  const LanguageModelConfig& config = run.settings.model;
  std::map<std::pair<std::string, index>, TensorPlace> in_gguf;
  for (const TensorPlace& place : tensor_places(run.row, ModelForm::kGguf, config)) {
    in_gguf.emplace(std::pair(place.ours, place.first), place);
  }
  const std::set<std::string> modules = modules_of(run.weights);
  const index rank = run.settings.from.lora;
  std::vector<TensorPlace> places;
  for (const TensorPlace& place : tensor_places(run.row, ModelForm::kHuggingFace, config)) {
    const std::string_view module =
        std::string_view(place.theirs).substr(0, place.theirs.rfind('.'));
    const std::string ours = fmt::format("{}{}", kPeftPrefix, module);
    if (!place.theirs.ends_with(".weight") || !modules.contains(ours)) continue;
    const auto found = in_gguf.find({place.ours, place.first});
    check(found != in_gguf.end(), "{} has no place in a GGUF file", place.theirs);
    const TensorPlace& file = found->second;
    check(file.order != RowOrder::kTransposed, "{} is transposed in a GGUF file", file.theirs);
    TensorPlace a = file, b = file;
    a.ours = fmt::format("{}{}", ours, kPartA);
    b.ours = fmt::format("{}{}", ours, kPartB);
    a.theirs += ".lora_a";
    b.theirs += ".lora_b";
    a.first = b.first = 0;
    a.order = RowOrder::kAsTheyAre;
    a.shape = {rank, file.shape[1]};
    b.shape = {file.shape[0], rank};
    places.push_back(std::move(a));
    places.push_back(std::move(b));
  }
  check(std::size(places) == run.weights.tensors.size(), "adapters without a place");
  return places;
}

}  // namespace

void export_gguf_adapter(const fs::path& run, const fs::path& file) {
  const AdapterRun read = open_run(run);
  const LanguageModelBase& options = read.settings.from;
  if (options.dora) {
    throw Error(
        ErrorCode::kModelWrongKind,
        fmt::format("{}: the adapters have magnitudes (DoRA), which llama.cpp does not have",
                    run.string()),
        "export the whole model: fovea export --to gguf");
  }
  // llama.cpp divides alpha by the rank, and calls Mistral a Llama.
  const double alpha = adapter_scale(options) * static_cast<double>(options.lora);
  const bool mistral = read.row.name == "mistral";
  const std::vector<GgufEntry> metadata = {
      {"general.type", std::string("adapter")},
      {"general.architecture", std::string(mistral ? "llama" : read.row.name)},
      {"adapter.type", std::string("lora")},
      {"adapter.lora.alpha", static_cast<float>(alpha)}};
  const std::vector<NamedTensor> tensors =
      tensors_at(gguf_places(read), read.settings.model, read.weights.tensors);
  const std::string bytes =
      gguf_bytes(metadata, tensors, choose(gguf_weight_types(), "f32", "dtype"));
  require_disk_space(file.parent_path(), bytes.size());
  write_file_atomically(file, bytes);
}

AdapterChoice adapter_choice(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  if (equals == text.npos || fs::is_directory(text)) return {fs::path(text), 1};
  const char* const end = text.data() + text.size();
  double factor = 1;
  const auto [read, error] = std::from_chars(text.data() + equals + 1, end, factor);
  if (error != std::errc() || read != end) return {fs::path(text), 1};  // a folder of that name
  constexpr double kMostTimes = 1000;
  if (!(std::abs(factor) <= kMostTimes)) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--adapter {}: the factor must be from {} to {}", printable(text),
                            -kMostTimes, kMostTimes),
                "as in --adapter polite=0.5");
  }
  return {fs::path(text.substr(0, equals)), factor};
}

namespace {

// What a folder holds.
struct AdapterFolder {
  index rank = 0;
  double scale = 1;
  Magnitudes magnitudes = Magnitudes::kNone;
  Safetensors weights;
  std::string where = {};  // the file of these
};

// Other ways to begin (pissa, olora, corda, loftq) change the weights of the base, too, which PEFT
// does again when it loads the adapters.
void require_plain_start(const ForeignObject& config) {
  constexpr std::string_view kKey = "init_lora_weights";
  const Json* const start = config.find(kKey);
  if (start == nullptr || start->get_if<bool>() != nullptr) return;
  const std::string name = config.text(kKey);
  for (const char* const plain : {"gaussian", "orthogonal", "eva"}) {
    if (name == plain) return;
  }
  config.refuse(kKey, "true, false, gaussian, orthogonal and eva");
}

// The tensors as float32; PEFT often writes halves.
Safetensors read_peft_weights(const fs::path& path) {
  if (!fs::exists(path)) {
    throw Error(ErrorCode::kModelMissing, fmt::format("{}: no such file", path.string()),
                "save the adapters as safetensors, not as a .bin");
  }
  const FileSource file(path);
  const SafetensorsSource source(file, path.string());
  Safetensors read;
  for (std::size_t n = 0; n < source.names().size(); ++n) {
    Tensor values = Tensor::empty(source.shape(n));
    source.read_widened(n, values.vec<float>());
    read.tensors.push_back({source.names()[n], std::move(values)});
  }
  if (read.tensors.empty()) fail(ErrorCode::kModelDamaged, "{}: no tensors", path.string());
  return read;
}

AdapterFolder read_peft(const fs::path& folder) {
  const fs::path file = folder / kPeftFiles[1];
  const Json json = read_foreign_json(file);
  const ForeignObject config(json, file.string());
  config.require("peft_type", "LORA");
  config.require("bias", "none");
  for (const char* const key : {"lora_bias", "use_qalora"}) config.require(key, false);
  const index rank = config.whole("r", 1, 65536);
  const double alpha = config.number("lora_alpha", -1e9, 1e9);
  const bool by_root = config.flag("use_rslora", false), dora = config.flag("use_dora", false);
  require_plain_start(config);
  config.ignore({"base_model_name_or_path", "auto_mapping", "revision", "task_type",
                 "inference_mode", "lora_dropout", "target_modules", "exclude_modules",
                 "fan_in_fan_out", "peft_version", "layers_to_transform", "layers_pattern",
                 "megatron_core", "qalora_group_size", "ensure_weight_tying", "target_parameters"});
  config.ignore_what_is_off();
  config.refuse_others();
  const double root = std::sqrt(static_cast<double>(rank));
  return {.rank = rank,
          .scale = alpha / (by_root ? root : static_cast<double>(rank)),
          .magnitudes = dora ? Magnitudes::kLearned : Magnitudes::kNone,
          .weights = read_peft_weights(folder / kPeftFiles[0]),
          .where = (folder / kPeftFiles[0]).string()};
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
          .magnitudes = magnitudes_of(settings.from),
          .weights = read_adapters(folder, settings, base.architecture),
          .where = (folder / kWeightsName).string()};
}

// The module of a tensor: "model.layers.0.mlp.up_proj" of "base_model.model. ... .lora_A.weight".
std::string_view module_of(std::string_view tensor, const std::string& where) {
  constexpr std::string_view kParts[] = {kPartA, kPartB, kPartM};
  const auto* const part =
      std::ranges::find_if(kParts, [&](std::string_view one) { return tensor.ends_with(one); });
  if (!tensor.starts_with(kPeftPrefix) || part == std::end(kParts)) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: tensor {} is no adapter of a product", where, printable(tensor)),
                kReadableHint);
  }
  tensor.remove_prefix(kPeftPrefix.size());
  tensor.remove_suffix(part->size());
  return tensor;
}

// Before memory is taken for what the folder says.
void require_fitting(const AdapterFolder& adapters, const LowRankTarget& target,
                     std::string_view part, const Shape& shape) {
  const std::string name = fmt::format("{}{}", target.name, part);
  const Tensor* const found = adapters.weights.find(name);
  if (found != nullptr && found->shape() == shape) return;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: {} must be {}; it is {}", adapters.where, printable(name),
                          to_string(shape), found == nullptr ? "missing" : found->describe()),
              "the adapters belong to another model, or are of another rank than they say");
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
    if (adapters.magnitudes == Magnitudes::kNone && one.name.ends_with(kPartM)) {
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("{}: {} are magnitudes (DoRA), which {} does not ask for",
                              adapters.where, printable(one.name), kPeftFiles[1]),
                  "both files must be of the same adapters: 'use_dora' is true where there are "
                  "magnitudes");
    }
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
    if (place.ours.starts_with("embedding.")) {
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("{}: adapters of {}, which is a table and no product", adapters.where,
                              printable(module)),
                  kReadableHint);
    }
    LowRankTarget target = target_at(base.model, place);
    require_fitting(adapters, target, kPartA, {adapters.rank, target.weight->value.shape()[1]});
    require_fitting(adapters, target, kPartB, {target.rows, adapters.rank});
    if (adapters.magnitudes == Magnitudes::kLearned) {
      require_fitting(adapters, target, kPartM, {target.rows});
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

}  // namespace

std::unique_ptr<LowRankAdapters> load_adapters(const AdaptedModelFile& base,
                                               const AdapterChoice& choice) {
  const fs::path& folder = choice.folder;
  if (!fs::is_directory(folder)) {
    throw Error(
        ErrorCode::kModelMissing,
        fmt::format("--adapter: {}: {}", folder.string(),
                    fs::exists(folder) ? "a file, no folder" : "no such folder"),
        "name folders of train lm --lora, or of PEFT; all words behind --adapter are such, so "
        "a prompt stands before it");
  }
  const AdapterFolder read =
      fs::exists(folder / kPeftFiles[1]) ? read_peft(folder) : read_run(folder, base);
  if (read.magnitudes == Magnitudes::kLearned && choice.factor != 1) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--adapter {}={}: adapters with magnitudes (DoRA) count once",
                            folder.string(), choice.factor),
                "leave the factor out");
  }
  auto adapters =
      std::make_unique<LowRankAdapters>(base.model.parameters(), targets_of(read, base),
                                        LowRankOptions{.rank = read.rank,
                                                       .scale = choice.factor * read.scale,
                                                       .magnitudes = read.magnitudes,
                                                       .memory = ParameterMemory::kUnwritten});
  restore_parameters(adapters->parameters(), read.weights, read.where);
  const std::string bad = first_not_finite(parameter_tensors(adapters->parameters()));
  if (!bad.empty()) {
    fail(ErrorCode::kModelDamaged, "{}: a value of {} is not finite", read.where, printable(bad));
  }
  return adapters;
}

}  // namespace fovea
