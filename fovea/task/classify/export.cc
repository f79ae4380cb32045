// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/export.h"

#include <fmt/core.h>

#include "fovea/linear/compact.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/train/model_folder.h"

namespace fovea {

CompactExport export_compact(const std::filesystem::path& model,
                             const std::filesystem::path& folder, index bytes) {
  const LoadedClassifier loaded = load_classifier(model);
  if (loaded.linear == nullptr) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: the model is {}, and only linear classifiers become compact",
                            model.string(), to_string(loaded.config().kind)),
                "train with --model linear, or save half: train with --save-dtype bf16");
  }
  const LinearModel small = pruned(*loaded.linear, bytes);
  const NamedFile config{"config.json", read_model_file(model, "config.json")};
  const SafetensorsMetadata metadata = read_model_weights(model).metadata;  // it may be replaced
  write_model_files(folder, {&config, 1});
  write_model_weights(folder, compact_tensors(small), metadata);
  return {.ngrams = small.features().bias_column(),
          .ngrams_before = loaded.linear->features().bias_column(),
          .bytes = static_cast<index>(std::filesystem::file_size(folder / kWeightsName))};
}

}  // namespace fovea
