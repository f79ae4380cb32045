// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/encoder_peft.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/context.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/sentence_model.h"
#include "fovea/task/encoder_adapters.h"
#include "fovea/task/encoder_export.h"
#include "fovea/task/load_parts.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kTaskOfTexts = "SEQ_CLS", kTaskOfTokens = "TOKEN_CLS",
                           kTaskOfVectors = "FEATURE_EXTRACTION";
constexpr std::string_view kEndOfWeight = ".weight";
// Parameters of ours that a head has.
constexpr std::string_view kOfHead[] = {"pooler.weight", "pooler.bias", "output.weight",
                                        "output.bias"};

const EncoderArchitecture& architecture_of_model(const fs::path& model) {
  if (is_encoder(model) || is_hugging_face(model)) {
    const fs::path file = transformer_folder(model) / "config.json";
    const Json json = read_foreign_json(file);
    return encoder_architecture(ForeignObject(json, file.string()));
  }
  const bool may_be = is_on_encoder(kind_of_model(model)) && fs::exists(model / "tokenizer.txt");
  const TokenizerData kept = may_be ? read_tokenizer_data(model) : TokenizerData();
  if (kept.kind != kPretrainedKind) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("--adapter: {}: the model did not begin from an encoder, so adapters "
                            "of PEFT are of none of its layers",
                            model.string()),
                "leave --adapter out");
  }
  return *encoder_adapters_of(kept, (model / "tokenizer.txt").string(), BertHead::kNone).row;
}

// Which head a model of transformers has for this task_type; none: it does not say.
std::optional<BertHead> head_of_task(const AdapterFolder& adapters) {
  if (adapters.task.empty()) return std::nullopt;
  if (adapters.task == kTaskOfTexts) return BertHead::kText;
  if (adapters.task == kTaskOfTokens) return BertHead::kTokens;
  if (adapters.task == kTaskOfVectors) return BertHead::kNone;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: adapters of the task {}, and no encoder has that", adapters.where,
                          printable(adapters.task)),
              fmt::format("the task_type of adapters of encoders is {}, {} or {}", kTaskOfTexts,
                          kTaskOfTokens, kTaskOfVectors));
}

// Part of a module that the folder holds whole, and of no adapter.
bool is_whole(const NamedTensor& one) {
  return one.name.starts_with(kPeftPrefix) && one.name.find(".lora_") == std::string::npos;
}

bool is_of_head(std::string_view plain) {
  return plain.starts_with("classifier.") || plain.starts_with("pre_classifier.");
}

}  // namespace

// A tensor of theirs, and the rows of ours that hold it.
struct EncoderPeft::Place {
  std::string plain;  // name, without prefix
  Parameter* parameter;
  index first, rows;
};

EncoderPeft::EncoderPeft(const fs::path& model, std::span<const std::string> choices, BertHead head)
    : model_(model), wanted_(head) {
  if (choices.empty()) return;
  row_ = &architecture_of_model(model);
  for (const std::string& choice : choices) read(choice);
  find_head();
}

void EncoderPeft::read(const std::string& said) {
  constexpr std::string_view kNamed = "folders of PEFT";
  const AdapterChoice choice = adapter_choice(said);
  require_adapter_folder(choice, kNamed);
  const std::string where = choice.folder.string();
  if (!is_peft(choice.folder) && fs::exists(choice.folder / kManifestName)) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: a folder of fovea, and none of PEFT", where),
                fmt::format("name it as the model, or write its adapters for PEFT: fovea export {} "
                            "--to peft -o peft",
                            where));
  }
  Folder folder{
      .choice = choice, .adapters = read_peft(choice.folder, WholeModules::kTaken), .whole = {}};
  const std::optional<BertHead> task = head_of_task(folder.adapters);
  if (task && wanted_ != BertHead::kNone && *task != BertHead::kNone && *task != wanted_) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: adapters of a model for {}, and this is one for {}",
                            folder.adapters.where, folder.adapters.task,
                            wanted_ == BertHead::kText ? kTaskOfTexts : kTaskOfTokens),
                *task == BertHead::kText ? "read texts with it: fovea classify"
                                         : "read words with it: fovea tag");
  }
  auto& tensors = folder.adapters.weights.tensors;
  std::set<std::string> names;
  for (const NamedTensor& one : tensors) {
    if (names.insert(plain(one.name)).second) continue;
    fail(ErrorCode::kModelDamaged, "{}: {} is there twice, with the prefix {} and without it",
         folder.adapters.where, printable(plain(one.name)), row_->prefix);
  }
  const auto whole = std::stable_partition(tensors.begin(), tensors.end(), std::not_fn(is_whole));
  std::move(whole, tensors.end(), std::back_inserter(folder.whole));
  tensors.erase(whole, tensors.end());
  require_new_adapters(model_, folder.adapters);
  folders_.push_back(std::move(folder));
}

