// SPDX-License-Identifier: Apache-2.0
// Adapters that a model is given when it is loaded (--adapter): folders of PEFT, which are read
// here, whatever kind of model they are of.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "fovea/nn/low_rank.h"
#include "fovea/task/adapters.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {

/// The ends of the names of an adapter's tensors.
inline constexpr std::string_view kAdapterA = ".lora_A.weight", kAdapterB = ".lora_B.weight",
                                  kAdapterMagnitudes = ".lora_magnitude_vector";

/// Adapters, and how many times they count.
struct AdapterChoice {
  std::filesystem::path folder;
  double factor = 1;
};
/// "FOLDER", or "FOLDER=0.5". Throws kOptionValue for a factor that is not from -1000 to 1000.
AdapterChoice adapter_choice(std::string_view text);

/// Throws kModelMissing unless it is a folder. `named`: what may be, "folders of PEFT".
void require_adapter_folder(const AdapterChoice& choice, std::string_view named);

/// What a folder of adapters holds.
struct AdapterFolder {
  index rank = 0;
  double scale = 1;
  Magnitudes magnitudes = Magnitudes::kNone;
  Safetensors weights;    ///< as PEFT names them
  std::string where;      ///< the file of these
  std::string task = {};  ///< "SEQ_CLS"; "": not said
};

/// Whether a folder may hold modules whole, beside adapters (modules_to_save).
enum class WholeModules : std::uint8_t { kRefused, kTaken };

/// Whether it is a folder of PEFT.
bool is_peft(const std::filesystem::path& folder);
/// Reads one. Throws kModelMissing, kModelDamaged, and kModelWrongKind for what fovea does not know
/// of adapters, by its name.
AdapterFolder read_peft(const std::filesystem::path& folder, WholeModules modules);

/// The module of a tensor that is part of an adapter: "model.layers.0.mlp.up_proj" of
/// "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight"; "" of any other.
std::string_view adapted_module(std::string_view tensor);
/// The modules of all tensors. Throws kModelWrongKind for one that is no part of an adapter, and
/// for magnitudes that are not asked for.
std::set<std::string_view> adapted_modules(const AdapterFolder& adapters);

/// Gives a model the adapters of a folder: all of its weights, each as `targets` names it. Throws
/// kModelWrongKind for those of another shape, before memory is taken for what the folder says;
/// kOptionValue for magnitudes that are to count other than once; kUsage as LowRankAdapters does;
/// kModelDamaged for a value that is not finite.
std::unique_ptr<LowRankAdapters> make_adapters(std::span<Parameter* const> model,
                                               std::span<const LowRankTarget> targets,
                                               const AdapterFolder& adapters,
                                               const AdapterChoice& choice);

/// Throws kModelWrongKind if the model in a folder has these adapters already: its own, or those of
/// a base below it. They would count twice.
void require_new_adapters(const std::filesystem::path& model, const AdapterFolder& adapters);

}  // namespace fovea
