// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/load_parts.h"

#include <system_error>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/config/json.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr Hint kOtherWeights{
    "config.json and model.safetensors belong to different models: restore both from a copy, or "
    "train the model again"};
constexpr std::string_view kMoreMemory = "free some memory, or use a machine that has more";

void check_weights(const std::function<ModelSizes()>& sizes_of, const Safetensors& weights,
                   const fs::path& folder) {
  index held = 0;
  for (const NamedTensor& named : weights.tensors) held += named.tensor.size();
  const auto tensors = static_cast<index>(weights.tensors.size());
  double bytes = 0;
  try {
    const ModelSizes sizes = sizes_of();
    const bool possible =
        sizes.layers <= tensors && sizes.largest_matrix <= static_cast<double>(held);
    if (!possible || sizes.parameters() != held) {
      fail(ErrorCode::kModelDamaged, kOtherWeights,
           "such a model does not have the {} parameters of {}{}", held, kWeightsName,
           possible ? fmt::format(" but {}", sizes.parameters()) : "");
    }
    bytes = sizes.bytes();  // of a model that may have any number of layers: only now
  } catch (const Error& error) {
    throw error.with(ErrorCode::kModelDamaged,
                     fmt::format("{}: {}", (folder / "config.json").string(), error.what()));
  }
  require_memory("the model", bytes, kMoreMemory);
}

// Reading takes the bytes of the file and the tensors made from them, hence twice the size.
void require_memory_for_weights(const fs::path& folder) {
  std::error_code missing;
  const std::uintmax_t bytes = fs::file_size(folder / kWeightsName, missing);
  if (missing) return;  // reading will report the error
  require_memory("reading the weights", 2 * static_cast<double>(bytes), kMoreMemory);
}

}  // namespace

void require_model_kind(std::string_view text, const std::string& name, std::string_view kind,
                        std::string_view called) {
  const Json json = parse_json(text, {name, ErrorCode::kModelDamaged});
  const Json* found = json.get_if<Json::Object>() != nullptr ? json.find("kind") : nullptr;
  if (found != nullptr && found->get_if<std::string>() != nullptr && found->text() == kind) return;
  throw Error(
      ErrorCode::kModelWrongKind,
      fmt::format("{}: expected \"kind\": \"{}\", got {}", name, kind,
                  found == nullptr ? "none" : found->line()),
      fmt::format("name the folder of {}; fovea inspect shows what a folder holds", called));
}

TokenizerData read_tokenizer_data(const fs::path& folder, std::string_view file) {
  return tokenizer_data_from_text(read_model_file(folder, file), (folder / file).string());
}

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& folder, index vocabulary,
                                          std::string_view file) {
  auto tokenizer = make_tokenizer(read_tokenizer_data(folder, file));
  if (tokenizer->vocabulary_size() != vocabulary) {
    fail(ErrorCode::kModelDamaged, "{}: the tokenizer has {} tokens, the model {}", folder.string(),
         tokenizer->vocabulary_size(), vocabulary);
  }
  return tokenizer;
}

Safetensors read_fitting_weights(const fs::path& folder, const std::function<ModelSizes()>& sizes) {
  require_memory_for_weights(folder);
  Safetensors tensors = read_model_weights(folder);
  check_weights(sizes, tensors, folder);
  return tensors;
}

}  // namespace fovea
