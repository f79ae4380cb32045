// SPDX-License-Identifier: Apache-2.0
// Shared by the loading of every kind of model.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "fovea/base/check.h"
#include "fovea/config/json.h"
#include "fovea/model/encoder_config.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/optimizer.h"

namespace fovea {

/// Throws kModelWrongKind unless the text of config.json, which is called `name`, says this kind;
/// `called` is what people call it: "a language model".
void require_model_kind(std::string_view text, const std::string& name, std::string_view kind,
                        std::string_view called);

/// config.json of a model that its settings describe: its kind, then all settings.
template <class Settings>
struct SettingsFile {
  std::string kind;
  Settings settings = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kind", kind, "what the model does");
    settings.visit_fields(visit);
  }
};

/// `file`, which has the kind and the defaults of files that were written before a setting was one,
/// changed by the text of config.json. Throws as require_model_kind() does, and kModelDamaged.
template <class File>
File config_from_text(File file, std::string_view text, const std::string& name,
                      std::string_view called) {
  require_model_kind(text, name, file.kind, called);
  file.settings.model.set_first_revision();
  from_json(text, {name, ErrorCode::kModelDamaged}, file, MissingKeys::kKeepTheirValue);
  return file;
}

/// Calls `check` of what config.json, called `name`, holds; its error is kModelDamaged, since no
/// run is stored with that.
template <class Check>
void check_stored(const std::string& name, const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    fail(ErrorCode::kModelDamaged, "{}: {}", name, error.what());
  }
}

/// The contents of tokenizer.txt, or of another such file. Throws as read_model_file() does, and
/// kModelDamaged.
TokenizerData read_tokenizer_data(const std::filesystem::path& folder,
                                  std::string_view file = "tokenizer.txt");

/// The tokenizer of a model folder. Throws as read_model_file() does, and kModelDamaged if it does
/// not have `vocabulary` tokens.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder, index vocabulary,
                                          std::string_view file = "tokenizer.txt");

/// The sizes of a model's parameters by its settings, before memory is taken for them.
struct ModelSizes {
  index layers = 0;
  double largest_matrix = 0;  ///< values, at least of any table or matrix that the settings name
  std::function<index()> parameters;  ///< asked only if the above are possible
  std::function<double()> bytes;      ///< of the model in memory; asked only then, too
};

/// Bytes of the values of a model: its parameters, and the table of positions if it is not learned.
template <class Config>
double model_memory(const Config& config) {
  const double table =
      config.position == PositionKind::kSinusoidal
          ? static_cast<double>(resolve(config).position_max) * static_cast<double>(config.width)
          : 0;
  return sizeof(float) * (static_cast<double>(parameter_count(config)) + table);
}

/// Reads the weights of a model folder. config.json may have been changed together with its
/// checksum, so the sizes that it gives are compared with the weights. Throws as
/// read_model_weights() does, kModelDamaged, kOutOfMemory.
Safetensors read_fitting_weights(const std::filesystem::path& folder,
                                 const std::function<ModelSizes()>& sizes);

/// A model of this configuration with these weights. `more`: what else it is made of.
template <class Model, class Config, class... More>
std::unique_ptr<Model> load_model(const std::filesystem::path& folder,
                                  ModelSizes (*sizes_of)(const Config&), const Config& config,
                                  const More&... more) {
  const Safetensors tensors = read_fitting_weights(folder, [&] { return sizes_of(config); });
  auto model = std::make_unique<Model>(config, more...);
  restore_parameters(model->parameters(), tensors, (folder / kWeightsName).string());
  return model;
}

}  // namespace fovea
