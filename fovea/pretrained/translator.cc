// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/translator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/words.h"
#include "fovea/nn/embedding.h"
#include "fovea/pretrained/folder_tensors.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/shared_vocabulary.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTranslatorConfig = "config.json",
                           kTranslatorRules = "generation_config.json";

// The weights of a folder, and which of them are those of our parameters.
class TranslatorWeights {
 public:
  TranslatorWeights(const fs::path& folder, const TranslatorArchitecture& architecture,
                    TranslatorPart part = TranslatorPart::kWhole)
      : folder_(folder), tensors_(folder), architecture_(architecture), part_(part) {}

  bool has_logits_bias() const { return tensors_.has(architecture_.logits_bias); }
  bool has_head() const { return tensors_.has(fmt::format("{}.weight", architecture_.head)); }

  // Before memory is taken for what the configuration says.
  void check_sizes(const TranslatorConfig& c) const {
    const bool is_whole = part_ == TranslatorPart::kWhole;
    const index layers = c.encoder_layers + (is_whole ? c.decoder_layers : 0);
    if (std::ssize(tensors_.names()) < layers * architecture_.least_tensors) {
      fail(ErrorCode::kModelDamaged, "{}: {} tensors are too few for {} layers", folder_.string(),
           tensors_.names().size(), layers);
    }
    ParameterSet shapes({.memory = ParameterMemory::kShapesOnly});
    if (is_whole) {
      const TranslatorLayers built(c, ParameterScope(shapes));
    } else {
      const SourceEncoderLayers built({c}, ParameterScope(shapes));
    }
    refuse_others(c, shapes.parameters());
    const auto check_matrix = [&](std::string_view ours, index rows, index columns) {
      check_shape(names_of(c, ours)[0], {rows, columns}, 1);
    };
    check_matrix("encoder.embedding.tokens", c.vocabulary, c.width);
    if (is_whole && !c.share_embeddings) {
      check_matrix("decoder.embedding.tokens", c.target_vocabulary, c.width);
    }
    check_matrix("encoder.blocks.0.feed_forward.in.weight", c.ff, c.width);
    for (const Parameter* const parameter : shapes.parameters()) {
      if (is_left_out(parameter->name)) continue;
      for (const std::string& name : names_of(c, parameter->name))
        tensors_.shape(name);  // is there
    }
    index held = is_left_out("output.bias") ? c.target_vocabulary : 0;
    for (const std::string& name : tensors_.names()) held += tensors_.shape(name).size();
    if (shapes.size() > held) {
      fail(ErrorCode::kModelDamaged, "{}: a model of these sizes has {} values; its files have {}",
           folder_.string(), shapes.size(), held);
    }
    const double table = static_cast<double>(c.block) * static_cast<double>(c.width);
    require_memory("the model", sizeof(float) * (static_cast<double>(shapes.size()) + 2 * table),
                   "use a machine that has more memory");
  }

  void set(const TranslatorConfig& c, Parameter& parameter) const {
    const Vec<float> to = parameter.value.vec<float>();
    if (is_left_out(parameter.name)) {
      std::fill(to.begin(), to.end(), 0.0F);
    } else {
      const std::vector<std::string> names = names_of(c, parameter.name);
      const index parts = std::ssize(names), size = to.size / parts;
      for (index n = 0; n < parts; ++n) {
        const std::string& name = names[static_cast<std::size_t>(n)];
        check_shape(name, parameter.value.shape(), parts);
        tensors_.read(name, {to.data + n * size, size});
      }
      require_same_tables(c, parameter, names[0]);
    }
    ++parameter.version;
  }

  // Where a file has the sines and cosines, they must be those that are computed.
  void check_positions(const TranslatorConfig& c) const {
    std::optional<Tensor> computed;
    for (const std::string_view name :
         {architecture_.source_positions, architecture_.target_positions}) {
      if (!tensors_.has(name)) continue;
      check_shape(std::string(name), {c.block, c.width}, 1);
      if (!computed) {
        computed = sinusoidal_positions(c.block, {.width = c.width, .order = c.sinusoid});
      }
      Tensor stored = Tensor::empty({c.block, c.width});
      tensors_.read(name, stored.vec<float>());
      require_close(name, std::as_const(stored).vec<float>(),
                    std::as_const(*computed).vec<float>());
    }
  }

