// SPDX-License-Identifier: Apache-2.0
// The encoder that a training of a classifier or a tagger begins from (--base): its layers, their
// weights and its tokenizer are those of the run; its head is new.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "fovea/model/bert.h"
#include "fovea/pretrained/encoder.h"
#include "fovea/task/base.h"
#include "fovea/text/vocabulary.h"
#include "fovea/train/options.h"

namespace fovea {

struct EncoderBaseOptions : BaseOptions {
  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    BaseOptions::visit_fields(visit,
                              "begin from this encoder: a folder of Hugging Face or "
                              "sentence-transformers, or one of fovea that began from such; its "
                              "layers and its tokens are kept, its head is new",
                              {"input", "text"});
  }
};

/// Reads all but the weights. `head`: that which the training gives it. Throws kModelMissing,
/// kModelDamaged, and kModelWrongKind for what is no encoder, or one that fovea does not know.
EncoderBase read_encoder_base(const std::filesystem::path& base, BertHead head);

/// The tokenizer of a base, as the folder of a run keeps it.
TokenizerData tokenizer_of_encoder(const std::filesystem::path& base);

/// How a model reads texts that keeps this tokenizer, whose file is called `where`. Throws
/// kModelDamaged.
EncoderText text_of_kept(const TokenizerData& kept, const EncoderConfig& model,
                         const std::string& where);

/// Sets the parameters of the layers to the weights of the base; a head stays as it is, and a layer
/// over the first row that the base does not have.
void load_encoder_base(const std::filesystem::path& base, std::span<Parameter* const> parameters);

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
/// Of a run of so many updates at least so many epochs; the usual warm-up is a tenth of a short
/// run.
void resolve_encoder_recipe(TrainOptions& recipe, index updates_per_epoch);

/// "the head of BASE, with the labels A, B and 3 more, is left out"; "" without one.
std::string head_note(const std::string& base, const std::vector<std::string>& labels);

}  // namespace fovea
