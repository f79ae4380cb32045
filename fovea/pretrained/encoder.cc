// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/encoder_table.h"
#include "fovea/pretrained/folder_tensors.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/text/keyed_hash.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr index kTensorsOfBlock = 16, kMostLabels = 1'000'000;

// Of heads for other questions, and of none that was asked for. They are left out.
bool is_of_other_head(std::string_view name, BertHead head) {
  const auto begins = [&](std::initializer_list<std::string_view> layers) {
    return std::ranges::any_of(layers, [&](std::string_view one) { return name.starts_with(one); });
  };
  return begins({"cls.", "lm_head.", "qa_outputs.", "vocab_layer_norm.", "vocab_projector.",
                 "vocab_transform."}) ||
         (head == BertHead::kNone && begins({"classifier.", "pre_classifier."}));
}

}  // namespace

class EncoderFolder::Weights {
 public:
  // `pooler`: the head whose layer over the first row is read.
  Weights(const fs::path& folder, const EncoderArchitecture& architecture, BertHead head,
          BertHead pooler)
      : folder_(folder),
        tensors_(folder),
        architecture_(architecture),
        head_(head),
        pooler_(pooler) {
    const std::string whole =
        std::string(architecture.prefix) + "embeddings.word_embeddings.weight";
    if (tensors_.has(whole)) prefix_ = architecture.prefix;
  }

  // The tensors of a parameter, by their names in the file.
  std::vector<std::string> names_of(std::string_view ours) const {
    const BertHead head = ours.starts_with("pooler.") ? pooler_ : head_;
    std::vector<std::string> names = encoder_tensors(architecture_, head, ours);
    for (std::string& name : names) {
      name = present(name.starts_with('.') ? name.substr(1) : prefix_ + name);
    }
    return names;
  }
  bool has_pooler() const {
    const auto is_pooler = [](const EncoderTensor& row) { return row.ours == "pooler"; };
    const bool of_head = pooler_ == BertHead::kText && !architecture_.heads.pooler.empty();
    return (of_head || std::ranges::any_of(architecture_.tensors, is_pooler)) &&
           tensors_.has(names_of("pooler.weight")[0]);
  }

  index outputs() const {
    const Shape& shape = tensors_.shape(names_of("output.weight")[0]);
    return shape.axes() == 0 ? 0 : shape[0];
  }

  // Before memory is taken for what the configuration says.
  void check_sizes(const BertConfig& c) const {
    check_shape(names_of("embedding.tokens")[0], c.vocabulary, c.width);
    check_shape(names_of("embedding.positions")[0], c.position_rows(), c.width);
    if (c.types > 0) check_shape(names_of("types.weight")[0], c.types, c.width);
    if (std::ssize(tensors_.names()) < c.layers * kTensorsOfBlock) {
      fail(ErrorCode::kModelDamaged, "{}: {} tensors are too few for {} layers", folder_.string(),
           tensors_.names().size(), c.layers);
    }
    if (c.layers > 0) {
      check_shape(names_of("blocks.0.feed_forward.in.weight")[0], c.ff, c.width);
    }
    const double block =
        static_cast<double>(c.width) * static_cast<double>(4 * c.width + 2 * c.ff + 16);
    const double all =
        static_cast<double>(c.vocabulary + c.position_rows() + c.types + c.width + c.outputs) *
            static_cast<double>(c.width) +
        static_cast<double>(c.layers) * block;
    require_memory("the model", all * sizeof(float), "use a machine that has more memory");
  }

  void set(Parameter& parameter) const {
    const Rows<float> to = parameter.value.rows<float>();
    const std::vector<std::string> names = names_of(parameter.name);
    const bool is_vector = parameter.value.shape().axes() == 1;
    const index parts = std::ssize(names);
    const index size = parameter.value.size() / parts;
    for (index n = 0; n < parts; ++n) {
      const std::string& name = names[static_cast<std::size_t>(n)];
      check_shape(name, is_vector ? size : to.rows / parts, is_vector ? 0 : to.columns);
      tensors_.read(name, {to.data + n * size, size});
    }
    ++parameter.version;
  }

