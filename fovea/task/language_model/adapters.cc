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

double alpha_of(const LanguageModelBase& o) {
  return o.lora_alpha > 0 ? o.lora_alpha : 2 * static_cast<double>(o.lora);
}

const Architecture& architecture_for(const LanguageModelConfig& config, const std::string& name) {
  if (!name.empty()) return architecture(name);
  try {
    return architecture_of(config);
  } catch (const Error& error) {
    throw error.with(error.code(), fmt::format("adapters: {}", error.what()));
  }
}

double adapter_scale(const LanguageModelBase& o) {
  const auto rank = static_cast<double>(o.lora);
  return alpha_of(o) / (o.lora_rs ? std::sqrt(rank) : rank);
}

LowRankTarget target_at(const LanguageModel& model, const TensorPlace& place) {
  const auto found = std::ranges::find(model.parameters(), place.ours, &Parameter::name);
  check(found != model.parameters().end(), "no parameter {}", place.ours);
  const std::string_view tensor(place.theirs);
  return {
      .name = fmt::format("{}{}", kPeftPrefix, tensor.substr(0, tensor.size() - kWeight.size())),
      .weight = *found,
      .first = place.first,
      .rows = place.order == RowOrder::kTransposed ? place.shape[1] : place.shape[0]};
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
    targets.push_back(target_at(model, place));
  }
  wanted.require_all_found();
  return targets;
}

std::unique_ptr<LowRankAdapters> make_adapters(const LanguageModel& model,
                                               const LanguageModelSettings& settings,
                                               const std::string& architecture,
                                               ParameterMemory memory) {
  return std::make_unique<LowRankAdapters>(model.parameters(),
                                           adapter_targets(model, settings.from, architecture),
                                           LowRankOptions{.rank = settings.from.lora,
                                                          .scale = adapter_scale(settings.from),
                                                          .seed = settings.recipe.seed,
                                                          .memory = memory});
}

namespace {

// How many values the adapters of such a model have.
index adapter_count(const LanguageModel& model, const LanguageModelBase& options,
                    const std::string& architecture) {
  index count = 0;
  for (const LowRankTarget& target : adapter_targets(model, options, architecture)) {
    count += options.lora * (target.rows + target.weight->value.shape()[1]);
  }
  return count;
}

LanguageModel unwritten(const LanguageModelConfig& config) {
  return LanguageModel(config, ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
}

}  // namespace

AdaptedBase plan_adapted(const LanguageModelSettings& settings, const std::string& architecture) {
  const bool lies = is_pretrained(settings.from.base);
  const LanguageModel model =
      lies ? load_base(settings, WeightTypes::kPlanned) : unwritten(settings.model);
  AdaptedBase base{.trained = adapter_count(model, settings.from, architecture)};
  for (const Parameter* const one : model.parameters()) {
    base.blocks.push_back(one->blocks);
    base.bytes += static_cast<double>(
        one->blocks ? one->blocks->byte_size() : static_cast<std::size_t>(one->value.byte_size()));
  }
  return base;
}

ModelChange adapters_for_plan(const LanguageModelRun& run) {
  if (run.adapted.trained == 0) return {};
  return [&run](const LanguageModel& model) {
    const std::span<Parameter* const> parameters = model.parameters();
    for (std::size_t n = 0; n < parameters.size(); ++n) {
      parameters[n]->blocks = run.adapted.blocks[n];
    }
    return make_adapters(model, run.settings, architecture_name(run.pretrained),
                         ParameterMemory::kUnwritten);
  };
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
  for (const fs::path& file : files) sums += xxh3_128_of(FileSource(file));
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

// config.json may have been changed together with its checksum.
Safetensors read_adapters(const fs::path& folder, const LanguageModelSettings& settings,
                          const std::string& architecture) {
  Safetensors weights = read_model_weights(folder);
  index held = 0;
  for (const NamedTensor& one : weights.tensors) held += one.tensor.size();
  check_stored((folder / "config.json").string(), [&] {
    check_ranges(settings.from);
    const index trained = adapter_count(unwritten(settings.model), settings.from, architecture);
    check(trained == held, "adapters of {} values; {} has {}", trained, kWeightsName, held);
  });
  return weights;
}

bool merge_into_values(const LanguageModel& model, LowRankAdapters& adapters) {
  const auto lies = [](const Parameter* one) { return one->blocks != nullptr; };
  if (std::ranges::any_of(model.parameters(), lies)) return false;
  adapters.merge(Context());
  return true;
}

AdaptedModel load_adapted(const fs::path& folder, const LanguageModelSettings& settings,
                          const std::string& architecture, WeightTypes types) {
  require_same_base(settings.from);
  const Safetensors weights = read_adapters(folder, settings, architecture);
  LanguageModel model = load_base(settings, types);
  auto adapters = make_adapters(model, settings, architecture);
  restore_parameters(adapters->parameters(), weights, (folder / kWeightsName).string());
  if (merge_into_values(model, *adapters)) adapters.reset();
  return {std::move(model), std::move(adapters)};
}

}  // namespace fovea
