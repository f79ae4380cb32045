// SPDX-License-Identifier: Apache-2.0
// Adapters of an encoder (--lora of a classifier, a tagger or a sentence encoder). Its layers stay
// as they are; what stands on them, the layer over the first row among it, is trained whole. A
// folder of such a run holds the adapters, named as PEFT names them, and the head.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fovea/model/bert.h"
#include "fovea/model/pass_plan.h"
#include "fovea/nn/low_rank.h"
#include "fovea/pretrained/encoder_table.h"
#include "fovea/task/adapters.h"
#include "fovea/task/load_parts.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// The adapters of a run: by what names they go, and how many values they have.
struct EncoderAdapters {
  const EncoderArchitecture* row = nullptr;  ///< null: there are none
  BertHead head = BertHead::kNone;           ///< of the model of transformers
  index values = 0;
};

/// Whether adapters leave it as it is: the layers, and not the head, to which the layer over the
/// first row belongs.
bool is_left_by_adapters(const Parameter& one);

/// By what names adapters of such an encoder go. `kept`: its tokenizer, whose file is called
/// `where`. Throws kModelDamaged, kModelWrongKind.
EncoderAdapters encoder_adapters_of(const TokenizerData& kept, const std::string& where,
                                    BertHead head);

/// The adapters of a run on this encoder, none without --lora. Freezes what they leave as it is of
/// `parameters`, which need no values. `kept`: the tokenizer of the base. Throws as
/// require_same_base(), and kOptionValue for products that there are not.
EncoderAdapters plan_encoder_adapters(std::span<Parameter* const> parameters,
                                      const AdaptableBase& options, const TokenizerData& kept,
                                      BertHead head);

/// Makes the adapters of a run.
std::unique_ptr<LowRankAdapters> encoder_adapters(std::span<Parameter* const> parameters,
                                                  const AdaptableBase& options,
                                                  const EncoderAdapters& planned,
                                                  std::uint64_t seed, ParameterMemory memory);

/// Those of the model of a run; null: it has none.
template <class Run, class Model>
std::unique_ptr<LowRankAdapters> adapters_of(const Run& run, const Model& model,
                                             ParameterMemory memory = ParameterMemory::kAllocate) {
  if (run.adapters.row == nullptr) return nullptr;
  return encoder_adapters(model.parameters(), run.settings.from, run.adapters,
                          run.settings.recipe.seed, memory);
}

/// Gives the model that is planned for a run the adapters of that.
template <class Model, class Run>
ModelChange<Model> adapters_for_plan(const Run& run) {
  return
      [&run](const Model& model) { return adapters_of(run, model, ParameterMemory::kUnwritten); };
}

/// Sets the parameters of the layers to the weights of a base, with its adapters if it has some; a
/// head stays as it is, and a layer over the first row that the base does not have.
void load_encoder_base(const std::filesystem::path& base, std::span<Parameter* const> parameters);

/// Whether the head of a folder of adapters is read, too.
enum class HeadOfFolder : std::uint8_t { kRead, kLeftOut };

/// Sets parameters to the values of their base, changed by the adapters of a folder, and those of
/// the head to what it holds. Throws as require_same_base() and load_encoder_base() do, and
/// kModelDamaged.
void load_adapted_encoder(const std::filesystem::path& folder, const AdaptableBase& options,
                          BertHead head, std::span<Parameter* const> parameters, HeadOfFolder use);

/// Throws, before memory is taken for a model of `values` values, unless a folder of adapters holds
/// as many as are not its layers', and these are those of its base.
void require_fitting_adapters(const std::filesystem::path& folder, const AdaptableBase& options,
                              BertHead head, const BertConfig& layers, index values);

/// The model of a folder: as load_model() reads it, or, of adapters, their base changed by them.
/// `from`: its EncoderBaseOptions.
template <class Model, class From, class Config, class... More>
std::unique_ptr<Model> load_on_encoder(const std::filesystem::path& folder, BertHead head,
                                       const From& from, ModelSizes (*sizes_of)(const Config&),
                                       const Config& config, const More&... more) {
  if (from.lora == 0) return load_model<Model>(folder, sizes_of, config, more...);
  check_stored((folder / "config.json").string(), [&] {
    check_ranges(from);
    check(config.has_base(), "adapters need a base");
  });
  require_fitting_adapters(folder, from, head, pretrained_layers(config), parameter_count(config));
  auto model = std::make_unique<Model>(config, more...);
  load_adapted_encoder(folder, from, head, model->parameters(), HeadOfFolder::kRead);
  return model;
}

}  // namespace fovea
