// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/peft.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <system_error>
#include <utility>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace fs = std::filesystem;

AdapterChoice adapter_choice(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  if (equals == text.npos || fs::is_directory(text)) return {fs::path(text), 1};
  const char* const end = text.data() + text.size();
  double factor = 1;
  const auto [read, error] = std::from_chars(text.data() + equals + 1, end, factor);
  const bool is_number = error != std::errc::invalid_argument && read == end;
  if (!is_number) return {fs::path(text), 1};  // a folder of that name
  constexpr double kMostTimes = 1000;
  if (error != std::errc() || !(std::abs(factor) <= kMostTimes)) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--adapter {}: the factor must be from {} to {}", printable(text),
                            -kMostTimes, kMostTimes),
                "as in --adapter polite=0.5");
  }
  return {fs::path(text.substr(0, equals)), factor};
}

void require_adapter_folder(const AdapterChoice& choice, std::string_view named) {
  const fs::path& folder = choice.folder;
  if (fs::is_directory(folder)) return;
  throw Error(ErrorCode::kModelMissing,
              fmt::format("--adapter: {}: {}", folder.string(),
                          fs::exists(folder) ? "a file, no folder" : "no such folder"),
              fmt::format("name {}; all words behind --adapter are such, so a prompt or a text "
                          "stands before it",
                          named));
}

namespace {

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
  double bytes = 0;
  for (std::size_t n = 0; n < source.names().size(); ++n) {
    bytes += sizeof(float) * static_cast<double>(source.shape(n).size());
  }
  require_memory("the adapters", bytes,
                 "free some memory; adapters are small, so this may be another file");
  Safetensors read;
  for (std::size_t n = 0; n < source.names().size(); ++n) {
    Tensor values = Tensor::empty(source.shape(n));
    source.read_widened(n, values.vec<float>());
    read.tensors.push_back({source.names()[n], std::move(values)});
  }
  if (read.tensors.empty()) fail(ErrorCode::kModelDamaged, "{}: no tensors", path.string());
  return read;
}

}  // namespace

bool is_peft(const fs::path& folder) { return fs::exists(folder / kPeftFiles[1]); }

AdapterFolder read_peft(const fs::path& folder, WholeModules modules) {
  const fs::path file = folder / kPeftFiles[1];
  const Json json = read_foreign_json(file);
  const ForeignObject config(json, file.string());
  config.require("peft_type", "LORA");
  config.require("bias", "none");
  for (const char* const key : {"lora_bias", "use_qalora"}) config.require(key, false);
  const index rank = config.whole("r", 1, 65536);
  const double alpha = config.number("lora_alpha", -1e9, 1e9);
  const bool by_root = config.flag("use_rslora", false), dora = config.flag("use_dora", false);
  std::string task = config.text("task_type", "");
  require_plain_start(config);
  config.ignore({"base_model_name_or_path", "auto_mapping", "revision", "inference_mode",
                 "lora_dropout", "target_modules", "exclude_modules", "fan_in_fan_out",
                 "peft_version", "layers_to_transform", "layers_pattern", "megatron_core",
                 "qalora_group_size", "ensure_weight_tying", "target_parameters"});
  if (modules == WholeModules::kTaken) config.ignore({"modules_to_save"});
  config.ignore_what_is_off();
  config.refuse_others();
  const double root = std::sqrt(static_cast<double>(rank));
  return {.rank = rank,
          .scale = alpha / (by_root ? root : static_cast<double>(rank)),
          .magnitudes = dora ? Magnitudes::kLearned : Magnitudes::kNone,
          .weights = read_peft_weights(folder / kPeftFiles[0]),
          .where = (folder / kPeftFiles[0]).string(),
          .task = std::move(task)};
}

std::string_view adapted_module(std::string_view tensor) {
  constexpr std::string_view kParts[] = {kAdapterA, kAdapterB, kAdapterMagnitudes};
  const auto* const part =
      std::ranges::find_if(kParts, [&](std::string_view one) { return tensor.ends_with(one); });
  if (!tensor.starts_with(kPeftPrefix) || part == std::end(kParts)) return {};
  tensor.remove_prefix(kPeftPrefix.size());
  tensor.remove_suffix(part->size());
  return tensor;
}

