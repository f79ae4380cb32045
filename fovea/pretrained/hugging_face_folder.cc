// SPDX-License-Identifier: Apache-2.0
// Models in folders of Hugging Face transformers.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/bpe_json.h"
#include "fovea/pretrained/folder_tensors.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/hugging_face.h"
#include "fovea/pretrained/pretrained.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "lm_head.weight";
constexpr std::size_t kMostTextBytes = std::size_t{1} << 20;

// The files of a folder as one source. Models that were saved without their head lack the prefix of
// its names.
class FolderSource : public TensorSource {
 public:
  FolderSource(const fs::path& folder, std::string_view prefix) : tensors_(folder) {
    const bool bare = std::ranges::none_of(
        tensors_.names(), [&](const std::string& name) { return name.starts_with(prefix); });
    for (const std::string& name : tensors_.names()) {
      names_.push_back(bare && name != kHead ? std::string(prefix) + name : name);
    }
  }
  const std::vector<std::string>& names() const override { return names_; }
  TensorInfo info(std::size_t n) const override {
    return {names_[n], DType::kFloat32, tensors_.shape(tensors_.names()[n])};
  }
  Tensor read(std::size_t n) const override {
    Tensor values = Tensor::empty(info(n).shape);
    tensors_.read(tensors_.names()[n], values.vec<float>());
    return values;
  }
  std::optional<BlockType> block_type(std::size_t n) const override {
    return tensors_.block_type(tensors_.names()[n]);
  }
  std::vector<std::uint8_t> blocks(std::size_t n) const override {
    return tensors_.blocks(tensors_.names()[n]);
  }

 private:
  FolderTensors tensors_;
  std::vector<std::string> names_;
};

// Masks and frequencies that older versions of transformers stored.
bool is_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

// A tied head that is stored all the same.
bool is_buffer_or_head(std::string_view name) { return is_buffer(name) || name == kHead; }

std::optional<Json> json_if_there(const fs::path& file) {
  if (!fs::exists(file)) return std::nullopt;
  return read_foreign_json(file);
}

void add_end(PretrainedText& text, std::int64_t number) {
  if (number < 0 || number >= text.bpe->size())
    return;  // of a larger table than that of the tokenizer
  const auto id = static_cast<token>(number);
  if (std::ranges::find(text.ends, id) == text.ends.end()) text.ends.push_back(id);
}

// One id, or a list.
void add_ends(PretrainedText& text, const Json* ids) {
  if (ids == nullptr) return;
  if (const auto* const one = ids->get_if<std::int64_t>()) add_end(text, *one);
  if (const auto* const list = ids->get_if<Json::Array>()) {
    for (const Json& id : *list) add_ends(text, &id);
  }
}

// A token by its name, or by an object that has it.
token named_token(const ByteBpe& bpe, const Json* name) {
  if (name == nullptr) return kNoToken;
  if (const auto* const text = name->get_if<std::string>()) return bpe.id_of(*text);
  return name->get_if<Json::Object>() != nullptr ? named_token(bpe, name->find("content"))
                                                 : kNoToken;
}

std::string chat_template(const fs::path& folder, const Json* settings) {
  const fs::path file = folder / "chat_template.jinja";
  if (fs::exists(file)) return read_foreign_file(file, kMostTextBytes);
  const Json* const found = settings == nullptr ? nullptr : settings->find("chat_template");
  const auto* const text = found == nullptr ? nullptr : found->get_if<std::string>();
  return text == nullptr ? std::string() : *text;
}

// The tokenizer has a name for each row of the table of embeddings, which may have more rows.
PretrainedText read_text(const fs::path& folder, const Json& config) {
  const fs::path file = folder / "tokenizer.json";
  BpeOfJson read = bpe_of_json(read_foreign_json(file, kMostTokenizerBytes), file.string());
  const ForeignObject sizes(config, (folder / "config.json").string());
  const auto vocabulary = static_cast<std::size_t>(sizes.whole("vocab_size", 1, kLargestSize));
  if (read.model.names.size() > vocabulary) {
    fail(ErrorCode::kModelDamaged, "{}: {} tokens; the model has {}", file.string(),
         read.model.names.size(), vocabulary);
  }
  // Tables are padded to a round number of rows, not to many times the tokens.
  if (vocabulary > 2 * read.model.names.size() + 1024) {
    fail(ErrorCode::kModelDamaged, "{}: vocab_size is {}; {} has {} tokens", sizes.where(),
         vocabulary, file.string(), read.model.names.size());
  }
  while (read.model.names.size() < vocabulary) {
    read.model.names.push_back(fmt::format("[UNUSED{}]", read.model.names.size()));
    read.model.kinds.push_back(BpeTokenKind::kUnused);
  }
  const auto settings = json_if_there(folder / "tokenizer_config.json");
  const auto generation = json_if_there(folder / "generation_config.json");
  // The mark that an empty text begins with, whether or not others do.
  const index begin = sizes.whole("bos_token_id", -1, kLargestSize, -1);
  read.model.begin = read.begin;
  if (read.begin == kNoToken && begin < std::ssize(read.model.names)) {
    read.model.begin = static_cast<token>(begin);
  }
  PretrainedText text{.architecture = sizes.text("model_type"), .begin = read.begin};
  text.bpe = std::make_shared<const ByteBpe>(std::move(read.model));
  if (generation) add_ends(text, generation->find("eos_token_id"));
  add_ends(text, config.find("eos_token_id"));
  if (settings) add_end(text, named_token(*text.bpe, settings->find("eos_token")));
  text.chat_template = chat_template(folder, settings ? &*settings : nullptr);
  return text;
}

}  // namespace

bool is_hugging_face(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return false;
  // Models of fovea have no such file: what is wrong with the configuration is then said.
  if (fs::exists(folder / "tokenizer.json", ignored)) return true;
  try {
    return read_foreign_json(file).find("model_type") != nullptr;
  } catch (const Error&) {
    return false;
  }
}

PretrainedText load_hugging_face_text(const fs::path& folder) {
  return read_text(folder, read_foreign_json(folder / "config.json"));
}

PretrainedLanguageModel load_hugging_face(const fs::path& folder,
                                          const PretrainedOptions& options) {
  const fs::path file = folder / "config.json";
  const Json json = read_foreign_json(file);
  HuggingFaceModel model = read_hugging_face_config(ForeignObject(json, file.string()));
  PretrainedLanguageModel loaded{
      .config = model.config, .text = read_text(folder, json), .model = nullptr};
  const FolderSource tensors(folder, model.architecture.name == "gpt2" ? "transformer." : "model.");
  detail::named(folder.string(), [&] {
    detail::make_model(loaded,
                       {model.architecture, ModelForm::kHuggingFace, tensors,
                        model.config.tie ? is_buffer_or_head : is_buffer},
                       options);
  });
  return loaded;
}

}  // namespace fovea
