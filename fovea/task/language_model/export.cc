// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/export.h"

#include <span>
#include <utility>

#include "fovea/base/file.h"
#include "fovea/pretrained/hugging_face.h"
#include "fovea/pretrained/hugging_face_tokenizer.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

std::string weights_of(const LoadedLanguageModel& loaded, const Architecture& architecture,
                       DType dtype) {
  const LanguageModelConfig& config = loaded.model->config();
  const std::vector<NamedTensor> ours = parameter_tensors(loaded.model->parameters());
  std::vector<NamedTensor> theirs =
      tensors_at(tensor_places(architecture, ModelForm::kHuggingFace, config), config, ours);
  if (dtype != DType::kFloat32) {
    for (NamedTensor& one : theirs) one.tensor = one.tensor.to(dtype);
  }
  return safetensors_bytes(theirs);
}

}  // namespace

std::string export_hugging_face(const LoadedLanguageModel& loaded, const fs::path& folder,
                                DType dtype) {
  const LanguageModelConfig& config = loaded.model->config();
  const Architecture& architecture = architecture_of(config);
  Json::Object form = hugging_face_config(architecture, config);
  const bool lines = loaded.settings.text.data == "lines";
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

}  // namespace fovea
