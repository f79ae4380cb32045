// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/encoder_export.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/encoder_writer.h"
#include "fovea/task/adapters.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/embed/sentence_encoder.h"
#include "fovea/task/encoder_adapters.h"
#include "fovea/task/exported_files.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/run_flow.h"
#include "fovea/task/tag/tagger.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_export(const fs::path& model, std::string_view why, std::string hint) {
  throw Error(ErrorCode::kModelWrongKind, fmt::format("{}: {}", model.string(), why),
              std::move(hint));
}

void require_base(const fs::path& model, bool reads_pieces, bool is_foreign) {
  require_of_fovea(!is_foreign);
  if (reads_pieces) return;
  refuse_export(model, "the model did not begin from an encoder, and transformers has no other",
                "train one with --base MODEL");
}

struct ModelToWrite {
  TokenizerData kept;
  std::span<Parameter* const> parameters;
  EncoderHead head;
  index max_length = 0;
  Truncate truncate = Truncate::kEnd;
  std::vector<NamedFile> more = {};  ///< further files
};

// The rules of the tokenizer, by which other programs cut long texts as ours does.
std::string rules_of(const std::string& text, const ModelToWrite& model) {
  constexpr std::string_view kOurs[] = {"model_max_length", "truncation_side"};
  const Json begun = parse_json(text, {"tokenizer_config.json", ErrorCode::kModelDamaged});
  Json::Object rules = members_but(begun.object(), kOurs);
  rules.emplace_back("model_max_length", model.max_length);
  rules.emplace_back("truncation_side", model.truncate == Truncate::kFront ? "left" : "right");
  return Json(std::move(rules)).pretty();
}

std::string write_encoder(const ModelToWrite& model, const fs::path& folder, DType dtype) {
  constexpr std::string_view kConfig = "config.json", kRules = "tokenizer_config.json";
  const ModelFiles files = kept_encoder_files(model.kept.model, "tokenizer.txt");
  const std::string where = files.path(kConfig), begun = files.text(kConfig);
  const Json json(with_dtype(config_with_head(begun, model.head, where), dtype));
  std::vector<NamedFile> written;
  for (const auto& [name, text] : files.members()) {
    if (name != kConfig && name != kRules) written.push_back({name, text});
  }
  written.insert(written.end(), model.more.begin(), model.more.end());
  const std::string rules = files.has(kRules) ? files.text(kRules) : "{}";
  written.push_back({std::string(kRules), rules_of(rules, model)});
  written.push_back(
      exported_weights(encoder_tensors_of(model.parameters, json, model.head.head, where), dtype));
  written.push_back({std::string(kConfig), json.pretty()});
  write_exported(folder, std::move(written));
  return class_with_head(json, model.head.head, where);
}

// The outputs of a regression are numbers less their center, in units of their scale.
void take_scale(std::span<Parameter* const> parameters, const NumberScale& numbers) {
  for (Parameter* const parameter : parameters) {
    if (!parameter->name.starts_with("output.")) continue;
    const bool is_bias = parameter->name.ends_with("bias");
    for (float& value : parameter->value.vec<float>()) {
      value = static_cast<float>(value * numbers.scale + (is_bias ? numbers.center : 0));
    }
  }
}

EncoderProblem problem_of(ClassifierTask task) {
  if (task == ClassifierTask::kRegression) return EncoderProblem::kNumber;
  return task == ClassifierTask::kMultiLabel ? EncoderProblem::kAnyLabels
                                             : EncoderProblem::kOneLabel;
}

Json::Object module_of(index number, std::string path, std::string_view name) {
  return {{"idx", number},
          {"name", fmt::format("{}", number)},
          {"path", std::move(path)},
          {"type", fmt::format("sentence_transformers.models.{}", name)}};
}

