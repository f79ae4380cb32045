// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/export.h"

#include <utility>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/pretrained/translator_writer.h"
#include "fovea/task/exported_files.h"
#include "fovea/text/sentencepiece/piece_model.h"

namespace fovea {

namespace {

// The pieces of one side, and its marks by their names.
struct ExportedSide {
  ExportedSide(const Tokenizer& tokenizer, const char* option)
      : data(tokenizer.data()), special(tokenizer.special()) {
    if (data.kind != kPieceKind) {
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("the tokens of this model ({} {}) are not those of SentencePiece, "
                              "which transformers' translators have",
                              option, data.kind),
                  "train a model with --tokenizer sentencepiece to export it");
    }
    pieces = read_piece_model(data.model, option).pieces;
  }

  const std::string& name(token id) const { return pieces[static_cast<std::size_t>(id)].text; }
  std::string vocabulary() const {
    Json::Object ids;
    for (std::size_t id = 0; id < pieces.size(); ++id) ids.emplace_back(pieces[id].text, id);
    return Json(std::move(ids)).pretty();
  }

  TokenizerData data;
  SpecialTokens special;
  std::vector<ModelPiece> pieces;
};

// Sources have no mark of the beginning, and targets no other, so it is that of padding, too.
Json::Object marks_of(const ExportedSide& target) {
  return {{"bos_token_id", Json()},
          {"pad_token_id", target.special.begin},
          {"decoder_start_token_id", target.special.begin},
          {"eos_token_id", target.special.end},
          {"forced_eos_token_id", target.special.end}};
}

// What a translation here never has.
Json::Array banned_words(const Tokenizer& target) {
  Json::Array banned;
  const SpecialTokens special = target.special();
  for (token id = 0; id < target.vocabulary_size(); ++id) {
    const bool written = id != special.unknown && target.occurs_in_learned_text(id);
    if (id != special.end && !written) banned.push_back(Json::Array{Json(id)});
  }
  return banned;
}

Json::Object rules_of(const ExportedSide& source, const ExportedSide& target, bool separate,
                      index longest) {
  const SpecialTokens &from = source.special, &to = target.special;
  if (source.name(from.begin) != target.name(to.begin) ||
      source.name(from.end) != target.name(to.end) ||
      source.name(from.unknown) != target.name(to.unknown)) {
    throw Error(
        ErrorCode::kModelWrongKind,
        "the marks of source and target have other names, and transformers has one for both",
        "train with pieces of fovea tokenizer train");
  }
  return {{"tokenizer_class", "MarianTokenizer"}, {"unk_token", source.name(from.unknown)},
          {"eos_token", source.name(from.end)},   {"pad_token", source.name(from.begin)},
          {"separate_vocabs", separate},          {"clean_up_tokenization_spaces", false},
          {"model_max_length", longest}};
}

}  // namespace

std::string export_translator(const LoadedTranslator& loaded, const std::filesystem::path& folder,
                              DType dtype) {
  require_of_fovea(!loaded.vocabulary.is_foreign);
  const TranslatorConfig& c = loaded.model->config();
  const TranslatorArchitecture& row = translator_architecture_of(c);
  const ExportedSide source(loaded.vocabulary.source(), "--tokenizer"),
      target(loaded.vocabulary.target(), "--target-tokenizer");
  const bool separate = loaded.vocabulary.of_target != nullptr;
  const Json::Object marks = marks_of(target);
  Json::Object config = translator_config_json(row, c), generation = marks;
  config.insert(config.end(), marks.begin(), marks.end());
  // The mark of the beginning counts in max_length.
  generation.emplace_back("max_length", c.block + 1);
  generation.emplace_back("num_beams", loaded.search.beam);
  generation.emplace_back("bad_words_ids", banned_words(loaded.vocabulary.target()));
  std::vector<NamedFile> files = {
      {"source.spm", source.data.model},
      {"target.spm", target.data.model},
      {"vocab.json", source.vocabulary()},
      {"tokenizer_config.json", Json(rules_of(source, target, separate, c.block)).pretty()},
      {"generation_config.json", Json(std::move(generation)).pretty()}};
  if (separate) files.push_back({"target_vocab.json", target.vocabulary()});
  files.push_back(
      exported_weights(translator_tensors_of(row, c, loaded.model->parameters()), dtype));
  files.push_back({"config.json", Json(with_dtype(std::move(config), dtype)).pretty()});
  write_exported(folder, std::move(files));
  return std::string(row.class_name);
}

}  // namespace fovea
