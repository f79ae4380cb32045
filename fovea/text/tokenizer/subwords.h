// SPDX-License-Identifier: Apache-2.0
// The vocabulary of a model from elsewhere: how it cuts a text into tokens, and what text they
// stand for.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/tokenizer.h"

namespace fovea {

/// Whether marks that are written in a text become their tokens, or the tokens of their characters.
enum class Marks { kRead, kAreText };

/// Whether a text that is cut begins a text, or goes on behind a mark: some vocabularies put a
/// blank before what begins a text alone.
enum class TextPlace { kBegin, kBehindMark };

/// Immutable; any number of threads may use one at once.
class Subwords {
 public:
  virtual ~Subwords() = default;

  virtual index size() const = 0;
  /// kNoToken if no token has the name.
  virtual token id_of(std::string_view name) const = 0;
  virtual const std::string& name(token id) const = 0;
  /// Whether the token stands for no text: <|im_end|>.
  virtual bool is_mark(token id) const = 0;
  /// Whether no text has the token: a row of a table that is larger than the vocabulary.
  virtual bool is_unused(token id) const = 0;
  /// The marks of the beginning and of the end of a text, and the token of what has none.
  virtual SpecialTokens special() const = 0;
  /// The white space at the beginning of a text that decode() leaves out.
  virtual LineSpace line_space() const { return LineSpace::kKept; }

  /// Appends the tokens of valid UTF-8.
  virtual void encode(std::vector<token>& ids, std::string_view text, Marks marks = Marks::kRead,
                      TextPlace place = TextPlace::kBegin) const = 0;
  /// The text of tokens; of a mark its name.
  virtual std::string decode(std::span<const token> ids) const = 0;
  /// Appends the bytes of a token, wherever it stands; of a mark its name.
  virtual void append_bytes(std::string& out, token id) const = 0;
};

/// The tokenizer of a model; `subwords` may be shared. Marks in a text are read.
std::unique_ptr<Tokenizer> subwords_tokenizer(std::shared_ptr<const Subwords> subwords);

}  // namespace fovea