std::set<std::string_view> adapted_modules(const AdapterFolder& adapters) {
  std::set<std::string_view> modules;
  for (const NamedTensor& one : adapters.weights.tensors) {
    const std::string_view module = adapted_module(one.name);
    if (module.empty()) {
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("{}: tensor {} is no adapter of a product", adapters.where,
                              printable(one.name)),
                  kReadableHint);
    }
    modules.insert(module);
    if (adapters.magnitudes == Magnitudes::kNone && one.name.ends_with(kAdapterMagnitudes)) {
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("{}: {} are magnitudes (DoRA), which {} does not ask for",
                              adapters.where, printable(one.name), kPeftFiles[1]),
                  "both files must be of the same adapters: 'use_dora' is true where there are "
                  "magnitudes");
    }
  }
  return modules;
}

namespace {

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

}  // namespace

std::unique_ptr<LowRankAdapters> make_adapters(std::span<Parameter* const> model,
                                               std::span<const LowRankTarget> targets,
                                               const AdapterFolder& adapters,
                                               const AdapterChoice& choice) {
  if (adapters.magnitudes == Magnitudes::kLearned && choice.factor != 1) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--adapter {}={}: adapters with magnitudes (DoRA) count once",
                            choice.folder.string(), choice.factor),
                "leave the factor out");
  }
  for (const LowRankTarget& target : targets) {
    require_fitting(adapters, target, kAdapterA, {adapters.rank, target.weight->value.shape()[1]});
    require_fitting(adapters, target, kAdapterB, {target.rows, adapters.rank});
    if (adapters.magnitudes == Magnitudes::kLearned) {
      require_fitting(adapters, target, kAdapterMagnitudes, {target.rows});
    }
  }
  auto made =
      std::make_unique<LowRankAdapters>(model, targets,
                                        LowRankOptions{.rank = adapters.rank,
                                                       .scale = choice.factor * adapters.scale,
                                                       .magnitudes = adapters.magnitudes,
                                                       .memory = ParameterMemory::kUnwritten});
  restore_parameters(made->parameters(), adapters.weights, adapters.where);
  const std::string bad = first_not_finite(parameter_tensors(made->parameters()));
  if (!bad.empty()) {
    fail(ErrorCode::kModelDamaged, "{}: a value of {} is not finite", adapters.where,
         printable(bad));
  }
  return made;
}

namespace {

// Whether the values of a tensor in a file are these. A run may keep halves, which are widened
// where its adapters are written for PEFT.
bool is_stored(const SafetensorsSource& stored, std::size_t n, const Tensor& tensor) {
  if (stored.shape(n) != tensor.shape()) return false;
  Tensor read = stored.read(n);
  if (read.dtype() != tensor.dtype() && tensor.dtype() == DType::kFloat32) {
    read = Tensor::empty(tensor.shape());
    stored.read_widened(n, read.vec<float>());
  }
  return read.dtype() == tensor.dtype() && std::ranges::equal(read.bytes(), tensor.bytes());
}

// Whether the adapters of a run folder are these.
bool holds_adapters(const fs::path& run, const Safetensors& adapters) {
  const ModelWeights weights(run);
  const SafetensorsSource& stored = weights.tensors();
  std::size_t same = 0;
  for (std::size_t n = 0; n < stored.names().size(); ++n) {
    const std::string& name = stored.names()[n];
    if (!name.starts_with(kPeftPrefix)) continue;
    const Tensor* const given = adapters.find(name);
    if (given == nullptr || !is_stored(stored, n, *given)) return false;
    ++same;
  }
  return same > 0 && same == adapters.tensors.size();
}

}  // namespace

void require_new_adapters(const fs::path& model, const AdapterFolder& adapters) {
  for (const fs::path& run : adapter_runs_of(model)) {
    if (!holds_adapters(run, adapters.weights)) continue;
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: {} has these adapters already, and they would count twice",
                            adapters.where, model.string()),
                "leave --adapter out, or name the model without them");
  }
}

}  // namespace fovea
