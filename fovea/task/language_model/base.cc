// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/base.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/words.h"
#include "fovea/config/field.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/task/base.h"
#include "fovea/task/language_model/adapters.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/run_flow.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr index kUsualSequence = 512;
constexpr const char* kImportable =
    "name a folder of Hugging Face, a GGUF file, or a folder of adapters";

// The settings that a run may change in the model that it begins from.
constexpr std::array<std::string_view, 2> kFree = {"model.block", "model.dropout"};
// The settings of the text that the tokens of the model decide.
constexpr std::array<std::string_view, 6> kOfTokenizer = {"text.tokenizer",  "text.tokenizer_model",
                                                          "text.lower",      "text.min_count",
                                                          "text.vocabulary", "text.marks"};

// A model of fovea knows all of its settings; one from elsewhere has a model alone.
LanguageModelSettings settings_of_base(const fs::path& base) {
  if (!is_pretrained(base)) return load_settings(base);
  LanguageModelSettings settings;
  settings.model = load_pretrained_config(base);
  settings.text.tokenizer = kPretrainedKind;
  return settings;
}

bool is_decided(std::string_view field) {
  return (field.starts_with("model.") && !contains(kFree, field)) || contains(kOfTokenizer, field);
}

}  // namespace

void apply_base_recipe(LanguageModelSettings& s) {
  s.text.batch_size = 4;
  s.text.sequence_length = kUsualSequence;
  const bool adapts = s.from.lora > 0;
  s.recipe.lr = adapts ? 5e-4 : 1e-4;
  // As those who train with preferences have it (docs/commands/train-lm.md).
  if (s.text.objective == LanguageObjective::kDpo) s.recipe.lr = adapts ? 5e-6 : 5e-7;
  s.recipe.min_lr = s.recipe.lr / 10;
  s.recipe.warmup = 20;
  s.recipe.beta2 = 0.999;
  s.recipe.weight_decay = 0.01;
  s.recipe.stop_after = "1e";
  s.recipe.eval_every = "0.25e";
  s.recipe.save_every = "0.5e";
}

void take_base(LanguageModelSettings& settings, const std::vector<std::string>& set) {
  const fs::path base = settings.from.base;
  LanguageModelSettings theirs = settings_of_base(base);
  require_as_base(fields_of(settings), fields_of(theirs), set, is_decided, base.string());
  if (contains(set, "model.block") && settings.model.block > theirs.model.block) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--block {}: {} sees {} tokens", settings.model.block, base.string(),
                            theirs.model.block),
                "give a smaller --block; --sequence-length is that of the sequences to train on");
  }
  if (settings.from.lora > 0) settings.from.base_checksum = weights_checksum(base);
  if (contains(set, "model.block")) theirs.model.block = settings.model.block;
  if (contains(set, "model.dropout")) theirs.model.dropout = settings.model.dropout;
  settings.model = std::move(theirs.model);
  TextOptions& text = settings.text;
  text.tokenizer = theirs.text.tokenizer;
  text.tokenizer_model = theirs.text.tokenizer_model;
  text.lower = theirs.text.lower;
  text.min_count = theirs.text.min_count;
  text.vocabulary = theirs.text.vocabulary;
  text.marks = theirs.text.marks;
  if (!contains(set, "text.data")) {
    text.data = text.objective == LanguageObjective::kDpo ? std::string(kChat) : theirs.text.data;
  }
  if (!contains(set, "text.sequence_length")) {
    text.sequence_length = std::min(text.sequence_length, settings.model.block);
  }
}

TokenizerData tokenizer_of_base(const fs::path& base) {
  if (!is_pretrained(base)) return read_tokenizer_data(base);
  return {.kind = std::string(kPretrainedKind), .model = kept_text(base)};
}

WeightTypes types_of_base(const LanguageModelBase& options) {
  return options.lora > 0 ? WeightTypes::kAsTheyLie : WeightTypes::kFloat32;
}