  // All tensors but those of these parameters. Other heads, a pooler that is not asked for, and
  // numbers that older versions have saved are passed over.
  void refuse_others(std::span<Parameter* const> parameters) const {
    std::set<std::string, std::less<>> used;
    for (const Parameter* const parameter : parameters) {
      for (std::string& name : names_of(parameter->name)) used.insert(std::move(name));
    }
    const std::string pooler = prefix_ + "pooler.";
    for (const std::string& name : tensors_.names()) {
      if (is_of_other_head(name, head_) || name.starts_with(pooler) ||
          name == prefix_ + "embeddings.position_ids" || used.contains(name)) {
        continue;
      }
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("{}: the tensor {} is not one of {}'s: the model computes what "
                              "fovea does not know",
                              folder_.string(), printable(name), architecture_.name),
                  kReadableHint);
    }
  }

 private:
  // Models that were converted from TensorFlow call the parts of a norm gamma and beta.
  std::string present(std::string name) const {
    constexpr std::pair<std::string_view, std::string_view> kOlder[] = {
        {"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}};
    if (tensors_.has(name)) return name;
    for (const auto& [now, before] : kOlder) {
      if (!name.ends_with(now)) continue;
      const std::string older = name.substr(0, name.size() - now.size()) + std::string(before);
      if (tensors_.has(older)) return older;
    }
    return name;
  }

  void check_shape(const std::string& name, index rows, index columns) const {
    const Shape expected = columns == 0 ? Shape{rows} : Shape{rows, columns};
    const Shape& shape = tensors_.shape(name);
    if (shape == expected) return;
    fail(ErrorCode::kModelDamaged, "{}: the tensor {} is {}; config.json asks for {}",
         folder_.string(), name, to_string(shape), to_string(expected));
  }

  fs::path folder_;
  FolderTensors tensors_;
  const EncoderArchitecture& architecture_;
  BertHead head_, pooler_;
  std::string prefix_;  // of the names, if the file has it
};

namespace {

// As transformers calls labels without names.
std::vector<std::string> numbered_labels(index count) {
  std::vector<std::string> labels;
  for (index n = 0; n < count; ++n) labels.push_back(fmt::format("LABEL_{}", n));
  return labels;
}

// The labels in the order of the outputs.
std::vector<std::string> labels_of(const ForeignObject& config) {
  constexpr index kUsual = 2;
  if (!config.has("id2label")) {
    return numbered_labels(config.whole("num_labels", 1, kMostLabels, kUsual));
  }
  const ForeignObject names = config.object("id2label");
  const Json::Object& pairs = config.find("id2label")->object();
  std::vector<std::string> labels(pairs.size());
  std::vector<bool> seen(pairs.size());
  KeyedSet<std::string_view> different;
  for (const auto& [key, value] : pairs) {
    const char* const end = key.data() + key.size();
    std::size_t n = labels.size();
    const bool is_number = std::from_chars(key.data(), end, n).ptr == end;
    const auto* const label = value.get_if<std::string>();
    if (!is_number || n >= labels.size() || seen[n] || label == nullptr) {
      names.fail_value(key, fmt::format("a text for each number from 0 to {}", pairs.size() - 1));
    }
    if (!different.insert(*label).second) names.fail_value(key, "a label that no other number has");
    seen[n] = true;
    labels[n] = *label;
  }
  const auto count = std::ssize(labels);
  if (count == 0) config.fail_value("id2label", "a label for each number from 0 on");
  if (config.whole("num_labels", 1, kMostLabels, count) != count) {
    config.fail_value("num_labels", fmt::format("{}, as id2label has", count));
  }
  return labels;
}

EncoderProblem problem_of(const ForeignObject& config, BertHead head, std::size_t labels) {
  constexpr std::string_view kKey = "problem_type";
  if (head == BertHead::kTokens) return EncoderProblem::kOneLabel;
  const std::string said = config.text(kKey, "");
  if (said.empty()) return labels == 1 ? EncoderProblem::kNumber : EncoderProblem::kOneLabel;
  if (said == "multi_label_classification") return EncoderProblem::kAnyLabels;
  if (said == "single_label_classification") {
    if (labels < 2) config.fail_value(kKey, "another one, as there is one label");
    return EncoderProblem::kOneLabel;
  }
  if (said != "regression") {
    config.refuse(kKey, "single_label_classification, multi_label_classification and regression");
  }
  if (labels > 1) config.refuse(kKey, "regression of one number; here are several outputs");
  return EncoderProblem::kNumber;
}

BertHead head_of(const ForeignObject& config) {
  if (!config.has("architectures")) return BertHead::kNone;
  for (const Json& name : config.array("architectures")) {
    const auto* const text = name.get_if<std::string>();
    if (text == nullptr) continue;
    if (text->ends_with("ForSequenceClassification")) return BertHead::kText;
    if (text->ends_with("ForTokenClassification")) return BertHead::kTokens;
  }
  return BertHead::kNone;
}

}  // namespace

BertHead encoder_head(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  const Json json = read_foreign_json(file);
  return head_of(ForeignObject(json, file.string()));
}

namespace {

Json config_of(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw Error(ErrorCode::kModelMissing, fmt::format("{}: no such folder", folder.string()),
                "name a folder that sentence-transformers or transformers has saved");
  }
  return read_foreign_json(folder / "config.json");
}

}  // namespace

