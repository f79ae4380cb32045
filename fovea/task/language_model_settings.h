// SPDX-License-Identifier: Apache-2.0
// All settings of training a language model, as one list of fields.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/model/language_model_config.h"
#include "fovea/train/options.h"

namespace fovea {

/// The text, and how it is cut into sequences.
struct TextOptions {
  std::vector<std::string> train;
  std::vector<std::string> valid;
  double valid_fraction = 0.1;
  std::string tokenizer = "char";
  std::string data = "blocks";
  index batch_size = 12;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("train", train, "text files to train on, joined in this order");
    visit("valid", valid, "text files to validate on");
    visit("valid_fraction", valid_fraction,
          "without --valid: this last part of the text is for validation");
    visit("tokenizer", tokenizer, "what a token is");
    visit("data", data, "blocks: random blocks of the text; lines: each line is a sequence");
    visit("batch_size", batch_size, "sequences per batch");
  }
};

struct LanguageModelSettings {
  TextOptions text;
  LanguageModelConfig model;
  TrainOptions recipe;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("text", text, "what is read, and how it is cut");
    visit("model", model, "what the model is made of");
    visit("recipe", recipe, "how it is trained");
  }
};

/// Named settings to start from; options that are given too override them.
struct LanguageModelPreset {
  std::string_view name;
  std::string_view summary;
  void (*apply)(LanguageModelSettings& settings);
};

std::span<const LanguageModelPreset> language_model_presets();

/// Throws kOptionValue, which lists the presets, if there is none of that name.
void apply_preset(std::string_view name, LanguageModelSettings& settings);

/// Throws kOptionValue, which names the option, for an invalid value of text or recipe.
void check_options(const LanguageModelSettings& settings);

}  // namespace fovea
