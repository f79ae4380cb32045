// SPDX-License-Identifier: Apache-2.0
// The encoder that a training of a classifier, a tagger or a sentence encoder begins from (--base):
// its layers, their weights and its tokenizer are those of the run. Its head is left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/words.h"
#include "fovea/model/bert.h"
#include "fovea/pretrained/encoder.h"
#include "fovea/task/adapters.h"
#include "fovea/task/encoder_adapters.h"
#include "fovea/task/run.h"
#include "fovea/text/vocabulary.h"
#include "fovea/train/options.h"

namespace fovea {

/// Whether the warm-up of a run is the usual one, which is shorter in a short run.
enum class Warmup : std::uint8_t { kAsSaid, kUsual };

/// What such a run begins from.
struct EncoderBaseOptions : AdaptableBase {
  // No fields, as a run stores what follows from them.
  Warmup warmup = Warmup::kAsSaid;
  std::vector<std::string> labels_left_out = {};  ///< those of the head of the base

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    AdaptableBase::visit_fields(
        visit,
        "begin from this encoder: a folder of Hugging Face or sentence-transformers, or one of "
        "fovea that began from such; its layers and its tokens are kept, not its head",
        "which products of the layers have adapters: q, k, v, o, up, down, with commas between, "
        "or all",
        {"input", "text|pairs"});
  }
};

/// Reads all but the weights. `head`: that which the training gives it. Throws kModelMissing,
/// kModelDamaged, and kModelWrongKind for what is no encoder, or one that fovea does not know.
EncoderBase read_encoder_base(const std::filesystem::path& base, BertHead head);

/// The tokenizer of a base, as the folder of a run keeps it.
TokenizerData tokenizer_of_encoder(const std::filesystem::path& base);

/// Whether a field of the settings of a model on the layers of a base, such as "model.width", says
/// what these layers are.
bool says_layers(std::string_view field);

/// Whether a model reads texts, or pairs of texts.
enum class TextCount : std::uint8_t { kOne, kPair };

/// PretrainedLayers::separator of a model that reads so many, with types of tokens or without.
index separator_of(const EncoderTokenizer& tokenizer, index types, TextCount count);

/// How a model reads texts that keeps this tokenizer, whose file is called `where`. Throws
/// kModelDamaged, also if it has another separator.
EncoderText text_of_kept(const TokenizerData& kept, const EncoderConfig& model,
                         const std::string& where, TextCount count = TextCount::kOne);

/// Throws kModelWrongKind unless the tokenizer of a model from elsewhere, which is called `where`,
/// says how two texts are read as one; kModelDamaged if there is no room for them.
void require_pairs(const EncoderText& text, const std::string& where);

/// Throws kOptionValue unless texts (or pairs) of so many tokens have room beside their marks, and
/// the base, which is called `where`, reads as many; kModelWrongKind if its tokenizer does not say
/// what stands between the texts of a pair.
void require_length(index max_length, const EncoderText& text, const std::string& where,
                    TextCount count = TextCount::kOne);

/// What training drops is as the base has it, but for what is `set`.
template <class Config>
void keep_dropouts(Config& model, const Config& said, std::span<const std::string> set) {
  if constexpr (requires { model.output_dropout; }) {
    if (contains(set, "model.dropout")) model.output_dropout = said.output_dropout;
  }
  if (contains(set, "model.encoder_dropout")) model.dropout = said.dropout;
}

/// Throws kOptionValue for options of a base that there cannot be, or that do not go together.
void check_encoder_options(const EncoderBaseOptions& from);

/// Keeps in the options of a run what else its base says and what is `set`.
void keep_base(EncoderBaseOptions& from, EncoderBase base, std::span<const std::string> set);

/// Freezes what --freeze names, if it names anything. Throws as freeze_parts().
void freeze_encoder(std::span<Parameter* const> parameters, const EncoderConfig& config,
                    const BaseOptions& options);

/// Factors of the learning rate by --layer-lr-decay; none: all are 1.
std::vector<double> encoder_rates(std::span<Parameter* const> parameters,
                                  const EncoderConfig& config, const BaseOptions& options);

/// Whether --freeze names the embeddings.
bool freezes_embeddings(const BaseOptions& options);

/// The recipe for weights that are trained already: small steps, a few passes over the data.
void apply_encoder_recipe(TrainOptions& recipe);
/// Makes the steps larger, where adapters are trained in place of the weights.
void apply_adapter_rate(TrainOptions& recipe, const EncoderBaseOptions& from);
/// Of a run of so many updates at least so many epochs; the usual warm-up is a tenth of a short
/// run.
void resolve_encoder_recipe(TrainOptions& recipe, index updates_per_epoch, Warmup warmup);

/// "BASE has a head (A, B and 3 more): it is left out"; "" without labels.
std::string head_note(const std::string& base, const std::vector<std::string>& labels);

/// Says in a run what its weights begin with, how many are not trained, and which adapters are.
/// `parameters`: those of its model, which need no values; `kept`: the tokenizer of the base;
/// `head`: that which transformers gives such a model. Throws as require_same_base(), and
/// kOptionValue for adapters or frozen parts that there cannot be.
template <class Run>
void begin_from_base(Run& run, std::span<Parameter* const> parameters, RunWeights weights,
                     const TokenizerData& kept, BertHead head) {
  const EncoderBaseOptions& from = run.settings.from;
  run.from_base = weights == RunWeights::kNew || from.lora > 0;
  freeze_encoder(parameters, run.settings.model, from);
  run.adapters = plan_encoder_adapters(parameters, from, kept, head);
  run.frozen = frozen_values(parameters);
  if (weights != RunWeights::kNew) return;
  std::string note = head_note(run.settings.from.base, run.settings.from.labels_left_out);
  if (!note.empty()) run.overview.push_back(std::move(note));
}

}  // namespace fovea
