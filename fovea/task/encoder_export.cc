// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/encoder_export.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/encoder_writer.h"
#include "fovea/task/exported_files.h"
#include "fovea/task/load_parts.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_export(const fs::path& model, std::string_view why, std::string hint) {
  throw Error(ErrorCode::kModelWrongKind, fmt::format("{}: {}", model.string(), why),
              std::move(hint));
}

void require_base(const fs::path& model, bool reads_pieces, bool is_foreign) {
  require_ours(model, !is_foreign);
  if (reads_pieces) return;
  refuse_export(model, "the model did not begin from an encoder, and transformers has no other",
                "train one with --base MODEL");
}

struct ModelToWrite {
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

std::string write_encoder(const TokenizerData& kept, const ModelToWrite& model,
                          const fs::path& folder, DType dtype) {
  constexpr std::string_view kConfig = "config.json", kRules = "tokenizer_config.json";
  const ModelFiles files = kept_encoder_files(kept.model, "tokenizer.txt");
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

}  // namespace

std::string export_encoder(const fs::path&, LoadedSentenceEncoder loaded, const fs::path& folder,
                           DType dtype) {
  const index longest = loaded.settings.text.max_length;
  return write_encoder(loaded.kept,
                       {.parameters = loaded.model->parameters(),
                        .head = {.head = BertHead::kNone},
                        .max_length = longest,
                        .more = sentence_files(loaded.model->config(), longest)},
                       folder, dtype);
}

void require_ours(const fs::path& model, bool is_ours) {
  if (is_ours) return;
  refuse_export(model, "export is for models that fovea has trained",
                "this model has the form of another program already");
}

std::string export_encoder(const fs::path& model, LoadedClassifier loaded, const fs::path& folder,
                           DType dtype) {
  require_base(model, loaded.reads_pieces(), loaded.is_foreign);
  const EncoderProblem problem = problem_of(loaded.config().task);
  const auto parameters = loaded.model->parameters();
  if (problem == EncoderProblem::kNumber) take_scale(parameters, loaded.numbers);
  return write_encoder(read_tokenizer_data(model),
                       {.parameters = parameters,
                        .head = {BertHead::kText, problem, loaded.labels},
                        .max_length = loaded.settings.text.max_length,
                        .truncate = loaded.settings.text.truncate},
                       folder, dtype);
}

std::string export_encoder(const fs::path& model, LoadedTagger loaded, const fs::path& folder,
                           DType dtype) {
  require_base(model, loaded.reads_pieces(), loaded.is_foreign);
  if (loaded.tags.size() > 1) {
    refuse_export(model, "the model has several tag columns, and transformers has one head",
                  "train a model for each column");
  }
  if (head_of(loaded.settings.model, 0) == TagHead::kCrf) {
    refuse_export(model, "the tags are chosen by a CRF, which transformers does not have",
                  "train the model with --head softmax");
  }
  return write_encoder(
      loaded.vocabulary.kept,
      {.parameters = loaded.model->parameters(),
       .head = {BertHead::kTokens, EncoderProblem::kOneLabel, loaded.tags[0].names()},
       .max_length = loaded.settings.text.max_length},
      folder, dtype);
}

}  // namespace fovea
