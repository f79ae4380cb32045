// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/adapters.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <system_error>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/words.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/sentence_model.h"
#include "fovea/task/setting_parts.h"
#include "fovea/tensor/checksum.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAll = "all";

}  // namespace

void check_adapters(const AdaptableBase& o) {
  require_together(o.lora == 0 || o.freeze.empty(), "--lora, --freeze",
                   "adapters leave all of the model as it is", "leave --freeze out");
  require_together(o.lora == 0 || o.layer_lr_decay == 1, "--lora, --layer-lr-decay",
                   "adapters of all layers have one learning rate", "leave one of them out");
}

double alpha_of(const AdaptableBase& o) {
  return o.lora_alpha > 0 ? o.lora_alpha : 2 * static_cast<double>(o.lora);
}

double adapter_scale(const AdaptableBase& o) {
  const auto rank = static_cast<double>(o.lora);
  return alpha_of(o) / (o.lora_rs ? std::sqrt(rank) : rank);
}

Magnitudes magnitudes_of(const AdaptableBase& o) {
  return o.dora ? Magnitudes::kLearned : Magnitudes::kNone;
}

std::unique_ptr<LowRankAdapters> make_adapters(std::span<Parameter* const> frozen,
                                               std::span<const LowRankTarget> targets,
                                               const AdaptableBase& options, std::uint64_t seed,
                                               ParameterMemory memory) {
  return std::make_unique<LowRankAdapters>(frozen, targets,
                                           LowRankOptions{.rank = options.lora,
                                                          .scale = adapter_scale(options),
                                                          .dropout = options.lora_dropout,
                                                          .magnitudes = magnitudes_of(options),
                                                          .seed = seed,
                                                          .memory = memory});
}

index adapter_values(std::span<const LowRankTarget> targets, const AdaptableBase& options) {
  index count = 0;
  for (const LowRankTarget& target : targets) {
    count += options.lora * (target.rows + target.weight->value.shape()[1]);
    if (options.dora) count += target.rows;
  }
  return count;
}

AdaptedProducts::AdaptedProducts(std::string_view text) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    has_all_ = has_all_ || one == kAll;
    if (one != kAll) wanted_.emplace(one);
  }
}

bool AdaptedProducts::wants(std::string_view name, std::string_view short_name) {
  known_.emplace(name);
  if (!short_name.empty()) short_.emplace(short_name);
  return has_all_ || wanted_.contains(name) || wanted_.contains(short_name);
}

void AdaptedProducts::require_all_found() const {
  if (has_all_ == !wanted_.empty()) {
    throw Error(ErrorCode::kOptionValue, "--lora-targets: expected names, or all",
                "as in --lora-targets q,v");
  }
  for (const std::string& name : wanted_) {
    if (known_.contains(name) || short_.contains(name)) continue;
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--lora-targets: the model has no products {}; it has {}",
                            printable(name), fmt::join(known_, ", ")),
                "give some of these, or all");
  }
}

std::string weights_checksum(const fs::path& model) {
  std::vector<fs::path> files;
  if (fs::is_regular_file(model)) {
    files.push_back(model);
  } else {
    const bool has_modules = fs::exists(model / "modules.json");
    const fs::path folder = has_modules ? transformer_folder(model) : model;
    std::error_code missing;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, missing)) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
    }
  }
  if (files.empty()) {
    throw Error(ErrorCode::kModelMissing, fmt::format("{}: no weights", model.string()),
                "name a model folder or a GGUF file");
  }
  std::ranges::sort(files);
  std::string sums;
  for (const fs::path& file : files) sums += xxh3_128_of(FileSource(file));
  return files.size() == 1 ? sums : xxh3_128(sums);
}

