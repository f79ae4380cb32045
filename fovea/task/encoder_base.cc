// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/encoder_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/sentence_model.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/embed/sentence_encoder.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/setting_parts.h"
#include "fovea/task/tag/tagger.h"
#include "fovea/task/task_table.h"
#include "fovea/text/utf8.h"
#include "fovea/train/schedule.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr index kUsualWarmup = 50, kUsualEpochs = 3, kFewestUpdates = 150;

[[noreturn]] void refuse_base(const fs::path& base, std::string_view is, std::string hint) {
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: {}, and no encoder to begin from", base.string(), is),
              std::move(hint));
}

constexpr const char* kEncoders =
    "name a folder of BERT, RoBERTa, XLM-RoBERTa, DistilBERT or MPNet, or of a model that began "
    "from one";

// Whether it is a folder of another program; throws for what is no encoder.
bool is_foreign(const fs::path& base) {
  std::error_code ignored;
  if (!fs::exists(base, ignored)) {
    throw Error(ErrorCode::kModelMissing, fmt::format("{}: no such folder", base.string()),
                kEncoders);
  }
  if (is_encoder(base)) return true;
  switch (kind_of_model(base)) {
    case ModelKind::kLanguageModel:
      refuse_base(base, "a language model",
                  fmt::format("train it further with fovea train lm --base; here {}", kEncoders));
    case ModelKind::kTranslator:
      refuse_base(base, "a translator", kEncoders);
    case ModelKind::kClassifier:
    case ModelKind::kTagger:
      return is_hugging_face(base);
    case ModelKind::kSentenceEncoder:
      return false;
  }
  return false;
}

// A model of fovea that began from an encoder, as its config.json has it.
struct OwnBase {
  EncoderConfig layers;
  index values;             // of the whole model
  EncoderBaseOptions from;  // what it began from
  BertHead head;
  double head_dropout;
  std::vector<std::string> labels;
};

template <class Settings>
OwnBase own_base(const fs::path& base, const Settings& settings, BertHead head,
                 std::vector<std::string> labels) {
  const auto& config = settings.model;
  if (!config.has_base()) refuse_base(base, "a model that was trained from the start", kEncoders);
  const std::string name = (base / "config.json").string();
  check_stored(name, [&] {
    resolve(config);
    check_ranges(settings.from);
  });
  const std::size_t tensors = ModelWeights(base).tensors().names().size();
  if (config.base.layers > static_cast<index>(tensors)) {
    fail(ErrorCode::kModelDamaged, "{}: expected a model of {} tensors, got {} layers", name,
         tensors, config.base.layers);
  }
  OwnBase own{config, parameter_count(config), settings.from, head, 0, std::move(labels)};
  if constexpr (requires { config.output_dropout; }) own.head_dropout = config.output_dropout;
  return own;
}

OwnBase read_own_base(const fs::path& base) {
  const std::string name = (base / "config.json").string();
  const std::string text = read_model_file(base, "config.json");
  const ModelKind kind = kind_of_model(base);
  if (kind == ModelKind::kSentenceEncoder) {
    return own_base(base, embed_settings_from_text(text, name), BertHead::kNone, {});
  }
  if (kind == ModelKind::kTagger) {
    const TaggerConfigFile file = tagger_config_from_text(text, name);
    return own_base(base, file.settings, BertHead::kTokens, tag_sets(file, name).at(0).names());
  }
  ClassifierConfigFile file = classifier_config_from_text(text, name);
  std::vector<std::string>& labels = file.outputs.labels;
  if (file.settings.model.task == ClassifierTask::kRegression) labels = {"a number"};
  return own_base(base, file.settings, BertHead::kText, std::move(labels));
}

