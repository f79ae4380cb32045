// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/base.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/words.h"
#include "fovea/config/field.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/run_flow.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr index kUsualSequence = 512;

// What a run may change of the model that it begins from.
constexpr std::array<std::string_view, 2> kFree = {"model.block", "model.dropout"};
// What the tokens of the model say of the text.
constexpr std::array<std::string_view, 6> kOfTokenizer = {"text.tokenizer",  "text.tokenizer_model",
                                                          "text.lower",      "text.min_count",
                                                          "text.vocabulary", "text.marks"};

bool has(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A model of fovea knows all of its settings; one from elsewhere has a model alone.
LanguageModelSettings settings_of_base(const fs::path& base) {
  if (!is_pretrained(base)) return load_settings(base);
  LanguageModelSettings settings;
  settings.model = load_pretrained_config(base);
  settings.text.tokenizer = kPretrainedKind;
  return settings;
}

void require_as_base(const Field& said, const Field& base, const std::string& where) {
  if (value_text(said) == value_text(base)) return;
  const std::string option = option_name(said.last_name());
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{}: {} has {}, and a training that begins from it keeps that", option,
                          where, value_text(base)),
              fmt::format("leave {} out, or train a model from the start, without --base", option));
}

}  // namespace

void apply_base_recipe(LanguageModelSettings& s) {
  s.text.batch_size = 4;
  s.text.sequence_length = kUsualSequence;
  s.recipe.lr = 1e-4;
  s.recipe.min_lr = 1e-5;
  s.recipe.warmup = 20;
  s.recipe.beta2 = 0.999;
  s.recipe.weight_decay = 0.01;
  s.recipe.stop_after = "1e";
  s.recipe.eval_every = "0.25e";
  s.recipe.save_every = "0.5e";
}

void take_base(LanguageModelSettings& settings, const std::vector<std::string>& set) {
  const fs::path base = settings.text.base;
  LanguageModelSettings theirs = settings_of_base(base);
  std::vector<Field> said = fields_of(settings), has_base = fields_of(theirs);
  for (std::size_t n = 0; n < said.size(); ++n) {
    const std::string& name = said[n].name;
    const bool decided =
        (name.starts_with("model.") && !has(kFree, name)) || has(kOfTokenizer, name);
    if (decided && has(set, name)) require_as_base(said[n], has_base[n], base.string());
  }
  if (has(set, "model.block") && settings.model.block > theirs.model.block) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--block {}: {} sees {} tokens", settings.model.block, base.string(),
                            theirs.model.block),
                "give a smaller --block; --sequence-length is that of the sequences to train on");
  }
  if (has(set, "model.block")) theirs.model.block = settings.model.block;
  if (has(set, "model.dropout")) theirs.model.dropout = settings.model.dropout;
  settings.model = std::move(theirs.model);
  TextOptions& text = settings.text;
  text.tokenizer = theirs.text.tokenizer;
  text.tokenizer_model = theirs.text.tokenizer_model;
  text.lower = theirs.text.lower;
  text.min_count = theirs.text.min_count;
  text.vocabulary = theirs.text.vocabulary;
  text.marks = theirs.text.marks;
  if (!has(set, "text.data")) text.data = theirs.text.data;
  if (!has(set, "text.sequence_length")) {
    text.sequence_length = std::min(text.sequence_length, settings.model.block);
  }
}

TokenizerData tokenizer_of_base(const fs::path& base) {
  if (!is_pretrained(base)) return read_tokenizer_data(base);
  return {.kind = std::string(kPretrainedKind), .model = kept_text(base)};
}

LanguageModel load_base(const LanguageModelSettings& settings) {
  const fs::path base = settings.text.base;
  const LanguageModelConfig& config = settings.model;
  if (is_pretrained(base)) {
    PretrainedLanguageModel loaded =
        load_pretrained(base, {.max_context = config.block, .dropout = config.dropout});
    return std::move(*loaded.model);
  }
  return load_weights_of(base, config, settings.recipe.seed);
}

void freeze_what_is_lacking(const LanguageModel& model, std::string_view name) {
  std::set<std::string> has;
  for (const TensorPlace& place :
       tensor_places(architecture(name), ModelForm::kHuggingFace, model.config())) {
    has.insert(place.ours);
  }
  for (Parameter* const parameter : model.parameters()) {
    if (!has.contains(parameter->name)) parameter->frozen = true;
  }
}

std::string import_model(const fs::path& path, const fs::path& folder, Precision type) {
  if (!fs::exists(path)) {
    throw Error(ErrorCode::kModelMissing, fmt::format("{}: no such file or folder", path.string()),
                "name a folder of Hugging Face or a GGUF file");
  }
  if (!is_pretrained(path)) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: expected a model of another program", path.string()),
                "name a folder of Hugging Face or a GGUF file");
  }
  PretrainedLanguageModel loaded = load_pretrained(path);
  LanguageModelSettings settings;
  settings.model = loaded.config;
  settings.text.tokenizer = kPretrainedKind;
  settings.text.base = fs::absolute(path).string();
  settings.text.batch_size = 1;
  settings.recipe.save_dtype = type;
  const std::vector<NamedFile> files = first_files(config_text(settings), tokenizer_of_base(path));
  const index bytes_of_value = type == Precision::kBFloat16 ? 2 : 4;
  require_disk_space(folder,
                     static_cast<std::uintmax_t>(parameter_count(loaded.config) * bytes_of_value) +
                         files.back().bytes.size());
  create_folders(folder);
  write_model_files(folder, files);
  write_model_weights(folder, parameter_tensors(loaded.model->parameters()), {}, dtype_of(type));
  return loaded.text.architecture;
}

}  // namespace fovea
