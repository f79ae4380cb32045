// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/adapters.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/words.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/architecture.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/task/language_model/base.h"
#include "fovea/task/load_parts.h"
#include "fovea/tensor/checksum.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAll = "all", kWeight = ".weight";
// Before the names of tensors, as PEFT writes them.
constexpr std::string_view kPeftPrefix = "base_model.model.";
// Short names of the products of a Llama.
constexpr std::string_view kShort[] = {"q", "k", "v", "o", "up", "down", "gate"};

// "q_proj" of "model.layers.0.self_attn.q_proj.weight".
std::string_view product_of(std::string_view tensor) {
  tensor.remove_suffix(kWeight.size());
  return tensor.substr(tensor.rfind('.') + 1);
}

// The matrices of the layers, among the tensors of the architecture.
bool may_be_adapted(const TensorPlace& place) {
  const bool in_layer = place.theirs.find(".layers.") != std::string::npos ||
                        place.theirs.find(".h.") != std::string::npos;
  return in_layer && place.shape.axes() == 2 && !place.ours.empty() &&
         place.theirs.ends_with(kWeight);
}

std::string checksum_of(const fs::path& path) {
  constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;
  const FileSource file(path);
  std::string piece;
  std::uint64_t done = 0;
  return xxh3_128_of([&]() -> std::string_view {
    piece.resize(static_cast<std::size_t>(std::min(kPiece, file.size() - done)));
    if (!piece.empty()) file.read(done, piece);
    done += piece.size();
    return piece;
  });
}

class AdaptedProducts {
 public:
  explicit AdaptedProducts(std::string_view text) {
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view one = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      const bool is_short = std::ranges::find(kShort, one) != std::end(kShort);
      has_all_ = has_all_ || one == kAll;
      if (one != kAll) wanted_.insert(is_short ? fmt::format("{}_proj", one) : std::string(one));
    }
  }

  bool wants(std::string_view tensor) {
    const std::string product(product_of(tensor));
    known_.insert(product);
    return has_all_ || wanted_.contains(product);
  }

  void require_all_found() const {
    if (has_all_ == !wanted_.empty()) {
      throw Error(ErrorCode::kOptionValue, "--lora-targets: expected names, or all",
                  "as in --lora-targets q,v");
    }
    for (const std::string& name : wanted_) {
      if (known_.contains(name)) continue;
      throw Error(ErrorCode::kOptionValue,
                  fmt::format("--lora-targets: the model has no products {}; it has {}",
                              printable(name), fmt::join(known_, ", ")),
                  "give some of these, or all");
    }
  }

 private:
  bool has_all_ = false;
  std::set<std::string, std::less<>> wanted_, known_;
};

}  // namespace

namespace {

double alpha_of(const LanguageModelBase& o) {
  return o.lora_alpha > 0 ? o.lora_alpha : 2 * static_cast<double>(o.lora);
}

const Architecture& architecture_for(const LanguageModelConfig& config, const std::string& name) {
  if (!name.empty()) return architecture(name);
  try {
    return architecture_of(config);
  } catch (const Error& error) {
    throw error.with(error.code(), fmt::format("--lora: {}", error.what()));
  }
}

}  // namespace

double adapter_scale(const LanguageModelBase& o) {
  const auto rank = static_cast<double>(o.lora);
  return alpha_of(o) / (o.lora_rs ? std::sqrt(rank) : rank);
}

std::vector<LowRankTarget> adapter_targets(const LanguageModel& model,
                                           const LanguageModelBase& options,
                                           const std::string& name) {
  const LanguageModelConfig& config = model.config();
  const Architecture& row = architecture_for(config, name);
  AdaptedProducts wanted(options.lora_targets);
  std::vector<LowRankTarget> targets;
  for (const TensorPlace& place : tensor_places(row, ModelForm::kHuggingFace, config)) {
    if (!may_be_adapted(place) || !wanted.wants(place.theirs)) continue;
    const auto found = std::ranges::find(model.parameters(), place.ours, &Parameter::name);
    check(found != model.parameters().end(), "no parameter {}", place.ours);
    const std::string_view tensor(place.theirs);
    targets.push_back(
        {.name = std::string(kPeftPrefix) +
                 std::string(tensor.substr(0, tensor.size() - kWeight.size())),
         .weight = *found,
         .first = place.first,
         .rows = place.order == RowOrder::kTransposed ? place.shape[1] : place.shape[0]});
  }
  wanted.require_all_found();
  return targets;
}

