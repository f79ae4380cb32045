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

constexpr std::string_view kWeight = ".weight";
// Short names of the products of a Llama.
constexpr std::string_view kShort[] = {"q", "k", "v", "o", "up", "down", "gate"};

// "q_proj" of "model.layers.0.self_attn.q_proj.weight".
std::string_view product_of(std::string_view tensor) {
  tensor.remove_suffix(kWeight.size());
  return tensor.substr(tensor.rfind('.') + 1);
}

// The matrices of the layers, among the tensors of the architecture.
// A router is no linear layer of PyTorch, so PEFT would find nothing to adapt there.
bool may_be_adapted(const TensorPlace& place) {
  if (place.ours.find(".router.") != std::string::npos) return false;
  const bool in_layer = place.theirs.find(".layers.") != std::string::npos ||
                        place.theirs.find(".h.") != std::string::npos;
  return in_layer && place.shape.axes() == 2 && !place.ours.empty() &&
         place.theirs.ends_with(kWeight);
}

// "q" of "q_proj"; "" for another name.
std::string_view short_name_of(std::string_view product) {
  constexpr std::string_view kEnd = "_proj";
  if (!product.ends_with(kEnd)) return {};
  product.remove_suffix(kEnd.size());
  return std::ranges::find(kShort, product) == std::end(kShort) ? "" : product;
}

}  // namespace

const Architecture& architecture_for(const LanguageModelConfig& config, const std::string& name) {
  if (!name.empty()) return architecture(name);
  try {
    return architecture_of(config);
  } catch (const Error& error) {
    throw error.with(error.code(), fmt::format("adapters: {}", error.what()));
  }
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
    if (!may_be_adapted(place)) continue;
    const std::string_view product = product_of(place.theirs);
    if (!wanted.wants(product, short_name_of(product))) continue;
    targets.push_back(target_at(model, place));
  }
  wanted.require_all_found();
  return targets;
}

std::unique_ptr<LowRankAdapters> make_adapters(const LanguageModel& model,
                                               const LanguageModelSettings& settings,
                                               const std::string& architecture,
                                               ParameterMemory memory) {
  return make_adapters(model.parameters(), adapter_targets(model, settings.from, architecture),
                       settings.from, settings.recipe.seed, memory);
}

namespace {

// How many values the adapters of such a model have.
index adapter_count(const LanguageModel& model, const LanguageModelBase& options,
                    const std::string& architecture) {
  return adapter_values(adapter_targets(model, options, architecture), options);
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

ModelChange<LanguageModel> adapters_for_plan(const LanguageModelRun& run) {
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
