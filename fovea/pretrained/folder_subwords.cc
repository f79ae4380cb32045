// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/folder_subwords.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/pieces_of_json.h"
#include "fovea/pretrained/tokenizer_files.h"
#include "fovea/text/tokenizer/byte_bpe.h"

namespace fovea {

namespace {

// How many names there are more: tables are padded to a round number of rows, not to many times the
// tokens.
index padding(const std::string& where, std::size_t names, index rows) {
  const index tokens = static_cast<index>(names);
  if (tokens > rows) {
    fail(ErrorCode::kModelDamaged, "{}: {} tokens; the model has {}", where, tokens, rows);
  }
  if (rows > 2 * tokens + 1024) {
    fail(ErrorCode::kModelDamaged, "{}: {} tokens; vocab_size of config.json is {}", where, tokens,
         rows);
  }
  return rows - tokens;
}

FolderSubwords pieces(const Json& json, const std::string& where, index rows, token begin) {
  PiecesOfJson read = pieces_of_json(json, where);
  read.model.begin = read.before.empty() ? begin : read.before.back();
  read.model.names.resize(read.model.names.size() +
                          static_cast<std::size_t>(padding(where, read.model.names.size(), rows)));
  return {std::make_shared<const PiecePipeline>(std::move(read.model)), std::move(read.before),
          std::move(read.after)};
}

FolderSubwords bytes(const Json& json, const std::string& where, index rows, token begin) {
  BpeOfJson read = bpe_of_json(json, where);
  std::vector<std::string>& names = read.model.names;
  for (index more = padding(where, names.size(), rows); more > 0; --more) {
    names.push_back(fmt::format("[UNUSED{}]", names.size()));
    read.model.kinds.push_back(BpeTokenKind::kUnused);
  }
  read.model.begin = read.marks.before.empty() ? begin : read.marks.before.back();
  return {std::make_shared<const ByteBpe>(std::move(read.model)), std::move(read.marks.before),
          std::move(read.marks.after)};
}

}  // namespace

FolderSubwords read_folder_subwords(const ModelFiles& files, index rows, token begin) {
  constexpr std::string_view kName = "tokenizer.json";
  const std::string where = files.path(kName);
  const Json json = files.json(kName);
  return has_pieces(json, where) ? pieces(json, where, rows, begin)
                                 : bytes(json, where, rows, begin);
}

std::shared_ptr<const Subwords> load_folder_subwords(const std::filesystem::path& folder) {
  const ModelFiles files(folder);
  const Json json = files.json("config.json");
  const ForeignObject config(json, files.path("config.json"));
  return read_folder_subwords(files, config.whole("vocab_size", 1, INT32_MAX), kNoToken).subwords;
}

}  // namespace fovea
