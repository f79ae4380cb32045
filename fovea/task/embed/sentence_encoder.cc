// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/embed/sentence_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/task/encoder_adapters.h"
#include "fovea/task/encoder_peft.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/task_table.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

ModelSizes sizes_of(const SentenceEncoderConfig& config) {
  const SentenceEncoderConfig c = resolve(config);
  return {.layers = c.base.layers,
          .largest_matrix = static_cast<double>(c.vocabulary) * static_cast<double>(c.width),
          .parameters = [c] { return parameter_count(c); },
          .bytes = [c] { return model_memory(c); }};
}

// Of what else the vectors depend on, and of the weights.
std::string checksum_of(std::string_view more, std::span<Parameter* const> parameters) {
  std::string all = xxh3_128(more);
  for (const Parameter* const parameter : parameters) {
    const auto bytes = parameter->value.bytes();
    all += xxh3_128({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return xxh3_128(all);
}

void copy_all(std::span<Parameter* const> from, std::span<Parameter* const> to) {
  for (Parameter* const parameter : to) {
    const auto found = std::ranges::find(from, parameter->name, &Parameter::name);
    check(found != from.end(), "sentence encoder: {} is missing", parameter->name);
    const Vec<const float> values = (*found)->value.vec<float>();
    std::copy(values.begin(), values.end(), parameter->value.vec<float>().begin());
    ++parameter->version;
  }
}

}  // namespace

bool is_sentence_encoder(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_regular_file(folder / "config.json", ignored) || is_encoder(folder)) return false;
  try {
    return kind_of_model(folder) == ModelKind::kSentenceEncoder;
  } catch (const Error&) {
    return false;  // who reads it as a model of another program says what is wrong
  }
}

LoadedSentenceEncoder load_sentence_encoder(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  const std::string text = read_model_file(folder, "config.json"), name = file.string();
  LoadedSentenceEncoder loaded{.settings = embed_settings_from_text(text, name),
                               .kept = read_tokenizer_data(folder),
                               .pieces = {},
                               .model = nullptr,
                               .checksum = {}};
  const SentenceEncoderConfig& config = loaded.settings.model;
  check_stored(name, [&] { resolve(config); });
  loaded.pieces = text_of_kept(loaded.kept, config, (folder / "tokenizer.txt").string());
  const index most = loaded.settings.text.max_length;
  if (most < 1 || most > loaded.pieces.max_length) {
    fail(ErrorCode::kModelDamaged, "{}: expected a max_length in 1 to {}, got {}", name,
         loaded.pieces.max_length, most);
  }
  require_room_for_marks(*loaded.pieces.tokenizer, most, name);
  loaded.model = load_on_encoder<SentenceEncoder>(folder, BertHead::kNone, loaded.settings.from,
                                                  sizes_of, config, loaded.settings.recipe.seed);
  for (const Parameter* const parameter : loaded.model->parameters()) require_finite(*parameter);
  loaded.checksum = checksum_of(text, loaded.model->parameters());
  return loaded;
}

namespace {

SentenceModel load_own_embedder(const fs::path& folder) {
  LoadedSentenceEncoder loaded = load_sentence_encoder(folder);
  const SentenceEncoderConfig& config = loaded.model->config();
  BertConfig layers = pretrained_layers(config);
  layers.dropout = 0;
  Bert model(layers);
  copy_all(loaded.model->parameters(), model.parameters());
  return {.model = RowEncoder(std::move(model)),
          .tokenizer = std::move(loaded.pieces.tokenizer),
          .settings = {.pooling = config.pooling,
                       .normalizes = config.normalizes,
                       .max_length = loaded.settings.text.max_length,
                       .prompt = config.prompt},
          .checksum = std::move(loaded.checksum)};
}

}  // namespace

SentenceModel load_embedder(const fs::path& folder, std::span<const std::string> adapters) {
  const EncoderPeft peft(folder, adapters, BertHead::kNone);
  const bool is_ours = !is_encoder(folder) && fs::exists(folder / kManifestName);
  SentenceModel read = is_ours ? load_own_embedder(folder) : load_sentence_model(folder);
  if (peft.empty()) return read;
  const std::span<Parameter* const> parameters = read.model.parameters();
  peft.apply(parameters);
  read.checksum = checksum_of(read.checksum, parameters);
  return read;
}

SentenceSettings sentence_settings_of_base(const fs::path& base, const EncoderBase& read) {
  if (is_encoder(base)) {
    return sentence_settings(base, read.layers.width, read.layers.block, read.text.max_length);
  }
  SentenceSettings settings{.max_length = read.text.max_length};
  if (!is_sentence_encoder(base)) return settings;
  const EmbedSettings theirs = embed_settings_from_text(read_model_file(base, "config.json"),
                                                        (base / "config.json").string());
  return {.pooling = theirs.model.pooling,
          .normalizes = theirs.model.normalizes,
          .max_length = std::min(settings.max_length, theirs.text.max_length),
          .prompt = theirs.model.prompt};
}

std::string config_text(const EmbedSettings& settings) {
  SettingsFile<EmbedSettings> file{.kind = std::string(kSentenceEncoderKind), .settings = settings};
  return to_json(file);
}

EmbedSettings embed_settings_from_text(std::string_view text, const std::string& name) {
  SettingsFile<EmbedSettings> file{.kind = std::string(kSentenceEncoderKind)};
  return config_from_text(std::move(file), text, name, "a sentence encoder").settings;
}

}  // namespace fovea
