// SPDX-License-Identifier: Apache-2.0
// The language models of fovea as architectures of Hugging Face transformers: which one a
// configuration is, its config.json, and where each tensor stands in its file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/model/language_model_config.h"
#include "fovea/tensor/named_tensor.h"

namespace fovea {

/// A tensor of an architecture, and the rows of fovea's that hold its values.
struct TensorPlace {
  std::string theirs;
  Shape shape;
  std::string ours;         ///< "": it is zero, a bias that fovea's model does not have
  index first = 0;          ///< row of ours that is its first
  bool transposed = false;  ///< theirs is [in, out], as the matrices of GPT-2
};

struct HuggingFaceForm {
  Json::Object config;  ///< of config.json; the special tokens are the tokenizer's
  std::vector<TensorPlace> tensors;
};

/// The architecture that computes the same: GPT-2, Llama, Mistral or Qwen3. `config` is resolved.
/// Throws kModelWrongKind if there is none; the error names the closest, and each option in which
/// it differs.
HuggingFaceForm hugging_face_form(const LanguageModelConfig& config);

/// The tensors of that form, from those of fovea's model.
std::vector<NamedTensor> hugging_face_tensors(const HuggingFaceForm& form,
                                              std::span<const NamedTensor> ours);

}  // namespace fovea