 private:
  bool is_left_out(std::string_view ours) const {
    return ours == "output.bias" && !has_logits_bias();
  }

  // And is not read.
  bool is_of_decoder(std::string_view name) const {
    return part_ == TranslatorPart::kEncoder &&
           (name.starts_with("decoder.") || name == fmt::format("{}.weight", architecture_.head));
  }

  // The names that the file has.
  std::vector<std::string> names_of(const TranslatorConfig& c, std::string_view ours) const {
    std::vector<std::string> names = translator_tensors(architecture_, c, ours);
    if (names.size() > 1 || tensors_.has(names[0])) return names;
    for (std::string& other : other_names_of_table(architecture_, c, ours)) {
      if (tensors_.has(other)) return {std::move(other)};
    }
    return names;
  }

  // `parts` tensors lie one behind another in one of ours. The bias of the logits is a row.
  void check_shape(const std::string& name, const Shape& ours, index parts) const {
    const Shape& shape = tensors_.shape(name);
    const bool is_vector = ours.axes() == 1;
    const Shape expected = is_vector ? Shape{ours[0] / parts} : Shape{ours[0] / parts, ours[1]};
    if (shape == expected) return;
    if (name == architecture_.logits_bias && shape == Shape{1, ours[0]}) return;
    fail(ErrorCode::kModelDamaged, "{}: the tensor {} is {}; config.json asks for {}",
         folder_.string(), name, to_string(shape), to_string(expected));
  }

  // What a file has of a table under other names, too, is that table.
  void require_same_tables(const TranslatorConfig& c, const Parameter& parameter,
                           const std::string& read) const {
    for (const std::string& other : other_names_of_table(architecture_, c, parameter.name)) {
      if (other == read || !tensors_.has(other)) continue;
      check_shape(other, parameter.value.shape(), 1);
      Tensor stored = Tensor::empty(parameter.value.shape());
      tensors_.read(other, stored.vec<float>());
      if (std::ranges::equal(std::as_const(stored).vec<float>(), parameter.value.vec<float>())) {
        continue;
      }
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("{}: the tensor {} has other values than {}, which stands for it",
                              folder_.string(), other, read),
                  kReadableHint);
    }
  }

  void require_close(std::string_view name, Vec<const float> stored,
                     Vec<const float> computed) const {
    constexpr double kMost = 0.01;  // the types in which they are stored have three digits
    for (index n = 0; n < stored.size; ++n) {
      if (std::abs(double{stored[n]} - double{computed[n]}) <= kMost) continue;
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("{}: the tensor {} holds {} where the sines and cosines of positions "
                              "have {}",
                              folder_.string(), name, stored[n], computed[n]),
                  kReadableHint);
    }
  }

  void refuse_others(const TranslatorConfig& c, std::span<Parameter* const> parameters) const {
    std::set<std::string, std::less<>> known = {
        std::string(architecture_.source_positions), std::string(architecture_.target_positions),
        std::string(architecture_.logits_bias), std::string(architecture_.unread)};
    for (const Parameter* const parameter : parameters) {
      for (const std::string& name : translator_tensors(architecture_, c, parameter->name)) {
        known.insert(name);
      }
      for (const std::string& name : other_names_of_table(architecture_, c, parameter->name)) {
        known.insert(name);
      }
    }
    for (const std::string& name : tensors_.names()) {
      if (known.contains(name) || is_of_decoder(name)) continue;
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("{}: the tensor {} is not one of {}'s: the model computes what fovea "
                              "does not know",
                              folder_.string(), printable(name), architecture_.name),
                  kReadableHint);
    }
  }

  fs::path folder_;
  FolderTensors tensors_;
  const TranslatorArchitecture& architecture_;
  TranslatorPart part_;
};

