// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/export.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/option.h"
#include "fovea/pretrained/gguf_model.h"
#include "fovea/pretrained/hugging_face.h"
#include "fovea/pretrained/hugging_face_tokenizer.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/task/exported_files.h"
#include "fovea/tensor/gguf.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

bool knows_lines(const LoadedLanguageModel& loaded) { return loaded.settings.text.data == "lines"; }

bool is_of_fovea(const LoadedLanguageModel& loaded) {
  return !loaded.pretrained || !loaded.kept_text.empty();
}

[[noreturn]] void refuse_form(std::string_view begun, std::string_view form) {
  throw Error(
      ErrorCode::kModelWrongKind,
      fmt::format("the model began from a {}, whose tokenizer is not written in another form",
                  begun),
      fmt::format("export it with --to {}", form));
}

std::vector<NamedTensor> tensors_of(const LoadedLanguageModel& loaded, const Architecture& row,
                                    ModelForm form) {
  const LanguageModelConfig& config = loaded.model->config();
  const std::vector<NamedTensor> ours = parameter_tensors(loaded.model->parameters());
  return tensors_at(tensor_places(row, form, config), config, ours);
}

NamedFile weights_of(const LoadedLanguageModel& loaded, const Architecture& row, DType dtype) {
  return exported_weights(tensors_of(loaded, row, ModelForm::kHuggingFace), dtype);
}

using Files = std::vector<NamedFile>;

// The config.json of the language model alone, which says this type of the weights; what was packed
// has been widened.
std::string config_as_begun(const std::string& text, DType dtype) {
  constexpr std::string_view kPacked[] = {"quantization_config"};
  const Json whole = parse_json(text, {"config.json", ErrorCode::kModelDamaged});
  return Json(with_dtype(members_but(language_model_config(whole), kPacked), dtype)).pretty();
}

// The files of the folder that the model began from, with its new weights.
Files files_as_begun(const LoadedLanguageModel& loaded, const Architecture& row, DType dtype) {
  Files files;
  for (ZipMember& one : kept_files(loaded.kept_text, "tokenizer.txt")) {
    if (one.name == "config.json") one.bytes = config_as_begun(one.bytes, dtype);
    files.push_back({one.name, std::move(one.bytes)});
  }
  if (files.empty()) refuse_form("GGUF file", "gguf");
  files.push_back(weights_of(loaded, row, dtype));
  return files;
}

Files files_of(const LoadedLanguageModel& loaded, const Architecture& architecture, DType dtype) {
  const LanguageModelConfig& config = loaded.model->config();
  Json::Object form = hugging_face_config(architecture, config);
  HuggingFaceTokenizer tokenizer = hugging_face_tokenizer(*loaded.tokenizer, knows_lines(loaded));
  form.insert(form.end(), tokenizer.ids.begin(), tokenizer.ids.end());
  form.emplace_back("dtype", to_string(dtype));
  tokenizer.settings.emplace_back("model_max_length", config.block);
  return {{"generation_config.json", Json(tokenizer.ids).pretty()},
          {"tokenizer.json", tokenizer.tokenizer.pretty()},
          {"tokenizer_config.json", Json(std::move(tokenizer.settings)).pretty()},
          weights_of(loaded, architecture, dtype),
          {"config.json", Json(std::move(form)).pretty()}};
}

const Architecture& architecture_of(const LoadedLanguageModel& loaded) {
  return loaded.pretrained ? architecture(loaded.pretrained->architecture)
                           : architecture_of(loaded.model->config());
}

// With the divisors of rotary positions, where no rule in the metadata says them.
std::string gguf_as_begun(const LoadedLanguageModel& loaded, const Architecture& row,
                          const GgufWeightType& type) {
  const std::string metadata = kept_metadata(loaded.kept_text, "tokenizer.txt");
  if (metadata.empty()) refuse_form("folder of Hugging Face", "hf");
  std::vector<NamedTensor> tensors = tensors_of(loaded, row, ModelForm::kGguf);
  const MemorySource source(metadata);
  const GgufHeader header = parse_gguf_header(source, "tokenizer.txt");
  const std::vector<double> divisors = divisors_of(loaded.model->config());
  if (!divisors.empty() && !has_rotary_rule(header, row, loaded.model->config())) {
    const std::vector<float> values(divisors.begin(), divisors.end());
    tensors.push_back({"rope_freqs.weight", Tensor::of<float>({std::ssize(values)}, values)});
  }
  return gguf_bytes(metadata, tensors, type);
}

}  // namespace

std::string export_hugging_face(const LoadedLanguageModel& loaded, const fs::path& folder,
                                DType dtype) {
  require_of_fovea(is_of_fovea(loaded));
  const Architecture& row = architecture_of(loaded);
  write_exported(folder, loaded.pretrained ? files_as_begun(loaded, row, dtype)
                                           : files_of(loaded, row, dtype));
  return std::string(row.class_name);
}

std::string export_gguf(const LoadedLanguageModel& loaded, const fs::path& file,
                        std::string_view type) {
  require_of_fovea(is_of_fovea(loaded));
  const LanguageModelConfig& config = loaded.model->config();
  const Architecture& architecture = architecture_of(loaded);
  const GgufWeightType& weights = choose(gguf_weight_types(), type, "dtype");
  std::string bytes;
  if (loaded.pretrained) {
    bytes = gguf_as_begun(loaded, architecture, weights);
  } else {
    std::vector<GgufEntry> metadata = gguf_sizes(architecture, config);
    metadata.push_back({"general.file_type", weights.file_type});
    metadata.push_back({"general.quantization_version", std::uint32_t{2}});
    for (GgufEntry& entry : gguf_tokenizer(*loaded.tokenizer, knows_lines(loaded))) {
      metadata.push_back(std::move(entry));
    }
    bytes = gguf_bytes(metadata, tensors_of(loaded, architecture, ModelForm::kGguf), weights);
  }
  require_disk_space(file.parent_path(), bytes.size());
  write_file_atomically(file, bytes);
  return std::string(architecture.name);
}

}  // namespace fovea
