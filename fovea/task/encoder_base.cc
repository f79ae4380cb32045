// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/encoder_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/pretrained/encoder.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/sentence_model.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/embed/sentence_encoder.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/setting_parts.h"
#include "fovea/task/tag/tagger.h"
#include "fovea/task/task_table.h"
#include "fovea/text/utf8.h"
#include "fovea/train/schedule.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr index kUsualWarmup = 50, kUsualEpochs = 3, kFewestUpdates = 150;

[[noreturn]] void refuse_base(const fs::path& base, std::string_view is, std::string hint) {
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: {}, and no encoder to begin from", base.string(), is),
              std::move(hint));
}

constexpr const char* kEncoders =
    "name a folder of BERT, RoBERTa, XLM-RoBERTa, DistilBERT or MPNet, or of a model that began "
    "from one";

// Whether it is a folder of another program; throws for what is no encoder.
bool is_foreign(const fs::path& base) {
  std::error_code ignored;
  if (!fs::exists(base, ignored)) {
    throw Error(ErrorCode::kModelMissing, fmt::format("{}: no such folder", base.string()),
                kEncoders);
  }
  if (is_encoder(base)) return true;
  switch (kind_of_model(base)) {
    case ModelKind::kLanguageModel:
      refuse_base(base, "a language model",
                  fmt::format("train it further with fovea train lm --base; here {}", kEncoders));
    case ModelKind::kTranslator:
      refuse_base(base, "a translator", kEncoders);
    case ModelKind::kClassifier:
    case ModelKind::kTagger:
      return is_hugging_face(base);
    case ModelKind::kSentenceEncoder:
      return false;
  }
  return false;
}

// f(a model of fovea, which began from an encoder).
template <class F>
auto with_model(const fs::path& base, const F& f) {
  const auto checked = [&](const auto& model) {
    if (!model.settings.model.has_base()) {
      refuse_base(base, "a model that was trained from the start", kEncoders);
    }
    return f(model);
  };
  switch (kind_of_model(base)) {
    case ModelKind::kTagger:
      return checked(load_tagger(base));
    case ModelKind::kSentenceEncoder:
      return checked(load_sentence_encoder(base));
    default:
      return checked(load_classifier(base));
  }
}

void copy_values(std::span<Parameter* const> from, std::span<Parameter* const> to) {
  for (Parameter* const parameter : to) {
    const auto found = std::ranges::find(from, parameter->name, &Parameter::name);
    if (!is_of_layers(parameter->name) || found == from.end()) continue;
    const Vec<const float> values = (*found)->value.vec<float>();
    check((*found)->value.shape() == parameter->value.shape(), "the base: {} is {}, not {}",
          parameter->name, to_string((*found)->value.shape()), to_string(parameter->value.shape()));
    std::copy(values.begin(), values.end(), parameter->value.vec<float>().begin());
    ++parameter->version;
  }
}

}  // namespace

EncoderBase read_encoder_base(const fs::path& base, BertHead head) {
  if (is_foreign(base)) {
    EncoderToBegin read = encoder_to_begin(transformer_folder(base), head);
    return {read.config, std::move(read.text), std::move(read.labels)};
  }
  return with_model(base, [&](const auto& model) {
    EncoderBase read{.layers = pretrained_layers(model.settings.model),
                     .text = text_of_kept(read_tokenizer_data(base), model.settings.model,
                                          (base / "tokenizer.txt").string()),
                     .labels = model.labels_of_head()};
    if constexpr (requires { model.settings.model.output_dropout; }) {
      read.layers.head_dropout = model.settings.model.output_dropout;
    }
    return read;
  });
}

TokenizerData tokenizer_of_encoder(const fs::path& base) {
  if (!is_foreign(base)) return read_tokenizer_data(base);
  return {.kind = std::string(kPretrainedKind),
          .model = kept_encoder_text(transformer_folder(base))};
}

EncoderText text_of_kept(const TokenizerData& kept, const EncoderConfig& model,
                         const std::string& where) {
  if (kept.kind != kPretrainedKind) {
    fail(ErrorCode::kModelDamaged, "{}: expected the tokenizer of a model from elsewhere, got {}",
         where, kept.kind);
  }
  return read_encoder_text(kept_encoder_files(kept.model, where), model.vocabulary, model.block);
}

void load_encoder_base(const fs::path& base, std::span<Parameter* const> parameters) {
  if (is_foreign(base)) return begin_from_encoder(transformer_folder(base), parameters);
  with_model(base, [&](const auto& model) {
    copy_values(model.model->parameters(), parameters);
    return 0;
  });
}

void freeze_encoder(std::span<Parameter* const> parameters, const EncoderConfig& c,
                    const BaseOptions& options) {
  if (options.freeze.empty()) return;
  FreezableParts parts{
      .embeddings = {"embedding.", "embedding_norm."}, .layer = "blocks", .layers = c.base.layers};
  if (c.base.types > 0) parts.embeddings.emplace_back("types.");
  freeze_parts(parameters, parts, options.freeze);
}

bool freezes_embeddings(const BaseOptions& options) {
  return options.freeze.find("embeddings") != std::string::npos;
}

void apply_encoder_recipe(TrainOptions& recipe) {
  recipe.lr = 5e-5;
  recipe.min_lr = recipe.lr / 10;
  recipe.schedule = ScheduleKind::kLinear;
  recipe.warmup = kUsualWarmup;
  recipe.beta2 = 0.999;
  recipe.weight_decay = 0.01;
  recipe.stop_after = recipe.eval_every = recipe.save_every = kAutoLength;
  recipe.patience = 0;
}

void resolve_encoder_recipe(TrainOptions& recipe, index updates_per_epoch) {
  resolve_lengths(recipe, updates_per_epoch, {.epochs = kUsualEpochs, .fewest = kFewestUpdates});
  const index updates =
      Horizon(parse_length(recipe.stop_after, "--stop-after"), updates_per_epoch).updates();
  if (recipe.warmup == kUsualWarmup && updates > 0) {
    recipe.warmup = std::min(recipe.warmup, updates / 10);
  }
}

std::string head_note(const std::string& base, const std::vector<std::string>& labels) {
  constexpr std::size_t kMost = 5;
  if (labels.empty()) return {};
  std::string names;
  for (std::size_t n = 0; n < std::min(labels.size(), kMost); ++n) {
    names += (n > 0 ? ", " : "") + escape_text(labels[n]);
  }
  if (labels.size() > kMost) names += fmt::format(" and {} more", labels.size() - kMost);
  return fmt::format("{} has a head, with the labels {}: it is left out, and a new one begins",
                     base, names);
}

}  // namespace fovea
