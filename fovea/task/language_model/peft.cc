// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/peft.h"

#include <algorithm>
#include <map>
#include <set>
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
    a.ours = fmt::format("{}{}", ours, kAdapterA);
    b.ours = fmt::format("{}{}", ours, kAdapterB);
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

namespace {

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

std::vector<LowRankTarget> targets_of(const AdapterFolder& adapters, const AdaptedModelFile& base) {
  const LanguageModelConfig& config = base.model.config();
  const Architecture& row = architecture_for(config, base.architecture);
  std::map<std::string, TensorPlace, std::less<>> places;
  for (TensorPlace& place : tensor_places(row, ModelForm::kHuggingFace, config)) {
    if (place.shape.axes() == 2) places.emplace(place.theirs, std::move(place));
  }
  std::vector<LowRankTarget> targets;
  for (const std::string_view module : adapted_modules(adapters)) {
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
    targets.push_back(target_at(base.model, place));
  }
  return targets;
}

}  // namespace

std::unique_ptr<LowRankAdapters> load_adapters(const AdaptedModelFile& base,
                                               const AdapterChoice& choice) {
  require_adapter_folder(choice, "folders of train lm --lora, or of PEFT");
  const AdapterFolder read = is_peft(choice.folder)
                                 ? read_peft(choice.folder, WholeModules::kRefused)
                                 : read_run(choice.folder, base);
  require_new_adapters(base.path, read);
  return make_adapters(base.model.parameters(), targets_of(read, base), read, choice);
}

}  // namespace fovea
