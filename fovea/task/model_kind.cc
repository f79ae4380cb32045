// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/model_kind.h"

#include <fmt/core.h>

#include "fovea/base/error.h"
#include "fovea/config/json.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/tag/tagger.h"
#include "fovea/task/translate/translator.h"
#include "fovea/tensor/checksum.h"
#include "fovea/train/model_folder.h"

namespace fovea {

ModelKind kind_of_model(const std::filesystem::path& folder) {
  const std::string name = (folder / "config.json").string();
  const Json json =
      parse_json(read_model_file(folder, "config.json"), {name, ErrorCode::kModelDamaged});
  const Json* kind = json.get_if<Json::Object>() == nullptr ? nullptr : json.find("kind");
  const std::string text = kind == nullptr ? "none" : kind->line();
  if (text == "\"language_model\"") return ModelKind::kLanguageModel;
  if (text == fmt::format("\"{}\"", kClassifierKind)) return ModelKind::kClassifier;
  if (text == fmt::format("\"{}\"", kTaggerKind)) return ModelKind::kTagger;
  if (text == fmt::format("\"{}\"", kTranslatorKind)) return ModelKind::kTranslator;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: expected \"kind\": \"language_model\", \"{}\", \"{}\" or \"{}\", "
                          "got {}",
                          name, kClassifierKind, kTaggerKind, kTranslatorKind, text),
              "name the folder of a model that fovea train has written");
}

std::string config_checksum(const std::filesystem::path& folder) {
  return xxh3_128(read_model_file(folder, "config.json"));
}

}  // namespace fovea
