// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/export.h"

#include <span>
#include <utility>

#include "fovea/base/file.h"
#include "fovea/base/option.h"
#include "fovea/pretrained/gguf_model.h"
#include "fovea/pretrained/hugging_face.h"
#include "fovea/pretrained/hugging_face_tokenizer.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

bool knows_lines(const LoadedLanguageModel& loaded) { return loaded.settings.text.data == "lines"; }

// A model from elsewhere has its own file already, and another tokenizer.
void refuse_pretrained(const LoadedLanguageModel& loaded) {
  if (!loaded.pretrained) return;
  throw Error(ErrorCode::kModelWrongKind, "export is for models that fovea has trained",
              "this model has the form of another program already");
}

std::vector<NamedTensor> tensors_of(const LoadedLanguageModel& loaded, const Architecture& row,
                                    ModelForm form) {
  const LanguageModelConfig& config = loaded.model->config();
  const std::vector<NamedTensor> ours = parameter_tensors(loaded.model->parameters());
  return tensors_at(tensor_places(row, form, config), config, ours);
}

std::string weights_of(const LoadedLanguageModel& loaded, const Architecture& row, DType dtype) {
  std::vector<NamedTensor> theirs = tensors_of(loaded, row, ModelForm::kHuggingFace);
  if (dtype != DType::kFloat32) {
    for (NamedTensor& one : theirs) one.tensor = one.tensor.to(dtype);
  }
  return safetensors_bytes(theirs);
}

}  // namespace

std::string export_hugging_face(const LoadedLanguageModel& loaded, const fs::path& folder,
                                DType dtype) {
  refuse_pretrained(loaded);
  const LanguageModelConfig& config = loaded.model->config();
  const Architecture& architecture = architecture_of(config);
  Json::Object form = hugging_face_config(architecture, config);
  const bool lines = knows_lines(loaded);
  HuggingFaceTokenizer tokenizer = hugging_face_tokenizer(*loaded.tokenizer, lines);
  form.insert(form.end(), tokenizer.ids.begin(), tokenizer.ids.end());
  form.emplace_back("dtype", to_string(dtype));
  tokenizer.settings.emplace_back("model_max_length", config.block);
  const std::array<std::string, kExportedFiles.size()> texts = {
      Json(tokenizer.ids).pretty(), tokenizer.tokenizer.pretty(),
      Json(std::move(tokenizer.settings)).pretty(), weights_of(loaded, architecture, dtype),
      Json(std::move(form)).pretty()};
  std::uintmax_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  require_disk_space(folder, bytes);
  create_folders(folder);
  remove_file(folder / kExportedFiles.back());
  for (std::size_t n = 0; n < texts.size(); ++n) {
    write_file_atomically(folder / kExportedFiles[n], texts[n]);
  }
  return std::string(architecture.class_name);
}

std::string export_gguf(const LoadedLanguageModel& loaded, const fs::path& file,
                        std::string_view type) {
  refuse_pretrained(loaded);
  const LanguageModelConfig& config = loaded.model->config();
  const Architecture& architecture = architecture_of(config);
  const GgufWeightType& weights = choose(gguf_weight_types(), type, "dtype");
  std::vector<GgufEntry> metadata = gguf_sizes(architecture, config);
  metadata.push_back({"general.file_type", weights.file_type});
  metadata.push_back({"general.quantization_version", std::uint32_t{2}});
  for (GgufEntry& entry : gguf_tokenizer(*loaded.tokenizer, knows_lines(loaded))) {
    metadata.push_back(std::move(entry));
  }
  const std::string bytes =
      gguf_bytes(metadata, tensors_of(loaded, architecture, ModelForm::kGguf), weights);
  require_disk_space(file.parent_path(), bytes.size());
  write_file_atomically(file, bytes);
  return std::string(architecture.name);
}

}  // namespace fovea