namespace {

// What a model folder of fovea began from, if it holds adapters, or `any`; else "".
std::string base_of(const fs::path& folder, bool any) {
  if (!fs::exists(folder / kManifestName)) return {};
  const std::string name = (folder / "config.json").string();
  const Json json =
      parse_json(read_model_file(folder, "config.json"), {name, ErrorCode::kModelDamaged});
  const auto member = [](const Json* object, std::string_view key) {
    return object == nullptr || object->get_if<Json::Object>() == nullptr ? nullptr
                                                                          : object->find(key);
  };
  const Json* const from = member(&json, "from");
  const Json* const lora = member(from, "lora");
  const Json* const base = member(from, "base");
  const bool adapts = lora != nullptr && lora->line() != "0";
  if (base == nullptr || !(any || adapts)) return {};
  const auto* const text = base->get_if<std::string>();
  return text == nullptr ? "" : *text;
}

// From this one on.
std::vector<fs::path> bases_from(std::string from) {
  constexpr std::size_t kMostBases = 64;
  std::vector<fs::path> bases;
  while (!from.empty()) {
    if (bases.size() == kMostBases) {
      fail(ErrorCode::kModelDamaged, "{}: adapters on adapters without end", from);
    }
    from = base_of(bases.emplace_back(from), false);
  }
  return bases;
}

}  // namespace

std::vector<fs::path> bases_of(const AdaptableBase& options) { return bases_from(options.base); }

std::vector<fs::path> bases_of_model(const fs::path& model) {
  return bases_from(base_of(model, true));
}

std::vector<fs::path> adapter_runs_of(const fs::path& model) {
  const std::string base = base_of(model, false);
  if (base.empty()) return {};
  std::vector<fs::path> runs = bases_from(base);  // the last one has no adapters
  runs.insert(runs.begin(), model);
  runs.pop_back();
  return runs;
}

void require_same_base(const AdaptableBase& options) {
  if (!fs::exists(options.base)) {
    throw Error(ErrorCode::kModelMissing,
                fmt::format("{}: the base of these adapters is not there", options.base),
                "put it back: a folder of adapters does not hold the model that they change");
  }
  bases_of(options);  // that there is an end
  if (weights_checksum(options.base) == options.base_checksum) return;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: not the model that the adapters were trained on", options.base),
              "put that one back; its weights have changed since");
}

void require_adapters(const fs::path& run, const AdaptableBase& options, std::string_view train) {
  if (options.lora != 0) return;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: the folder holds no adapters", run.string()),
              fmt::format("train some: fovea {} --base MODEL --lora 8", train));
}

void write_peft(const fs::path& folder, std::span<const NamedTensor> tensors,
                const AdaptableBase& options, const PeftForm& form) {
  const auto list = [](const std::vector<std::string>& names) {
    return Json::Array(names.begin(), names.end());
  };
  Json::Object config = {
      {"base_model_name_or_path", options.base}, {"bias", "none"},
      {"fan_in_fan_out", form.transposed},       {"inference_mode", true},
      {"lora_alpha", alpha_of(options)},         {"lora_dropout", options.lora_dropout}};
  if (!form.modules_to_save.empty()) {
    config.emplace_back("modules_to_save", list(form.modules_to_save));
  }
  config.emplace_back("peft_type", "LORA");
  config.emplace_back("r", options.lora);
  config.emplace_back("target_modules", list(form.target_modules));
  config.emplace_back("task_type", form.task_type);
  config.emplace_back("use_dora", options.dora);
  config.emplace_back("use_rslora", options.lora_rs);
  const std::string bytes = safetensors_bytes(tensors, {{"format", "pt"}});
  require_disk_space(folder, bytes.size());
  create_folders(folder);
  remove_file(folder / kPeftFiles[1]);
  write_file_atomically(folder / kPeftFiles[0], bytes);
  write_file_atomically(folder / kPeftFiles[1], Json(std::move(config)).pretty());
}

void write_model_folder(const fs::path& folder, const std::vector<NamedFile>& files,
                        std::span<Parameter* const> parameters, Precision type) {
  std::uintmax_t bytes = 0;
  for (const NamedFile& file : files) bytes += file.bytes.size();
  for (const Parameter* const one : parameters) {
    bytes +=
        static_cast<std::uintmax_t>(one->value.size()) * (type == Precision::kBFloat16 ? 2 : 4);
  }
  require_disk_space(folder, bytes);
  const std::vector<fs::path> made = create_folders(folder);
  try {
    write_model_files(folder, files);
    write_model_weights(folder, parameter_tensors(parameters), {}, dtype_of(type));
  } catch (...) {
    for (const NamedFile& file : files) remove_file(folder / file.name);
    remove_file(folder / kManifestName);
    remove_empty_folders(made);
    throw;
  }
}

}  // namespace fovea