// "encoder.layer.0.output.dense.weight" of a tensor of PEFT, whatever head its model has.
std::string EncoderPeft::plain(std::string_view tensor) const {
  if (tensor.starts_with(kPeftPrefix)) tensor.remove_prefix(kPeftPrefix.size());
  if (tensor.starts_with(row_->prefix)) tensor.remove_prefix(row_->prefix.size());
  return std::string(tensor);
}

namespace {

std::string without_point(std::string name) {
  return name.starts_with('.') ? name.substr(1) : name;
}

}  // namespace

void EncoderPeft::find_head() {
  if (wanted_ == BertHead::kNone) return;
  std::map<std::string, std::string_view> ours;
  for (const std::string_view name : kOfHead) {
    if (name.starts_with("pooler.") && wanted_ == BertHead::kTokens) continue;
    for (std::string& theirs : encoder_tensors(*row_, wanted_, name)) {
      ours.emplace(without_point(std::move(theirs)), name);
    }
  }
  const Folder* holder = nullptr;
  GivenHead found;
  for (const Folder& folder : folders_) {
    for (const NamedTensor& one : folder.whole) {
      const auto known = ours.find(plain(one.name));
      if (known == ours.end()) continue;
      if (holder != nullptr && holder != &folder) {
        throw Error(ErrorCode::kModelWrongKind,
                    fmt::format("--adapter: both {} and {} hold a head", holder->adapters.where,
                                folder.adapters.where),
                    "a model has one head: name one of them");
      }
      holder = &folder;
      found.parameters.emplace(known->second);
      if (known->second == "output.weight") {
        found.outputs = one.tensor.shape().axes() == 2 ? one.tensor.shape()[0] : 0;
      }
    }
  }
  const bool has_bias = found.parameters.contains("output.bias");
  if (!has_bias && !found.parameters.contains("output.weight")) return;
  if (found.outputs == 0 || !has_bias) {
    fail(ErrorCode::kModelDamaged, "{}: expected a matrix and a bias of the head",
         holder->adapters.where);
  }
  head_ = std::move(found);
}

std::vector<EncoderPeft::Place> EncoderPeft::places_of(
    std::span<Parameter* const> parameters) const {
  std::vector<Place> places;
  for (Parameter* const one : parameters) {
    const bool is_ours = is_of_layers(one->name) || one->name.starts_with("output.");
    if (!is_ours) continue;  // a CRF, which transformers does not have
    std::vector<std::string> names = encoder_tensors(*row_, wanted_, one->name);
    const index rows = one->value.shape()[0] / std::ssize(names);
    for (std::size_t n = 0; n < names.size(); ++n) {
      places.push_back(
          {without_point(std::move(names[n])), one, static_cast<index>(n) * rows, rows});
    }
  }
  return places;
}

// The head of a model that is loaded without one, and a layer over the first row that the model
// does not have.
bool EncoderPeft::is_left_out(std::string_view name) const {
  return (wanted_ == BertHead::kNone && is_of_head(name)) || name.starts_with("pooler.");
}

void EncoderPeft::refuse_module(const AdapterFolder& adapters, std::string_view module) const {
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: adapters of {}, which {} does not have", adapters.where,
                          printable(module), model_.string()),
              "they belong to another model");
}