EncoderFolder::EncoderFolder(const fs::path& folder, BertHead head, const GivenHead* given) {
  const Json json = config_of(folder);
  const ForeignObject said(json, (folder / "config.json").string());
  const EncoderArchitecture& architecture = encoder_architecture(said);
  if (given == nullptr && head != BertHead::kNone && head_of(said) != head) {
    said.refuse("architectures", head == BertHead::kText ? "...ForSequenceClassification here"
                                                         : "...ForTokenClassification here");
  }
  if (head != BertHead::kNone) {
    labels = labels_of(said);
    if (given != nullptr && std::ssize(labels) != given->outputs) {
      labels = numbered_labels(given->outputs);
    }
    problem = problem_of(said, head, labels.size());
  }
  config = encoder_config(architecture, said);
  if (given != nullptr) given_ = given->parameters;
  weights_ = std::make_unique<Weights>(folder, architecture,
                                       given != nullptr ? BertHead::kNone : head, head);
  config.head = head;
  config.outputs = std::ssize(labels);
  config.pools = head == BertHead::kText || (head == BertHead::kNone && weights_->has_pooler());
  if (given != nullptr && config.pools && !given_.contains("pooler.weight") &&
      !weights_->has_pooler()) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: there is no {}, and none came with the head that the model is "
                            "given",
                            folder.string(), weights_->names_of("pooler.weight")[0]),
                "train the layer before the last one, too, and save it (modules_to_save)");
  }
  if (given == nullptr && head != BertHead::kNone && weights_->outputs() != config.outputs) {
    fail(ErrorCode::kModelDamaged, "{}: the head has {} outputs, config.json {} labels",
         folder.string(), weights_->outputs(), config.outputs);
  }
  weights_->check_sizes(config);
  text = read_encoder_text(ModelFiles(folder), config.vocabulary, config.block);
}

EncoderFolder::~EncoderFolder() = default;

void EncoderFolder::read(std::span<Parameter* const> parameters) const {
  std::vector<Parameter*> own;
  std::ranges::copy_if(parameters, std::back_inserter(own),
                       [&](const Parameter* one) { return !given_.contains(one->name); });
  for (Parameter* const parameter : own) weights_->set(*parameter);
  weights_->refuse_others(own);
}

LoadedEncoder load_encoder(const fs::path& folder, BertHead head) {
  EncoderFolder read(folder, head);
  LoadedEncoder loaded{.model = Bert(read.config, {.memory = ParameterMemory::kUnwritten}),
                       .tokenizer = std::move(read.text.tokenizer),
                       .max_length = read.text.max_length,
                       .problem = read.problem,
                       .labels = std::move(read.labels)};
  read.read(loaded.model.parameters());
  if (loaded.problem == EncoderProblem::kNumber) loaded.labels.clear();
  return loaded;
}

EncoderBase encoder_to_begin(const fs::path& folder, BertHead head) {
  const Json json = config_of(folder);
  const ForeignObject said(json, (folder / "config.json").string());
  const EncoderArchitecture& architecture = encoder_architecture(said);
  EncoderBase read{.layers = encoder_config(architecture, said), .text = {}};
  take_dropout(read.layers, architecture, said, head);
  if (read.layers.layers == 0) said.refuse(architecture.keys.layers, "1 or more here");
  if (head_of(said) != BertHead::kNone) read.labels = labels_of(said);
  const EncoderFolder::Weights weights(folder, architecture, BertHead::kNone, head_of(said));
  weights.check_sizes(read.layers);
  read.text = read_encoder_text(ModelFiles(folder), read.layers.vocabulary, read.layers.block);
  return read;
}

void begin_from_encoder(const fs::path& folder, std::span<Parameter* const> parameters) {
  const Json json = config_of(folder);
  const ForeignObject said(json, (folder / "config.json").string());
  const EncoderFolder::Weights weights(folder, encoder_architecture(said), BertHead::kNone,
                                       head_of(said));
  std::vector<Parameter*> known;
  for (Parameter* const parameter : parameters) {
    const bool lacks = parameter->name.starts_with("pooler.") && !weights.has_pooler();
    if (is_of_layers(parameter->name) && !lacks) known.push_back(parameter);
  }
  for (Parameter* const parameter : known) weights.set(*parameter);
  weights.refuse_others(known);
}

}  // namespace fovea
