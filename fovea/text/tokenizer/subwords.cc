// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/subwords.h"

#include "fovea/base/check.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

class SubwordsTokenizer final : public Tokenizer {
 public:
  explicit SubwordsTokenizer(std::shared_ptr<const Subwords> subwords)
      : subwords_(std::move(subwords)) {}

  TokenizerData data() const override {
    throw Error(
        ErrorCode::kModelWrongKind,
        "a tokenizer of a model from elsewhere is kept as its files, which are not known here",
        "make a folder of fovea from the model: fovea import");
  }
  index vocabulary_size() const override { return subwords_->size(); }
  SpecialTokens special() const override { return subwords_->special(); }
  LineSpace line_space() const override { return subwords_->line_space(); }
  index token_count(std::string_view text) const override { return std::ssize(text) + 1; }

  void append_tokens(std::vector<token>& ids, std::string_view text,
                     std::string_view name) const override {
    require_utf8(text, name);
    subwords_->encode(ids, text);
  }

  bool occurs_in_learned_text(token id) const override { return !subwords_->is_unused(id); }

 private:
  void append_known(std::string& out, token id) const override {
    if (!subwords_->is_mark(id)) subwords_->append_bytes(out, id);
  }

  std::shared_ptr<const Subwords> subwords_;
};

}  // namespace

std::unique_ptr<Tokenizer> subwords_tokenizer(std::shared_ptr<const Subwords> subwords) {
  return std::make_unique<SubwordsTokenizer>(std::move(subwords));
}

}  // namespace fovea