void EncoderPeft::set_whole(const Folder& folder, std::span<const Place> places,
                            Holders& holders) const {
  for (const NamedTensor& one : folder.whole) {
    const std::string name = plain(one.name);
    const auto found = std::ranges::find(places, name, &Place::plain);
    if (found == places.end()) {
      if (is_left_out(name)) continue;
      refuse_module(folder.adapters, name);
    }
    const auto [holder, is_first] = holders.emplace(name, folder.adapters.where);
    if (!is_first) {
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("--adapter: both {} and {} hold {}", holder->second,
                              folder.adapters.where, printable(name)),
                  "what is held whole does not add up: name one of them");
    }
    Parameter& to = *found->parameter;
    const Shape expected = to.value.shape().with(0, found->rows);
    if (one.tensor.shape() != expected) {
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("{}: {} must be {}; it is {}", folder.adapters.where,
                              printable(one.name), to_string(expected), one.tensor.describe()),
                  "the adapters belong to another model");
    }
    const index row = to.value.size() / to.value.shape()[0];
    const Vec<const float> values = one.tensor.vec<float>();
    if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) {
      fail(ErrorCode::kModelDamaged, "{}: a value of {} is not finite", folder.adapters.where,
           printable(one.name));
    }
    std::ranges::copy(values, to.value.vec<float>().begin() + found->first * row);
    ++to.version;
  }
}

// Drops the adapters of what the model leaves out.
std::vector<LowRankTarget> EncoderPeft::targets_of(Folder& folder,
                                                   std::span<const Place> places) const {
  std::vector<LowRankTarget> targets;
  std::set<std::string> dropped;
  for (const std::string_view module : adapted_modules(folder.adapters)) {
    const std::string name = plain(module);
    const auto found =
        std::ranges::find(places, fmt::format("{}{}", name, kEndOfWeight), &Place::plain);
    if (found == places.end()) {
      if (!is_left_out(name + ".")) refuse_module(folder.adapters, module);
      dropped.emplace(module);
      continue;
    }
    targets.push_back({.name = fmt::format("{}{}", kPeftPrefix, module),
                       .weight = found->parameter,
                       .first = found->first,
                       .rows = found->rows});
  }
  std::erase_if(folder.adapters.weights.tensors, [&](const NamedTensor& one) {
    return dropped.contains(std::string(adapted_module(one.name)));
  });
  return targets;
}

void EncoderPeft::apply(std::span<Parameter* const> parameters) const {
  if (empty()) return;
  const std::vector<Place> places = places_of(parameters);
  std::vector<Folder> folders = folders_;
  Holders holders;
  // All stand side by side before the first is merged: so those that do not add up are refused.
  std::vector<std::unique_ptr<LowRankAdapters>> all;
  for (Folder& folder : folders) {
    set_whole(folder, places, holders);
    const std::vector<LowRankTarget> targets = targets_of(folder, places);
    all.push_back(make_adapters(parameters, targets, folder.adapters, folder.choice));
  }
  for (const auto& one : all) one->merge(Context());
  const std::string bad = first_not_finite(parameter_tensors(parameters));
  if (!bad.empty()) {
    throw Error(ErrorCode::kModelDamaged,
                fmt::format("{}: with the adapters a value of {} is not finite", model_.string(),
                            printable(bad)),
                "get the adapters again, or give them a smaller factor");
  }
}

ModelKind kind_of_model(const fs::path& model, std::span<const std::string> adapters) {
  const ModelKind kind = kind_of_model(model);
  if (!is_on_encoder(kind) || !(is_encoder(model) || is_hugging_face(model))) return kind;
  for (const std::string& said : adapters) {
    const fs::path folder = adapter_choice(said).folder;
    if (!is_peft(folder)) continue;  // who reads it says what is wrong
    const AdapterFolder read = read_peft(folder, WholeModules::kTaken);
    const bool has_head = std::ranges::any_of(read.weights.tensors, [](const NamedTensor& one) {
      return is_whole(one) && one.name.find("classifier.") != std::string::npos;
    });
    if (!has_head) continue;
    const std::optional<BertHead> head = head_of_task(read);
    if (head == BertHead::kText) return ModelKind::kClassifier;
    if (head == BertHead::kTokens) return ModelKind::kTagger;
    if (!head && kind != ModelKind::kSentenceEncoder) return kind;
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: a head, and no task_type says whether it is of texts or of words",
                            read.where),
                fmt::format("set \"task_type\" in {} to {} or {}", kPeftFiles[1], kTaskOfTexts,
                            kTaskOfTokens));
  }
  return kind;
}

}  // namespace fovea
