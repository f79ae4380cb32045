// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/shared_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/words.h"
#include "fovea/pretrained/folder_subwords.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/text/tokenizer/subwords.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

class SharedTokenizer final : public Tokenizer {
 public:
  SharedTokenizer(std::shared_ptr<const Subwords> subwords, const TranslationRules& rules,
                  token end)
      : subwords_(std::move(subwords)),
        special_{.begin = rules.begin, .end = end, .unknown = subwords_->special().unknown},
        never_written_(static_cast<std::size_t>(subwords_->size())) {
    for (const token id : rules.banned) never_written_[static_cast<std::size_t>(id)] = true;
  }

  // Its files are those of the folder, and are kept by nobody.
  TokenizerData data() const override { return {.kind = std::string(kPretrainedKind)}; }
  index vocabulary_size() const override { return subwords_->size(); }
  SpecialTokens special() const override { return special_; }
  LineSpace line_space() const override { return LineSpace::kAllDropped; }
  index token_count(std::string_view text) const override { return std::ssize(text) + 1; }

  void append_tokens(std::vector<token>& ids, std::string_view text,
                     std::string_view name) const override {
    require_utf8(text, name);
    subwords_->encode(ids, text);
  }

  // transformers lets a model write any of its ids, also those that no text has.
  bool occurs_in_learned_text(token id) const override {
    return !never_written_[static_cast<std::size_t>(id)];
  }

 private:
  void append_known(std::string& out, token id) const override {
    if (!subwords_->is_mark(id) && !subwords_->is_unused(id)) subwords_->append_bytes(out, id);
  }

  const std::shared_ptr<const Subwords> subwords_;
  const SpecialTokens special_;
  std::vector<bool> never_written_;  // [V]
};

// The end that the tokenizer puts behind a text, and it alone: one of those of the model.
token end_of_texts(const FolderSubwords& read, const TranslationRules& rules,
                   const std::string& where) {
  const std::vector<token>& after = read.marks.after;
  const bool is_end = read.marks.before.empty() && after.size() == 1 &&
                      std::ranges::find(rules.ends, after[0]) != rules.ends.end();
  if (is_end) return after[0];
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: the tokenizer does not put eos_token_id, {} ({}), and it alone, "
                          "behind a text",
                          where, rules.end, printable(read.subwords->name(rules.end))),
              kReadableHint);
}

bool cleans_up(const ModelFiles& files) {
  constexpr std::string_view kSettings = "tokenizer_config.json";
  if (!files.has(kSettings)) return false;
  const Json json = files.json(kSettings);
  return ForeignObject(json, files.path(kSettings)).flag("clean_up_tokenization_spaces", false);
}

}  // namespace

ForeignVocabularies read_shared_vocabulary(const ModelFiles& files, std::string_view architecture,
                                           const TranslatorConfig& config,
                                           const TranslationRules& rules) {
  FolderSubwords read = read_folder_subwords(files, architecture, config.vocabulary, kNoToken);
  const token end = end_of_texts(read, rules, files.where());
  std::map<token, std::string> marks;
  for (token id = 0; id < read.subwords->size(); ++id) {
    if (read.subwords->is_mark(id)) marks.emplace(id, read.subwords->name(id));
  }
  return {.of_source = std::make_unique<SharedTokenizer>(std::move(read.subwords), rules, end),
          .of_target = nullptr,
          .cleans = cleans_up(files),
          .marks = std::move(marks)};
}

}  // namespace fovea
