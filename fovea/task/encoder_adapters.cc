// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/encoder_adapters.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/pretrained/encoder_tokenizer.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/task/encoder_base.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeight = ".weight";

// What the products of a block mean, in the order of the rows of their weight.
struct BlockProducts {
  std::string_view ours;
  std::array<std::string_view, 3> names;
};
constexpr BlockProducts kProducts[] = {{"attention.qkv.weight", {"q", "k", "v"}},
                                       {"attention.out.weight", {"o"}},
                                       {"feed_forward.in.weight", {"up"}},
                                       {"feed_forward.out.weight", {"down"}}};

const BlockProducts* products_of(std::string_view parameter) {
  if (!parameter.starts_with("blocks.")) return nullptr;
  for (const BlockProducts& one : kProducts) {
    if (parameter.ends_with(one.ours)) return &one;
  }
  return nullptr;
}

std::vector<LowRankTarget> targets_of(std::span<Parameter* const> parameters,
                                      const AdaptableBase& options,
                                      const EncoderAdapters& planned) {
  AdaptedProducts wanted(options.lora_targets);
  std::vector<LowRankTarget> targets;
  for (Parameter* const one : parameters) {
    const BlockProducts* const products = products_of(one->name);
    if (products == nullptr) continue;
    const std::vector<std::string> names =
        encoder_tensor_names(*planned.row, planned.head, one->name);
    const index rows = one->value.shape()[0] / std::ssize(names);
    for (std::size_t n = 0; n < names.size(); ++n) {
      if (!wanted.wants(products->names.at(n))) continue;
      const std::string_view module(names[n].data(), names[n].size() - kWeight.size());
      targets.push_back({.name = fmt::format("{}{}", kPeftPrefix, module),
                         .weight = one,
                         .first = static_cast<index>(n) * rows,
                         .rows = rows});
    }
  }
  wanted.require_all_found();
  return targets;
}

EncoderAdapters named(const fs::path& folder, BertHead head) {
  return encoder_adapters_of(read_tokenizer_data(folder), (folder / "tokenizer.txt").string(),
                             head);
}

// Whatever stands on them, and whatever training drops.
bool have_same_layers(BertConfig a, const BertConfig& b) {
  a.pools = b.pools;
  a.head = b.head;
  a.outputs = b.outputs;
  a.dropout = b.dropout;
  a.head_dropout = b.head_dropout;
  return a == b;
}

}  // namespace

bool is_left_by_adapters(const Parameter& one) {
  return is_of_layers(one.name) && !one.name.starts_with("pooler.");
}

EncoderAdapters encoder_adapters_of(const TokenizerData& kept, const std::string& where,
                                    BertHead head) {
  constexpr std::string_view kConfig = "config.json";
  const ModelFiles files = kept_encoder_files(kept.model, where);
  const Json json = parse_json(files.text(kConfig), {where, ErrorCode::kModelDamaged});
  return {.row = &encoder_architecture(ForeignObject(json, where)), .head = head};
}

EncoderAdapters plan_encoder_adapters(std::span<Parameter* const> parameters,
                                      const AdaptableBase& options, const TokenizerData& kept,
                                      BertHead head) {
  if (options.lora == 0) return {};
  require_same_base(options);
  EncoderAdapters planned = encoder_adapters_of(kept, "tokenizer.txt", head);
  planned.values = adapter_values(targets_of(parameters, options, planned), options);
  for (Parameter* const one : parameters) one->frozen = is_left_by_adapters(*one);
  return planned;
}

std::unique_ptr<LowRankAdapters> encoder_adapters(std::span<Parameter* const> parameters,
                                                  const AdaptableBase& options,
                                                  const EncoderAdapters& planned,
                                                  std::uint64_t seed, ParameterMemory memory) {
  std::vector<Parameter*> frozen;
  for (Parameter* const one : parameters) {
    if (is_left_by_adapters(*one)) frozen.push_back(one);
  }
  return make_adapters(frozen, targets_of(parameters, options, planned), options, seed, memory);
}

void require_fitting_adapters(const fs::path& folder, const AdaptableBase& options, BertHead head,
                              const BertConfig& layers, index values) {
  require_same_base(options);
  const std::string name = (folder / "config.json").string();
  if (!have_same_layers(read_encoder_base(options.base, head).layers, layers)) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: the layers are not those of {}", name, options.base),
                "put the base back as it was: its config.json has changed since, or that of the "
                "adapters");
  }
  ParameterSet shapes({.memory = ParameterMemory::kUnwritten});
  const BertLayers of_base(layers, ParameterScope(shapes));
  index held = 0;
  for (const NamedTensor& one : read_model_weights(folder).tensors) held += one.tensor.size();
  check_stored(name, [&] {
    const index trained =
        values - shapes.size() +
        adapter_values(targets_of(shapes.parameters(), options, named(folder, head)), options);
    check(trained == held, "adapters and a head of {} values; {} has {}", trained, kWeightsName,
          held);
  });
}

void load_adapted_encoder(const fs::path& folder, const AdaptableBase& options, BertHead head,
                          std::span<Parameter* const> parameters, HeadOfFolder use) {
  load_encoder_base(options.base, parameters);
  Safetensors weights = read_model_weights(folder);
  const auto adapters =
      encoder_adapters(parameters, options, named(folder, head), 0, ParameterMemory::kUnwritten);
  std::vector<Parameter*> stored(adapters->parameters().begin(), adapters->parameters().end());
  for (Parameter* const one : parameters) {
    if (is_left_by_adapters(*one)) continue;
    const bool reads = is_of_layers(one->name) && weights.find(one->name) != nullptr;
    if (use == HeadOfFolder::kRead || reads) stored.push_back(one);
  }
  if (use == HeadOfFolder::kLeftOut) {
    std::set<std::string_view> names;
    for (const Parameter* const one : stored) names.insert(one->name);
    std::erase_if(weights.tensors,
                  [&](const NamedTensor& one) { return !names.contains(one.name); });
  }
  restore_parameters(stored, weights, (folder / kWeightsName).string());
  adapters->merge(Context());
}

}  // namespace fovea
