// SPDX-License-Identifier: Apache-2.0
// The table of tasks: the kinds of models that are trained, and what is known of each by its
// config.json alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "fovea/report/html.h"

namespace fovea {

enum class ModelKind : std::uint8_t {
  kLanguageModel,
  kClassifier,
  kTagger,
  kTranslator,
  kSentenceEncoder
};

/// `config` is the text of a config.json, and `name` what messages call it.
struct TaskRow {
  ModelKind kind;
  std::string_view key;  ///< "kind" in config.json
  Phrase name;           ///< on pages
  /// The files that a run writes before its first checkpoint, and others need not know of:
  /// tokenizers and, beside each, the list of its words, NAMEvocab.txt beside NAMEtokenizer.txt.
  std::span<const std::string_view> files;
  /// Whether evaluations of such a model have this "task"; those of the text that a language model
  /// predicts have none.
  bool (*scores)(std::string_view task);
  /// Throws kModelWrongKind for a model of another kind, kModelDamaged for what no run begins with.
  void (*check_config)(std::string_view config, const std::string& name);
  /// The unit of its loss (Objective::loss_unit()).
  std::string_view (*loss_unit)(std::string_view config, const std::string& name);
};

std::span<const TaskRow> task_table();
const TaskRow& task_row(ModelKind kind);

/// Reads config.json of a model folder or a checkpoint. A model from elsewhere is a language model,
/// unless it has a head for texts or tokens: then a classifier or a tagger; or makes vectors: then
/// a sentence encoder; or translates. Throws kModelMissing, kModelDamaged, and kModelWrongKind for
/// a kind that this version does not know.
ModelKind kind_of_model(const std::filesystem::path& folder);

/// The checksum of config.json, by which an evaluation says of which model it is: that file has the
/// settings as the run began, and stays the same. Of a model from elsewhere see
/// pretrained_checksum(). Throws kModelMissing, kModelDamaged.
std::string config_checksum(const std::filesystem::path& folder);

}  // namespace fovea
