// SPDX-License-Identifier: Apache-2.0
// The table of architectures: what a model of each is called in the files of other programs, which
// layers of ours it is, and which of its tensors hold the values of our parameters. Models are read
// and written by it. What a model asks for and its row does not know is refused by an error that
// names it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/model/language_model.h"
#include "fovea/nn/module.h"
#include "fovea/tensor/named_tensor.h"

namespace fovea {

/// The files in which models lie.
enum class ModelForm : std::uint8_t {
  kHuggingFace,  ///< safetensors of a folder of Hugging Face transformers
  kGguf,         ///< of llama.cpp
};

/// How the rows of a tensor lie in a file.
enum class RowOrder : std::uint8_t {
  kAsTheyAre,
  /// Queries or keys whose rotary pairs are neighbouring columns, as in a GGUF file of Llama; here
  /// the two columns of a pair are half a head apart, as in transformers.
  kQueryPairs,
  kKeyPairs,
  /// [in, out], as the matrices of GPT-2 lie in transformers.
  kTransposed,
  /// [experts, in, out]; ours are [experts out, in] (nn/experts.h).
  kExperts,
};

/// A tensor of a file, and the rows of ours that hold its values.
struct TensorPlace {
  std::string theirs;
  Shape shape;
  std::string ours;  ///< "": it is zero, a bias that our model does not have
  index first = 0;   ///< row of ours that is its first
  RowOrder order = RowOrder::kAsTheyAre;
  /// Ours are theirs plus this: 1 of gains 1 + w that a file has as w.
  double added = 0;
};

/// A choice that an architecture has made, as our option spells it, and whether a model made it.
struct ArchitectureNeed {
  std::string_view has;
  bool (*holds)(const LanguageModelConfig& config);
};

enum class BiasRule : std::uint8_t {
  kNever,
  kIfOurs,  ///< where our model has it
  kAlways,  ///< zero where our model has none
};

/// A tensor of each layer, or of the model, and its bias. Names are without ".weight", beside which
/// ".bias" stands; {} is the number of the layer.
struct TensorRow {
  using Size = index (*)(const LanguageModelConfig& config);

  std::string_view ours, hugging_face, gguf;
  Size rows;
  Size columns = nullptr;                                            ///< none: a vector
  Size first = [](const LanguageModelConfig&) { return index{0}; };  ///< row of ours
  BiasRule bias = BiasRule::kNever;
  RowOrder in_hugging_face = RowOrder::kAsTheyAre, in_gguf = RowOrder::kAsTheyAre;
  double added_to_hugging_face = 0;  ///< TensorPlace::added
  bool (*exists)(const LanguageModelConfig& config) = [](const LanguageModelConfig&) {
    return true;
  };
  bool whole_names = false;  ///< the names are those of tensors, without an end
};

struct Architecture {
  std::string_view name;        ///< "llama": model_type, or general.architecture
  std::string_view class_name;  ///< of transformers: "LlamaForCausalLM"
  std::span<const TensorRow> tensors;
  LanguageModelConfig (*layers)();           ///< its layers, without their sizes
  std::span<const ArchitectureNeed> family;  ///< needs that it shares with others
  std::span<const ArchitectureNeed> needs;   ///< of a model that is written so; {}: none is
  /// The keys of a GGUF file behind "llama." that are read; {}: it is not read from such files.
  std::span<const std::string_view> gguf_keys;
  std::string_view model_type = name;  ///< of config.json: "gemma3_text"
};

bool is_architecture(std::string_view name);
/// Whether these are layers of Gemma, of which configurations leave out what is usual.
inline bool is_gemma(std::string_view name) { return name.starts_with("gemma"); }
/// The row of this name or model_type. Throws kModelWrongKind, which lists the known ones.
const Architecture& architecture(std::string_view name);

/// The row of a model that is written. Throws kModelWrongKind if there is none; the error names the
/// closest, and each option in which it differs. `config` is resolved.
const Architecture& architecture_of(const LanguageModelConfig& config);

/// Every tensor of a model in files of that form.
std::vector<TensorPlace> tensor_places(const Architecture& architecture, ModelForm form,
                                       const LanguageModelConfig& config);

/// The tensors at these places, from those of our model.
std::vector<NamedTensor> tensors_at(std::span<const TensorPlace> places,
                                    const LanguageModelConfig& config,
                                    std::span<const NamedTensor> ours);

/// How weights are held.
enum class WeightTypes : std::uint8_t {
  kFloat32,    ///< widened, as training and gradients need them
  kAsTheyLie,  ///< matrices stay in the type of the file where products read it (BlockType)
  kPlanned,    ///< as kAsTheyLie, but no value is read: for a plan (base/profile.h)
};

/// Sets all parameters from the tensors of a file; biases that it does not have become zero. Each
/// tensor must have the shape of its place, and none may be left over but those that `ignores`
/// names. Throws kModelDamaged for a tensor that is missing or has another shape, kModelWrongKind
/// for one that has no place.
void set_weights(std::span<Parameter* const> parameters, std::span<const TensorPlace> places,
                 const LanguageModelConfig& config, const TensorSource& tensors,
                 WeightTypes types = WeightTypes::kFloat32,
                 bool (*ignores)(std::string_view name) = nullptr);

/// The number d of scores q.k / sqrt(d), rounded to a whole one: query_pre_attn_scalar of Gemma.
index query_scalar(const LanguageModelConfig& config);

/// How many keys a query of the layers with a window sees, its own among them; nothing if no layer
/// has one.
std::optional<index> seen_keys(const LanguageModelConfig& config);

/// The reverse: --window of layers of which those that are `narrow` see `seen` keys, at least 2.
std::string windows_of(const std::vector<bool>& narrow, index seen);

/// Every so many-th of the layers sees all keys, the others are narrow.
std::vector<bool> narrow_but_every(index layers, index every);

}  // namespace fovea