// How sentence-transformers makes a vector of the rows of a text.
std::vector<NamedFile> sentence_files(const SentenceEncoderConfig& c, index max_length) {
  Json::Array modules = {Json(module_of(0, "", "Transformer")),
                         Json(module_of(1, "1_Pooling", "Pooling"))};
  if (c.normalizes) modules.emplace_back(module_of(2, "2_Normalize", "Normalize"));
  const Json::Object pooling = {{"word_embedding_dimension", c.width},
                                {"pooling_mode_cls_token", c.pooling == PoolingKind::kFirst},
                                {"pooling_mode_mean_tokens", c.pooling == PoolingKind::kMean},
                                {"pooling_mode_max_tokens", c.pooling == PoolingKind::kMax},
                                {"pooling_mode_mean_sqrt_len_tokens", false}};
  const Json::Object lengths = {{"max_seq_length", max_length}, {"do_lower_case", false}};
  std::vector<NamedFile> files = {{"modules.json", Json(std::move(modules)).pretty()},
                                  {"1_Pooling/config.json", Json(pooling).pretty()},
                                  {"sentence_bert_config.json", Json(lengths).pretty()}};
  if (!c.prompt.empty()) {
    const Json::Object prompts = {{"default", c.prompt}};
    const Json::Object said = {{"prompts", prompts}, {"default_prompt_name", "default"}};
    files.push_back({"config_sentence_transformers.json", Json(said).pretty()});
  }
  return files;
}

// What is written of each kind of model.

ModelToWrite to_write(const fs::path&, const LoadedSentenceEncoder& loaded) {
  const index longest = loaded.settings.text.max_length;
  return {.kept = loaded.kept,
          .parameters = loaded.model->parameters(),
          .head = {.head = BertHead::kNone},
          .max_length = longest,
          .more = sentence_files(loaded.model->config(), longest)};
}

ModelToWrite to_write(const fs::path& model, const LoadedClassifier& loaded) {
  require_base(model, loaded.reads_pieces(), loaded.is_foreign);
  const EncoderProblem problem = problem_of(loaded.config().task);
  const auto parameters = loaded.model->parameters();
  if (problem == EncoderProblem::kNumber) take_scale(parameters, loaded.numbers);
  return {.kept = read_tokenizer_data(model),
          .parameters = parameters,
          .head = {BertHead::kText, problem, loaded.labels},
          .max_length = loaded.settings.text.max_length,
          .truncate = loaded.settings.text.truncate};
}

ModelToWrite to_write(const fs::path& model, const LoadedTagger& loaded) {
  require_base(model, loaded.reads_pieces(), loaded.is_foreign);
  if (loaded.tags.size() > 1) {
    refuse_export(model, "the model has several tag columns, and transformers has one head",
                  "train a model for each column");
  }
  if (head_of(loaded.settings.model, 0) == TagHead::kCrf) {
    refuse_export(model, "the tags are chosen by a CRF, which transformers does not have",
                  "train the model with --head softmax");
  }
  return {.kept = loaded.vocabulary.kept,
          .parameters = loaded.model->parameters(),
          .head = {BertHead::kTokens, EncoderProblem::kOneLabel, loaded.tags[0].names()},
          .max_length = loaded.settings.text.max_length};
}

std::string_view task_of(BertHead head) {
  if (head == BertHead::kNone) return "FEATURE_EXTRACTION";
  return head == BertHead::kText ? "SEQ_CLS" : "TOKEN_CLS";
}

// What PEFT keeps whole for such a tensor: "pooler" of "bert.pooler.dense.weight", "classifier" of
// "classifier.out_proj.weight".
std::string head_module(std::string_view tensor) {
  constexpr std::string_view kPooler = "pooler.";
  const std::size_t pooler = tensor.find(kPooler);
  if (pooler != tensor.npos) return "pooler";
  return std::string(tensor.substr(0, tensor.find('.')));
}