// Reads each tensor into the memory of its parameter. A tagger has no layer over the first row.
void read_own_weights(const fs::path& base, std::span<Parameter* const> parameters) {
  const ModelWeights weights(base);
  weights.verify();
  const SafetensorsSource& tensors = weights.tensors();
  const std::string where = (base / kWeightsName).string();
  for (Parameter* const parameter : parameters) {
    const std::string& name = parameter->name;
    if (!is_of_layers(name)) continue;
    const auto found = std::ranges::find(tensors.names(), name);
    if (found == tensors.names().end()) {
      if (name.starts_with("pooler.")) continue;
      fail(ErrorCode::kModelDamaged, "{}: tensor '{}' is missing", where, name);
    }
    const auto n = static_cast<std::size_t>(found - tensors.names().begin());
    if (tensors.shape(n) != parameter->value.shape()) {
      fail(ErrorCode::kModelDamaged, "{}: tensor '{}' is {}; expected {}", where, name,
           to_string(tensors.shape(n)), to_string(parameter->value.shape()));
    }
    tensors.read_widened(n, parameter->value.vec<float>());
    ++parameter->version;
  }
}

}  // namespace

EncoderBase read_encoder_base(const fs::path& base, BertHead head) {
  if (is_foreign(base)) return encoder_to_begin(transformer_folder(base), head);
  OwnBase own = read_own_base(base);
  const TextCount count = own.layers.base.separator < 0 ? TextCount::kOne : TextCount::kPair;
  EncoderBase read{.layers = pretrained_layers(own.layers),
                   .text = text_of_kept(read_tokenizer_data(base), own.layers,
                                        (base / "tokenizer.txt").string(), count),
                   .labels = std::move(own.labels)};
  read.layers.head_dropout = own.head_dropout;
  return read;
}

TokenizerData tokenizer_of_encoder(const fs::path& base) {
  if (!is_foreign(base)) return read_tokenizer_data(base);
  return {.kind = std::string(kPretrainedKind),
          .model = kept_encoder_text(transformer_folder(base))};
}

index separator_of(const EncoderTokenizer& tokenizer, index types, TextCount count) {
  const MarksAround& marks = tokenizer.around();
  const bool has_types = count == TextCount::kPair && marks.typed && types > 1;
  return has_types && !marks.between.empty() ? marks.between.back() : -1;
}

EncoderText text_of_kept(const TokenizerData& kept, const EncoderConfig& model,
                         const std::string& where, TextCount count) {
  if (kept.kind != kPretrainedKind) {
    fail(ErrorCode::kModelDamaged, "{}: expected the tokenizer of a model from elsewhere, got {}",
         where, kept.kind);
  }
  EncoderText text =
      read_encoder_text(kept_encoder_files(kept.model, where), model.vocabulary, model.block);
  const index separator = separator_of(*text.tokenizer, model.base.types, count);
  if (model.base.separator != separator) {
    fail(ErrorCode::kModelDamaged, "{}: the model has the separator {}; expected {}", where,
         model.base.separator, separator);
  }
  return text;
}

bool says_layers(std::string_view field) {
  constexpr std::string_view kLayers[] = {
      "model.model",      "model.width",        "model.heads",          "model.kv_heads",
      "model.head_dim",   "model.ff",           "model.block",          "model.vocabulary",
      "model.position",   "model.position_max", "model.norm",           "model.norm_position",
      "model.ln_variant", "model.norm_epsilon", "model.bias",           "model.activation",
      "model.base",       "model.revision",     "model.embedding_scale"};
  return field.starts_with("model.base.") || contains(kLayers, field);
}

namespace {

void require_template(const EncoderText& text, const std::string& where) {
  if (!text.tokenizer->around().between.empty()) return;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: its tokenizer does not say how two texts are read as one", where),
              "its tokenizer.json needs a `pair` in the post_processor that fovea can read");
}

}  // namespace

void require_pairs(const EncoderText& text, const std::string& where) {
  require_template(text, where);
  const index marks = text.tokenizer->pair_marks();
  if (text.max_length >= marks + 2) return;
  fail(ErrorCode::kModelDamaged, "{}: pairs have {} marks and at most {} tokens", where, marks,
       text.max_length);
}

void require_length(index max_length, const EncoderText& text, const std::string& where,
                    TextCount count) {
  const bool pair = count == TextCount::kPair;
  if (pair) require_template(text, where);
  const index marks = pair ? text.tokenizer->pair_marks() : text.tokenizer->marks();
  const index fewest = marks + (pair ? 2 : 1);
  if (max_length < fewest) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--max-length {}: {} has {} marks in each {}, and no room is left",
                            max_length, where, marks, pair ? "pair" : "text"),
                fmt::format("give at least --max-length {}", fewest));
  }
  if (max_length <= text.max_length) return;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--max-length {}: {} reads at most {} tokens", max_length, where,
                          text.max_length),
              "give a smaller --max-length, or leave it out");
}

