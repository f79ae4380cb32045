// SPDX-License-Identifier: Apache-2.0
// The vocabulary among the files of a model of Hugging Face: tokenizer.json, or else spiece.model
// (T5), tokenizer.model, or vocab.json and merges.txt.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "fovea/pretrained/model_files.h"
#include "fovea/text/tokenizer/subwords.h"
#include "fovea/text/tokenizer/wordpiece.h"

namespace fovea {

struct FolderSubwords {
  std::shared_ptr<const Subwords> subwords;
  MarksAround marks{};
};

/// The vocabulary, for a model with a table of `rows` embeddings, which may be more
/// than there are tokens. `architecture`: "gpt2". `begin` is the mark that special() names where
/// none stands before each text. Throws kModelMissing; kModelDamaged, as for more tokens than rows;
/// kModelWrongKind for a part that fovea does not know, by its name.
FolderSubwords read_folder_subwords(const ModelFiles& files, std::string_view architecture,
                                    index rows, token begin);

/// The same of a folder, whose config.json says the rows; without its marks.
std::shared_ptr<const Subwords> load_folder_subwords(const std::filesystem::path& folder);

}  // namespace fovea
