// SPDX-License-Identifier: Apache-2.0
// Loads a model from the files of a model folder.
#include <algorithm>
#include <string>
#include <system_error>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/config/json.h"
#include "fovea/model/language_model_stages.h"
#include "fovea/task/language_model.h"
#include "fovea/task/memory.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKind = "language_model";

// config.json: the kind of the model, then all its settings.
struct Config {
  std::string kind{kKind};
  LanguageModelSettings settings;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kind", kind, "what the model does");
    settings.visit_fields(visit);
  }
};

// At least as many values as any table or matrix whose size the settings name.
double largest_matrix(const LanguageModelConfig& c) {
  const index block = c.position == PositionKind::kLearned ? c.block : 0;
  double columns = static_cast<double>(std::max(c.vocabulary, block));
  if (c.kind == LanguageModelKind::kTransformer) {
    const double heads = static_cast<double>(c.heads) * static_cast<double>(c.head_dim);
    columns = std::max({columns, static_cast<double>(c.ff), heads});
  }
  return static_cast<double>(c.width) * columns;
}

index layers_of(const LanguageModelConfig& c) { return layer_count(sized_stages(resolve(c))); }

// config.json may have been changed together with its checksum. So its sizes are compared with the
// weights before memory is taken for the model.
void check_weights(const LanguageModelConfig& config, const Safetensors& weights,
                   const fs::path& folder) {
  index held = 0;
  for (const NamedTensor& named : weights.tensors) held += named.tensor.size();
  const auto tensors = static_cast<index>(weights.tensors.size());
  try {
    const bool possible =
        layers_of(config) <= tensors && largest_matrix(config) <= static_cast<double>(held);
    if (possible && parameter_count(config) == held) return;
  } catch (const Error& error) {
    fail(ErrorCode::kModelDamaged, "{}: {}", (folder / "config.json").string(), error.what());
  }
  fail(ErrorCode::kModelDamaged, "{}: such a model does not have the {} parameters of {}",
       (folder / "config.json").string(), held, kWeightsName);
}

constexpr std::string_view kMoreMemory = "free some memory, or use a machine that has more";

// Reading takes the bytes of the file and the tensors made from them, hence twice the size.
void require_memory_for_weights(const fs::path& folder) {
  std::error_code missing;
  const std::uintmax_t bytes = fs::file_size(folder / kWeightsName, missing);
  if (missing) return;  // reading will report the error
  require_memory("reading the weights", 2 * static_cast<double>(bytes), kMoreMemory);
}

}  // namespace

std::string config_text(const LanguageModelSettings& settings) {
  Config config;
  config.settings = settings;
  return to_json(config);
}

LanguageModelSettings settings_from_text(std::string_view text, const std::string& name) {
  const JsonSource source{name, ErrorCode::kModelDamaged};
  const Json json = parse_json(text, source);
  const Json* kind = json.find("kind");
  if (kind == nullptr || kind->get_if<std::string>() == nullptr || kind->text() != kKind) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: expected \"kind\": \"{}\", got {}", name, kKind,
                            kind == nullptr ? "none" : kind->line()),
                kind != nullptr && kind->line() == "\"classifier\""
                    ? "fovea classify and fovea eval take a classifier; here, name the folder of a "
                      "language model"
                    : "name the folder of a language model");
  }
  Config config;
  config.settings.model.embedding_scale = 1;  // of models that were made before it was a setting
  from_json(text, source, config, MissingKeys::kKeepTheirValue);
  return config.settings;
}

LanguageModelSettings load_settings(const fs::path& folder) {
  return settings_from_text(read_model_file(folder, "config.json"),
                            (folder / "config.json").string());
}

LoadedLanguageModel load_language_model(const fs::path& folder) {
  LoadedLanguageModel loaded;
  loaded.settings = load_settings(folder);
  const std::string tokenizer = read_model_file(folder, "tokenizer.txt");
  loaded.tokenizer =
      make_tokenizer(tokenizer_data_from_text(tokenizer, (folder / "tokenizer.txt").string()));
  if (loaded.tokenizer->vocabulary_size() != loaded.settings.model.vocabulary) {
    fail(ErrorCode::kModelDamaged, "{}: the tokenizer has {} tokens, the model {}", folder.string(),
         loaded.tokenizer->vocabulary_size(), loaded.settings.model.vocabulary);
  }
  require_memory_for_weights(folder);
  const Safetensors tensors = read_model_weights(folder);
  check_weights(loaded.settings.model, tensors, folder);
  require_memory("the model", model_memory(loaded.settings.model), kMoreMemory);
  loaded.model =
      std::make_unique<LanguageModel>(loaded.settings.model, loaded.settings.recipe.seed);
  restore_parameters(loaded.model->parameters(), tensors, (folder / kWeightsName).string());
  return loaded;
}

}  // namespace fovea