void check_encoder_options(const EncoderBaseOptions& from) {
  check_ranges(from);
  check_adapters(from);
}

void keep_base(EncoderBaseOptions& from, EncoderBase base, std::span<const std::string> set) {
  from.labels_left_out = std::move(base.labels);
  from.warmup = contains(set, "recipe.warmup") ? Warmup::kAsSaid : Warmup::kUsual;
  if (from.lora > 0) from.base_checksum = weights_checksum(from.base);
}

void load_encoder_base(const fs::path& base, std::span<Parameter* const> parameters) {
  if (is_foreign(base)) return begin_from_encoder(transformer_folder(base), parameters);
  const OwnBase own = read_own_base(base);
  if (own.from.lora == 0) return read_own_weights(base, parameters);
  require_fitting_adapters(base, own.from, own.head, pretrained_layers(own.layers), own.values);
  load_adapted_encoder(base, own.from, own.head, parameters, HeadOfFolder::kLeftOut);
}

namespace {

BaseParts parts_of(const EncoderConfig& c) {
  BaseParts parts{
      .embeddings = {"embedding.", "embedding_norm."}, .layer = "blocks", .layers = c.base.layers};
  if (c.base.types > 0) parts.embeddings.emplace_back("types.");
  if (c.base.buckets > 0) parts.embeddings.emplace_back("distances.");  // below all layers, too
  return parts;
}

}  // namespace

void freeze_encoder(std::span<Parameter* const> parameters, const EncoderConfig& c,
                    const BaseOptions& options) {
  if (!options.freeze.empty()) freeze_parts(parameters, parts_of(c), options.freeze);
}

std::vector<double> encoder_rates(std::span<Parameter* const> parameters, const EncoderConfig& c,
                                  const BaseOptions& options) {
  return layer_rates(parameters, parts_of(c), options.layer_lr_decay);
}

bool freezes_embeddings(const BaseOptions& options) {
  return options.freeze.find("embeddings") != std::string::npos;
}

void apply_encoder_recipe(TrainOptions& recipe) {
  recipe.lr = 5e-5;
  recipe.min_lr = recipe.lr / 10;
  recipe.schedule = ScheduleKind::kLinear;
  recipe.warmup = kUsualWarmup;
  recipe.beta2 = 0.999;
  recipe.weight_decay = 0.01;
  recipe.stop_after = recipe.eval_every = recipe.save_every = kAutoLength;
  recipe.patience = 0;
}

// Hu et al. 2021, table 9, with RoBERTa: 2e-4 to 5e-4.
void apply_adapter_rate(TrainOptions& recipe, const EncoderBaseOptions& from) {
  constexpr double kLarger = 10;
  if (from.lora == 0) return;
  recipe.lr *= kLarger;
  recipe.min_lr = recipe.lr / 10;
}

void resolve_encoder_recipe(TrainOptions& recipe, index updates_per_epoch, Warmup warmup) {
  resolve_lengths(recipe, updates_per_epoch, {.epochs = kUsualEpochs, .fewest = kFewestUpdates});
  const index updates =
      Horizon(parse_length(recipe.stop_after, "--stop-after"), updates_per_epoch).updates();
  if (warmup == Warmup::kUsual && recipe.warmup == kUsualWarmup && updates > 0) {
    recipe.warmup = std::min(recipe.warmup, updates / 10);
  }
}

std::string head_note(const std::string& base, const std::vector<std::string>& labels) {
  constexpr std::size_t kMost = 5;
  if (labels.empty()) return {};
  std::string names;
  for (std::size_t n = 0; n < std::min(labels.size(), kMost); ++n) {
    names += (n > 0 ? ", " : "") + escape_text(labels[n]);
  }
  if (labels.size() > kMost) names += fmt::format(" and {} more", labels.size() - kMost);
  return fmt::format("{} has a head ({}): it is left out", base, names);
}

}  // namespace fovea