// The adapters of a folder and the head of its model. The modules are named whole, since others end
// alike: "attention.output.dense" and "output.dense".
void write_adapters(const fs::path& run, const ModelToWrite& model, const AdaptableBase& options,
                    const fs::path& folder) {
  const ModelFiles files = kept_encoder_files(model.kept.model, "tokenizer.txt");
  const Json json =
      parse_json(files.text("config.json"), {"config.json", ErrorCode::kModelDamaged});
  std::vector<Parameter*> of_head;
  std::ranges::copy_if(model.parameters, std::back_inserter(of_head),
                       [](const Parameter* one) { return !is_left_by_adapters(*one); });
  std::vector<NamedTensor> tensors =
      encoder_tensors_of(of_head, json, model.head.head, "config.json");
  PeftForm form{.target_modules = {},
                .modules_to_save = {},
                .task_type = std::string(task_of(model.head.head)),
                .transposed = false};
  std::set<std::string> saved, adapted;
  for (NamedTensor& one : tensors) {
    saved.insert(head_module(one.name));
    one.name = fmt::format("{}{}", kPeftPrefix, one.name);
  }
  for (NamedTensor& one : read_model_weights(run).tensors) {
    if (!one.name.starts_with(kPeftPrefix)) continue;
    adapted.insert(
        one.name.substr(kPeftPrefix.size(), one.name.rfind(".lora_") - kPeftPrefix.size()));
    tensors.push_back(std::move(one));
  }
  form.modules_to_save.assign(saved.begin(), saved.end());
  form.target_modules.assign(adapted.begin(), adapted.end());
  write_peft(folder, tensors, options, form);
}

// The command that trains such a model.
std::string_view training_of(const LoadedTagger&) { return "train tag"; }
std::string_view training_of(const LoadedSentenceEncoder&) { return "train embed"; }
std::string_view training_of(const LoadedClassifier& loaded) {
  return loaded.reads_pairs() ? "train pairs" : "train classify";
}

// Calls f with the model, whatever its kind.
template <class F>
auto with_model(const fs::path& model, const F& f) {
  switch (kind_of_model(model)) {
    case ModelKind::kTagger:
      return f(load_tagger(model));
    case ModelKind::kSentenceEncoder:
      require_of_fovea(is_sentence_encoder(model));
      return f(load_sentence_encoder(model));
    default:
      return f(load_classifier(model));
  }
}

// Settings of a model that is whole.
template <class Settings>
void make_whole(Settings& settings, Precision type) {
  std::string base = std::move(settings.from.base);
  settings.from = {};
  settings.from.base = std::move(base);
  settings.recipe.save_dtype = type;
}

// The config.json of a run folder, as that of a model without adapters.
std::string whole_config(const fs::path& run, Precision type) {
  const std::string name = (run / "config.json").string();
  const std::string text = read_model_file(run, "config.json");
  switch (kind_of_model(run)) {
    case ModelKind::kTagger: {
      TaggerConfigFile file = tagger_config_from_text(text, name);
      make_whole(file.settings, type);
      return config_text(file.settings, file.outputs);
    }
    case ModelKind::kSentenceEncoder: {
      EmbedSettings settings = embed_settings_from_text(text, name);
      make_whole(settings, type);
      return config_text(settings);
    }
    default: {
      ClassifierConfigFile file = classifier_config_from_text(text, name);
      make_whole(file.settings, type);
      return config_text(file.settings, file.outputs);
    }
  }
}

}  // namespace

bool is_on_encoder(ModelKind kind) {
  return kind == ModelKind::kClassifier || kind == ModelKind::kTagger ||
         kind == ModelKind::kSentenceEncoder;
}

std::string export_encoder(const fs::path& model, const fs::path& folder, DType dtype) {
  return with_model(model, [&](const auto& loaded) {
    return write_encoder(to_write(model, loaded), folder, dtype);
  });
}

void export_encoder_adapters(const fs::path& run, const fs::path& folder) {
  with_model(run, [&](const auto& loaded) {
    require_adapters(run, loaded.settings.from, training_of(loaded));
    write_adapters(run, to_write(run, loaded), loaded.settings.from, folder);
  });
}

std::string import_encoder(const fs::path& run, const fs::path& folder, Precision type) {
  return with_model(run, [&](const auto& loaded) {
    if (loaded.settings.from.lora == 0) {
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("{}: a model of fovea already", run.string()),
                  "name a folder of adapters");
    }
    const TokenizerData kept = read_tokenizer_data(run);
    write_model_folder(folder, first_files(whole_config(run, type), kept),
                       loaded.model->parameters(), type);
    return std::string(encoder_adapters_of(kept, "tokenizer.txt", BertHead::kNone).row->name);
  });
}

}  // namespace fovea
