// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/pretrained.h"

#include <fmt/format.h>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/model/encoder_config.h"
#include "fovea/pretrained/encoder.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/translator_table.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

namespace fs = std::filesystem;

bool is_pretrained(const fs::path& path) { return is_gguf(path) || is_hugging_face(path); }

PretrainedLanguageModel load_pretrained(const fs::path& path, const PretrainedOptions& options) {
  return is_gguf(path) ? load_gguf(path, options) : load_hugging_face(path, options);
}

LanguageModelConfig load_pretrained_config(const fs::path& path) {
  return is_gguf(path) ? load_gguf_config(path) : config_of_files(ModelFiles(path));
}

PretrainedText load_pretrained_text(const fs::path& path) {
  return is_gguf(path) ? load_gguf_text(path) : load_hugging_face_text(path);
}

namespace {

// What the text of a folder is read from; that of a GGUF file is in its metadata.
constexpr std::string_view kTextFiles[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                           "generation_config.json", "chat_template.jinja"};
// Without tokenizer.json.
constexpr std::string_view kOtherTextFiles[] = {"config.json",
                                                "tokenizer.model",
                                                "vocab.json",
                                                "merges.txt",
                                                "added_tokens.json",
                                                "special_tokens_map.json",
                                                "tokenizer_config.json",
                                                "generation_config.json",
                                                "chat_template.jinja"};
constexpr std::string_view kGgufText = "text.gguf";

ModelFiles kept(std::string_view archive, const std::string& where) {
  std::vector<std::string_view> names = {kGgufText};
  names.insert(names.end(), std::begin(kTextFiles), std::end(kTextFiles));
  names.insert(names.end(), std::begin(kOtherTextFiles), std::end(kOtherTextFiles));
  return ModelFiles::of_archive(archive, names, where);
}

}  // namespace

std::string kept_text(const fs::path& path) {
  if (!is_gguf(path)) {
    const ModelFiles files(path);
    return files.has("tokenizer.json") ? files.archive(kTextFiles) : files.archive(kOtherTextFiles);
  }
  const FileSource file(path);
  const ZipMember text{std::string(kGgufText),
                       gguf_without_tensors(file, parse_gguf_header(file, path.string()))};
  return zip_bytes({&text, 1});
}

std::vector<ZipMember> kept_files(std::string_view archive, const std::string& where) {
  const ModelFiles files = kept(archive, where);
  std::vector<ZipMember> found;
  for (const auto& [name, text] : files.members()) {
    if (name != kGgufText) found.push_back({name, text});
  }
  return found;
}

std::string kept_metadata(std::string_view archive, const std::string& where) {
  const ModelFiles files = kept(archive, where);
  return files.has(kGgufText) ? files.text(kGgufText) : "";
}

PretrainedText read_kept_text(std::string_view archive, const std::string& where) {
  const ModelFiles files = kept(archive, where);
  if (!files.has(kGgufText)) return text_of_files(files);
  const std::string text = files.text(kGgufText);
  const MemorySource source(text);
  return text_of_gguf(parse_gguf_header(source, where), where);
}

bool is_encoder(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path / "modules.json", ignored)) return true;
  if (is_gguf(path) || !is_hugging_face(path)) return false;
  const fs::path file = path / "config.json";
  const Json json = read_foreign_json(file);
  const ForeignObject config(json, file.string());
  const std::string type = config.text("model_type", "bert");
  if (is_translator_architecture(type)) return is_source_encoder(config);
  if (is_architecture(type)) return false;
  return encoder_head(path) == BertHead::kNone;
}

std::string pretrained_checksum(const fs::path& path) {
  if (!is_gguf(path)) return xxh3_128(read_foreign_file(path / "config.json", kMostTokenizerBytes));
  const FileSource file(path);
  std::string header(parse_gguf_header(file, path.string()).bytes, '\0');
  file.read(0, header);
  return xxh3_128(header);
}

std::string tokenizer_model(const ModelFiles& files) {
  constexpr std::string_view kName = "tokenizer.json";
  if (!files.has(kName)) {
    const bool is_bpe = files.has("tokenizer.model") || files.has("vocab.json");
    if (files.has("spiece.model")) return "Unigram";
    return is_bpe ? "BPE" : files.has("vocab.txt") ? "WordPiece" : "";
  }
  const Json json = files.json(kName);
  return ForeignObject(json, files.path(kName)).object("model").text("type");
}

namespace detail {

namespace {

// A file may ask for any sizes: no memory is taken for values that it does not have.
void check_values(const LanguageModelConfig& c, const TensorSource& tensors) {
  const std::size_t count = tensors.names().size();
  index held = 0;
  for (std::size_t n = 0; n < count; ++n) held += tensors.info(n).shape.size();
  if (c.layers <= static_cast<index>(count)) {
    const index zeros = c.bias ? c.layers * (4 * c.width + 2 * c.ff) + c.vocabulary : 0;
    if (parameter_count(c) <= held + zeros) return;
  }
  fail(ErrorCode::kModelDamaged,
       "a model of {} layers with these sizes has more values than the {} of its file", c.layers,
       held);
}

// The bytes that the weights take.
double bytes_of(const LanguageModelConfig& c, const TensorSource& tensors, WeightTypes types) {
  if (types == WeightTypes::kPlanned) return 0;
  if (types == WeightTypes::kFloat32)
    return sizeof(float) * static_cast<double>(parameter_count(c));
  double bytes = 0;
  for (std::size_t n = 0; n < tensors.names().size(); ++n) {
    const auto type = tensors.block_type(n);
    const BlockLayout layout = type ? layout_of(*type) : BlockLayout{1, sizeof(float)};
    const auto values = static_cast<double>(tensors.info(n).shape.size());
    bytes += values / static_cast<double>(layout.values) * static_cast<double>(layout.bytes);
  }
  return bytes;
}

}  // namespace

void make_model(PretrainedLanguageModel& loaded, const WeightFile& file,
                const PretrainedOptions& options) {
  LanguageModelConfig& c = loaded.config;
  check_values(c, file.tensors);
  if (options.max_context > 0) {
    check_size("max_context", options.max_context, 1, c.block);
    c.block = options.max_context;
  }
  c.dropout = options.dropout;
  require_memory("the model", bytes_of(c, file.tensors, options.weights),
                 "take a smaller model, or use a machine that has more memory");
  loaded.model = std::make_unique<LanguageModel>(
      c, ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
  set_weights(loaded.model->parameters(), tensor_places(file.architecture, file.form, c), c,
              file.tensors, options.weights, file.ignores);
}

}  // namespace detail

}  // namespace fovea
