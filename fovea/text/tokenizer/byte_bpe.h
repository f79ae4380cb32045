// SPDX-License-Identifier: Apache-2.0
// Byte-level byte-pair encoding (Radford et al. 2019, section 2.2), as GPT-2, Llama 3, Qwen 2 and
// SmolLM cut text: tokens are sequences of bytes, so that any text has tokens.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/keyed_hash.h"
#include "fovea/text/tokenizer/merge_table.h"
#include "fovea/text/tokenizer/subwords.h"

namespace fovea {

// How byte-level BPE cuts a text before it joins bytes: no token reaches over such a cut. Models
// give these cuts as regular expressions; the scanners here do what those say, with the classes of
// Unicode.

enum class SplitPattern : std::uint8_t {
  /// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+     (GPT-2)
  kGpt2,
  /// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,n}| ?[^\s\p{L}\p{N}]+[\r\n]*|
  /// \s*[\r\n]+|\s+(?!\S)|\s+                                             (GPT-4: cl100k)
  kCl100k,
  /// [^\r\n\p{L}\p{N}]?U*L+e|[^\r\n\p{L}\p{N}]?U+L*e|\p{N}{1,n}| ?[^\s\p{L}\p{N}]+[\r\n/]*|
  /// \s*[\r\n]+|\s+(?!\S)|\s+, where U is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], L is
  /// [\p{Ll}\p{Lm}\p{Lo}\p{M}] and e is (?i:'s|'t|'re|'ve|'m|'ll|'d)? or nothing (GPT-4o: o200k)
  kO200k,
  kNone,  ///< the text is one part
};

/// A row for each name that a model gives its cuts.
struct PreSplit {
  std::string_view name;  ///< tokenizer.ggml.pre of a GGUF file: "smollm"
  SplitPattern pattern = SplitPattern::kGpt2;
  int digits = 0;              ///< kCl100k, kO200k: most digits of a part, n above
  bool endings = false;        ///< kO200k: e above
  bool digits_apart = false;   ///< kGpt2: each digit is a part, before the pattern is looked for
  bool begins = false;         ///< a text begins with the mark, unless the file says otherwise
  bool ignore_merges = false;  ///< a part that is a token is that token, whatever could be joined
};

std::span<const PreSplit> pre_splits();

/// Takes the next part from the front of valid UTF-8, which must not be empty.
std::string_view take_part(std::string_view& text, const PreSplit& split);

/// The kinds of tokens in a vocabulary, by the numbers of tokenizer.ggml.token_type.
enum class BpeTokenKind : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,      ///< as kControl
  kControl = 3,      ///< a mark such as <|im_end|>, which stands for no text
  kUserDefined = 4,  ///< a text that is one token wherever it stands
  kUnused = 5,
  kByte = 6,
};

struct ByteBpeModel {
  /// The names of the tokens: each byte of a normal one is written as a letter, as GPT-2's
  /// vocabulary has it ("\u0120the" is " the"); the others stand there as they are.
  std::vector<std::string> names;
  std::vector<BpeTokenKind> kinds;  ///< of each
  /// Pairs of tokens that are joined, the first ones first: "\u0120t he".
  std::vector<std::string> merges;
  PreSplit split{};
  bool nfc = false;                 ///< text between marks is composed first (Unicode NFC)
  bool prefix_space = false;        ///< a blank comes before text that begins with none
  std::vector<token> takes_left{};  ///< ascending: marks that take the white space before them
  token begin = kNoToken, end = kNoToken;  ///< the marks that Tokenizer::special() names
};

/// The name of a token of these bytes: each is the character that prints as itself, or else, in
/// their order, one from U+0100 on.
std::string name_of_bytes(std::string_view bytes);

class ByteBpe final : public Subwords {
 public:
  /// Throws kModelDamaged for a vocabulary that contradicts itself: a name that is there twice,
  /// a merge of tokens that are not there.
  explicit ByteBpe(ByteBpeModel model);
  ByteBpe(const ByteBpe&) = delete;
  ByteBpe& operator=(const ByteBpe&) = delete;

  const ByteBpeModel& model() const { return model_; }
  BpeTokenKind kind(token id) const { return model_.kinds[static_cast<std::size_t>(id)]; }

  index size() const override { return static_cast<index>(model_.names.size()); }
  token id_of(std::string_view name) const override;
  const std::string& name(token id) const override {
    return model_.names[static_cast<std::size_t>(id)];
  }
  bool is_mark(token id) const override {
    return kind(id) == BpeTokenKind::kControl || kind(id) == BpeTokenKind::kUnknown;
  }
  bool is_unused(token id) const override { return kind(id) == BpeTokenKind::kUnused; }
  SpecialTokens special() const override { return {.begin = model_.begin, .end = model_.end}; }

  /// A byte that has no token is left out, as by `tokenizers`.
  void encode(std::vector<token>& ids, std::string_view text, Marks marks = Marks::kRead,
              TextPlace place = TextPlace::kBegin) const override;
  std::string decode(std::span<const token> ids) const override;
  void append_bytes(std::string& out, token id) const override;

 private:
  void add_names();
  void add_merges();
  void add_whole_texts();
  void add_parts();
  // The token of a part that is one token; kNoToken for any other.
  token whole_part(std::string_view part) const;
  /// Finds the next text that is one token from `begin` on: its place and id.
  std::pair<std::size_t, token> find_whole(std::string_view text, std::size_t begin,
                                           Marks marks) const;
  void encode_plain(std::vector<token>& ids, std::string_view text) const;
  void encode_part(std::vector<token>& ids, std::string_view part) const;
  void append_joined(std::vector<token>& ids, std::string_view part) const;

  const ByteBpeModel model_;
  KeyedMap<std::string_view, token> ids_;
  std::array<token, 256> bytes_{};
  MergeTable merges_;
  // The bytes of normal tokens, which a part may be. Most words of a text are a token: whether the
  // merges make it of its bytes is found out when a text first has it.
  enum class Whole : std::uint8_t { kUnknown, kIs, kIsNot };
  std::string part_bytes_;
  WordTable parts_{0};
  mutable std::vector<std::atomic<Whole>> is_whole_;  // of each token
  std::array<std::vector<token>, 256> wholes_{};  // marks and texts, by first byte, longest first
};

}  // namespace fovea
