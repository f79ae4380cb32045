// SPDX-License-Identifier: Apache-2.0
// Adapters of a base (--lora), whatever kind of model it is: their options, which products have
// them, whether the base is still the one that they were trained on, and the files of PEFT.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/precision.h"
#include "fovea/nn/low_rank.h"
#include "fovea/task/base.h"
#include "fovea/tensor/named_tensor.h"
#include "fovea/train/model_folder.h"

namespace fovea {

/// Before the names of modules, as PEFT writes them.
inline constexpr std::string_view kPeftPrefix = "base_model.model.";

/// The model that a training begins from, and adapters that are trained in place of its weights.
struct AdaptableBase : BaseOptions {
  std::string base_checksum;
  index lora = 0;
  double lora_alpha = 0;
  bool lora_rs = false;
  std::string lora_targets = "all";
  double lora_dropout = 0;
  bool dora = false;

  /// `targets`: the help of --lora-targets.
  template <class Visitor>
  void visit_fields(Visitor&& given, std::string_view help, std::string_view targets,
                    const FieldNeeds& needs = {}) {
    BaseOptions::visit_fields(given, help, needs);
    const auto visit = under("A model to begin from", given);
    visit("base_checksum", base_checksum, "of its weights, if adapters need it",
          {.is_option = false});
    visit("lora", lora,
          "train adapters of this rank, and not the weights of --base (Hu et al. 2021); 0: the "
          "weights",
          {.range = ValueRange::in(0, 4096, "the weights"), .needs = {"base"}});
    visit("lora_alpha", lora_alpha, "adapters count alpha / rank times; 0: twice the rank",
          {.range = ValueRange::from(0, "twice the rank"), .needs = {"lora"}});
    visit("lora_rs", lora_rs, "adapters count alpha / sqrt(rank) times (Kalajdzievski 2023)",
          {.needs = {"lora"}});
    visit("lora_targets", lora_targets, targets, {.needs = {"lora"}, .shown = "NAMES"});
    visit("lora_dropout", lora_dropout, "share of what adapters read that is dropped in training",
          {.range = ValueRange::share(), .needs = {"lora"}});
    visit("dora", dora,
          "adapters have magnitudes, too: of each row of a weight a number in place of its norm "
          "(DoRA, Liu et al. 2024)",
          {.needs = {"lora"}});
  }
};

/// Throws kOptionValue for options of a base that do not go with adapters.
void check_adapters(const AdaptableBase& options);

/// --lora-alpha, or its default.
double alpha_of(const AdaptableBase& options);
/// The factor of B A.
double adapter_scale(const AdaptableBase& options);
/// What --dora asks for.
Magnitudes magnitudes_of(const AdaptableBase& options);

/// Adapters as the options ask for. `frozen`: what they leave as it is.
std::unique_ptr<LowRankAdapters> make_adapters(std::span<Parameter* const> frozen,
                                               std::span<const LowRankTarget> targets,
                                               const AdaptableBase& options, std::uint64_t seed,
                                               ParameterMemory memory);
/// How many values they have.
index adapter_values(std::span<const LowRankTarget> targets, const AdaptableBase& options);

/// --lora-targets: which products have adapters.
class AdaptedProducts {
 public:
  explicit AdaptedProducts(std::string_view text);

  /// Whether the product of this name has one; it may have a short name, too.
  bool wants(std::string_view name, std::string_view short_name = {});
  /// Throws kOptionValue unless all that was named has been asked for.
  void require_all_found() const;

 private:
  bool has_all_ = false;
  std::set<std::string, std::less<>> wanted_, known_, short_;
};

// ---- the base

/// XXH3 of the files of a model's weights. Throws kModelMissing.
std::string weights_checksum(const std::filesystem::path& model);

/// The model that a training began from, the one that this began from, and so on, as long as they
/// are adapters. Throws as read_model_file() does, and kModelDamaged for adapters on themselves.
std::vector<std::filesystem::path> bases_of(const AdaptableBase& options);

/// The same of a model.
std::vector<std::filesystem::path> bases_of_model(const std::filesystem::path& model);

/// The folders of adapters that a model is made of, itself first: as long as each is a base of the
/// one before. None for a model without adapters. Throws the same.
std::vector<std::filesystem::path> adapter_runs_of(const std::filesystem::path& model);

/// Throws kModelMissing or kModelWrongKind unless the base is there as the adapters know it.
void require_same_base(const AdaptableBase& options);

// ---- files

/// The names of what write_peft() writes, adapter_config.json last.
inline constexpr std::array<std::string_view, 2> kPeftFiles = {"adapter_model.safetensors",
                                                               "adapter_config.json"};

/// What PEFT has to know of adapters besides their options.
struct PeftForm {
  std::vector<std::string> target_modules;   ///< that have adapters
  std::vector<std::string> modules_to_save;  ///< whose tensors are there whole
  std::string task_type;                     ///< "CAUSAL_LM"
  bool transposed = false;                   ///< the matrices of the base are
};

/// Throws kModelWrongKind for a folder without adapters. `train`: how to train some.
void require_adapters(const std::filesystem::path& run, const AdaptableBase& options,
                      std::string_view train);

/// Writes PEFT's two files. Throws kDiskFull before anything is written; kWrite.
void write_peft(const std::filesystem::path& folder, std::span<const NamedTensor> tensors,
                const AdaptableBase& options, const PeftForm& form);

/// Writes a model folder: these files, and the weights in this type. Nothing is left of it if that
/// fails. Throws kDiskFull before anything is written; kWrite.
void write_model_folder(const std::filesystem::path& folder, const std::vector<NamedFile>& files,
                        std::span<Parameter* const> parameters, Precision type);

}  // namespace fovea