std::unique_ptr<LowRankAdapters> make_adapters(const LanguageModel& model,
                                               const LanguageModelSettings& settings,
                                               const std::string& architecture) {
  return std::make_unique<LowRankAdapters>(model.parameters(),
                                           adapter_targets(model, settings.from, architecture),
                                           LowRankOptions{.rank = settings.from.lora,
                                                          .scale = adapter_scale(settings.from),
                                                          .seed = settings.recipe.seed});
}

AdapterSizes adapter_sizes(const LanguageModelConfig& config, const LanguageModelBase& options,
                           const std::string& architecture) {
  AdapterSizes sizes;
  if (options.lora == 0) return sizes;
  const LanguageModel shapes(config, ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
  std::set<const Parameter*> weights;
  for (const LowRankTarget& target : adapter_targets(shapes, options, architecture)) {
    sizes.trained += options.lora * (target.rows + target.weight->value.shape()[1]);
    if (weights.insert(target.weight).second) sizes.adapted += target.weight->value.size();
  }
  return sizes;
}

std::string weights_checksum(const fs::path& model) {
  std::vector<fs::path> files;
  if (fs::is_regular_file(model)) {
    files.push_back(model);
  } else {
    std::error_code missing;
    for (const fs::directory_entry& entry : fs::directory_iterator(model, missing)) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
    }
  }
  if (files.empty()) {
    throw Error(ErrorCode::kModelMissing, fmt::format("{}: no weights", model.string()),
                "name a model folder or a GGUF file");
  }
  std::ranges::sort(files);
  std::string sums;
  for (const fs::path& file : files) sums += checksum_of(file);
  return files.size() == 1 ? sums : xxh3_128(sums);
}

std::vector<fs::path> bases_of(const LanguageModelBase& options) {
  constexpr std::size_t kMostBases = 64;
  std::vector<fs::path> bases;
  for (LanguageModelBase from = options; !from.base.empty();) {
    if (bases.size() == kMostBases) {
      fail(ErrorCode::kModelDamaged, "{}: adapters on adapters without end", from.base);
    }
    const fs::path& base = bases.emplace_back(from.base);
    if (is_pretrained(base) || !fs::is_directory(base)) break;
    from = load_settings(base).from;
    if (from.lora == 0) break;
  }
  return bases;
}

void require_same_base(const LanguageModelBase& options) {
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

namespace {

// The weights of a folder of adapters, which are as many as its config.json asks for: it may have
// been changed together with its checksum.
Safetensors read_adapters(const fs::path& folder, const LanguageModelSettings& settings,
                          const std::string& architecture) {
  Safetensors weights = read_model_weights(folder);
  index held = 0;
  for (const NamedTensor& one : weights.tensors) held += one.tensor.size();
  check_stored((folder / "config.json").string(), [&] {
    check_ranges(settings.from);
    const index trained = adapter_sizes(settings.model, settings.from, architecture).trained;
    check(trained == held, "adapters of {} values; {} has {}", trained, kWeightsName, held);
  });
  return weights;
}

}  // namespace

LanguageModel load_adapted(const fs::path& folder, const LanguageModelSettings& settings,
                           const std::string& architecture) {
  require_same_base(settings.from);
  const Safetensors weights = read_adapters(folder, settings, architecture);
  LanguageModel model = load_base(settings);
  const auto adapters = make_adapters(model, settings, architecture);
  restore_parameters(adapters->parameters(), weights, (folder / kWeightsName).string());
  adapters->merge(Context());
  return model;
}

void export_peft(const fs::path& run, const fs::path& folder) {
  const LanguageModelSettings settings = load_settings(run);
  const LanguageModelBase& options = settings.from;
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

}  // namespace fovea