TranslationRules read_rules(const ModelFiles& files, const TranslatorArchitecture& architecture,
                            const ForeignObject& config, index tokens) {
  if (!files.has(kTranslatorRules)) return translation_rules(architecture, config, config, tokens);
  const Json json = files.json(kTranslatorRules);
  return translation_rules(architecture, ForeignObject(json, files.path(kTranslatorRules)), config,
                           tokens);
}

// A model of another class has other layers. (Older files call theirs T5WithLMHeadModel.)
void require_class(const TranslatorArchitecture& architecture, const ForeignObject& said) {
  constexpr std::string_view kKey = "architectures";
  if (!said.has(kKey)) return;
  for (const Json& name : said.array(kKey)) {
    const auto* const text = name.get_if<std::string>();
    if (text == nullptr) continue;
    for (const std::string_view other : {"EncoderModel", "ForQuestionAnswering"}) {
      if (text->ends_with(other)) said.refuse(kKey, architecture.class_name);
    }
  }
}

}  // namespace

bool is_foreign_translator(const fs::path& folder) {
  if (!is_hugging_face(folder)) return false;
  const fs::path file = folder / kTranslatorConfig;
  const Json json = read_foreign_json(file);
  return is_translator_architecture(ForeignObject(json, file.string()).text("model_type", ""));
}

bool has_source_encoder(const fs::path& folder) {
  if (!is_hugging_face(folder)) return false;
  const fs::path file = folder / kTranslatorConfig;
  const Json json = read_foreign_json(file);
  const ForeignObject config(json, file.string());
  return is_translator_architecture(config.text("model_type", "")) &&
         translator_architecture(config).one_vocabulary;
}

ForeignSourceEncoder load_source_encoder(const fs::path& folder) {
  const ModelFiles files(folder);
  const Json json = files.json(kTranslatorConfig);
  const ForeignObject said(json, files.path(kTranslatorConfig));
  const TranslatorArchitecture& architecture = translator_architecture(said);
  TranslatorConfig c = foreign_translator_config(said, TranslatorPart::kEncoder);
  const TranslatorWeights weights(folder, architecture, TranslatorPart::kEncoder);
  c.tie = !weights.has_head();  // the table of a model with a head of its own is not the head
  weights.check_sizes(c);
  EncoderText text = read_encoder_text(files, c.vocabulary, c.block, architecture.name);
  ForeignSourceEncoder loaded{
      .model = SourceEncoder({c}, ParameterSetOptions{.memory = ParameterMemory::kUnwritten}),
      .text = std::move(text)};
  for (Parameter* const parameter : loaded.model.parameters()) weights.set(c, *parameter);
  return loaded;
}

ForeignTranslator load_foreign_translator(const fs::path& folder) {
  const ModelFiles files(folder);
  const Json json = files.json(kTranslatorConfig);
  const ForeignObject said(json, files.path(kTranslatorConfig));
  const TranslatorArchitecture& architecture = translator_architecture(said);
  require_class(architecture, said);
  ForeignTranslator loaded;
  TranslatorConfig& c = loaded.config = foreign_translator_config(said);
  const TranslatorWeights weights(folder, architecture);
  c.logits_bias = weights.has_logits_bias();
  if (architecture.head_rule == HeadRule::kByFile) c.tie = !weights.has_head();
  weights.check_sizes(c);
  weights.check_positions(c);
  loaded.rules = read_rules(files, architecture, said, c.target_vocabulary);
  loaded.vocabularies = architecture.one_vocabulary
                            ? read_shared_vocabulary(files, architecture.name, c, loaded.rules)
                            : read_translator_vocabularies(files, c, loaded.rules);
  loaded.model =
      std::make_unique<Translator>(c, ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
  for (Parameter* const parameter : loaded.model->parameters()) weights.set(c, *parameter);
  return loaded;
}

}  // namespace fovea