LanguageModel load_base(const LanguageModelSettings& settings, WeightTypes types) {
  const fs::path base = settings.from.base;
  const LanguageModelConfig& config = settings.model;
  if (is_pretrained(base)) {
    PretrainedLanguageModel loaded = load_pretrained(
        base, {.max_context = config.block, .dropout = config.dropout, .weights = types});
    return std::move(*loaded.model);
  }
  LanguageModelSettings theirs = load_settings(base);
  if (theirs.from.lora == 0) return load_weights_of(base, config, settings.recipe.seed);
  theirs.model = config;
  const TextCutter cutter = make_cutter(read_tokenizer_data(base), base.string());
  const std::string architecture = architecture_name(cutter.pretrained);
  return load_adapted(base, theirs, architecture, WeightTypes::kFloat32).model;
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

BaseParts base_parts(const LanguageModelConfig& c) {
  // Layers of other models may be several in one: an LSTM of three is layer 0.
  const bool is_transformer = c.kind == LanguageModelKind::kTransformer;
  return {.embeddings = {"embedding."},
          .layer = is_transformer ? "blocks" : "encoder",
          .layers = is_transformer ? c.layers : std::ssize(sized_stages(c))};
}

void freeze_parts(const LanguageModel& model, std::string_view parts) {
  freeze_parts(model.parameters(), base_parts(model.config()), parts);
}

void freeze_for(const LanguageModel& model, const LanguageModelRun& run) {
  if (run.pretrained) freeze_what_is_lacking(model, run.pretrained->architecture);
  if (!run.settings.from.freeze.empty()) freeze_parts(model, run.settings.from.freeze);
}

index frozen_count(const LanguageModelRun& run) {
  // Without a base nothing is frozen, and a model that does not fit is refused before it is made.
  if (!run.pretrained && run.settings.from.freeze.empty()) return 0;
  const LanguageModel shapes(run.settings.model,
                             ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
  freeze_for(shapes, run);
  return frozen_values(shapes.parameters());
}

namespace {

// What is written of a model: of one from elsewhere, or of adapters and their base as one.
struct Imported {
  LanguageModelSettings settings = {};
  TokenizerData tokenizer;
  std::unique_ptr<LanguageModel> model;
  std::string architecture;
};

Imported read_foreign(const fs::path& path, const std::vector<std::string>& adapters) {
  LoadedLanguageModel loaded = load_language_model(path, {.adapter = adapters});
  Imported found{.tokenizer = tokenizer_of_base(path),
                 .model = std::move(loaded.model),
                 .architecture = loaded.pretrained->architecture};
  found.settings.model = loaded.settings.model;
  found.settings.text.tokenizer = kPretrainedKind;
  found.settings.text.batch_size = 1;
  found.settings.from.base = fs::absolute(path).string();
  return found;
}

LanguageModelBase only_named(std::string base) {
  LanguageModelBase options;
  options.base = std::move(base);
  return options;
}

Imported read_adapted(const fs::path& path, const std::vector<std::string>& adapters) {
  LoadedLanguageModel loaded = load_language_model(path, {.adapter = adapters});
  if (loaded.settings.from.lora == 0 && adapters.empty()) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: a model of fovea already", path.string()), kImportable);
  }
  Imported found{.settings = std::move(loaded.settings),
                 .tokenizer = read_tokenizer_data(path),
                 .model = std::move(loaded.model),
                 .architecture = loaded.pretrained ? loaded.pretrained->architecture : "fovea"};
  found.settings.from = only_named(found.settings.from.base);
  return found;
}

}  // namespace

std::string import_model(const fs::path& path, const std::vector<std::string>& adapters,
                         const fs::path& folder, Precision type) {
  if (!fs::exists(path)) {
    throw Error(ErrorCode::kModelMissing, fmt::format("{}: no such file or folder", path.string()),
                kImportable);
  }
  if (!is_pretrained(path) && !fs::is_directory(path)) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: expected a model of another program", path.string()), kImportable);
  }
  Imported found =
      is_pretrained(path) ? read_foreign(path, adapters) : read_adapted(path, adapters);
  found.settings.recipe.save_dtype = type;
  const std::vector<NamedFile> files = first_files(config_text(found.settings), found.tokenizer);
  write_model_folder(folder, files, found.model->parameters(), type);
  return found.architecture;
}

}  // namespace fovea
