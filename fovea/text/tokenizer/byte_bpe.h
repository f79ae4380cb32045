// SPDX-License-Identifier: Apache-2.0
// Byte-level byte-pair encoding (Radford et al. 2019, section 2.2), as GPT-2, Llama 3, Qwen 2 and
// SmolLM cut text: tokens are sequences of bytes, so that any text has tokens.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/keyed_hash.h"
#include "fovea/text/tokenizer.h"

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
  kNone,  ///< the text is one part
};

/// A row for each name that a model gives its cuts.
struct PreSplit {
  std::string_view name;  ///< tokenizer.ggml.pre of a GGUF file: "smollm"
  SplitPattern pattern = SplitPattern::kGpt2;
  int digits = 0;              ///< kCl100k: most digits of a part, n above
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
  bool nfc = false;                        ///< text between marks is composed first (Unicode NFC)
  token begin = kNoToken, end = kNoToken;  ///< the marks that Tokenizer::special() names
};

/// Whether marks that are written in a text become their tokens, or the tokens of their characters.
enum class Marks : std::uint8_t { kRead, kAreText };

/// The name of a token of these bytes: each is the character that prints as itself, or else, in
/// their order, one from U+0100 on.
std::string name_of_bytes(std::string_view bytes);

/// Immutable; any number of threads may use one at once.
class ByteBpe {
 public:
  /// Throws kModelDamaged for a vocabulary that contradicts itself: a name that is there twice,
  /// a merge of tokens that are not there.
  explicit ByteBpe(ByteBpeModel model);
  ByteBpe(const ByteBpe&) = delete;
  ByteBpe& operator=(const ByteBpe&) = delete;

  const ByteBpeModel& model() const { return model_; }
  index size() const { return static_cast<index>(model_.names.size()); }
  /// kNoToken if no token has the name.
  token id_of(std::string_view name) const;
  const std::string& name(token id) const { return model_.names[static_cast<std::size_t>(id)]; }
  BpeTokenKind kind(token id) const { return model_.kinds[static_cast<std::size_t>(id)]; }
  bool is_mark(token id) const {
    return kind(id) == BpeTokenKind::kControl || kind(id) == BpeTokenKind::kUnknown;
  }

  /// Appends the tokens of valid UTF-8. A byte that has no token is left out, as by `tokenizers`.
  void encode(std::vector<token>& ids, std::string_view text, Marks marks = Marks::kRead) const;
  /// Appends the bytes of a token; of a mark its name.
  void append_bytes(std::string& out, token id) const;

 private:
  struct Merge {
    std::uint64_t pair = kNoPair;
    std::uint32_t rank = 0;
    token joined = kNoToken;
  };
  static constexpr std::uint64_t kNoPair = ~std::uint64_t{0};

  static std::uint64_t pair_of(token left, token right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t pair) const;
  void add_names();
  void add_merges();
  void add_whole_texts();
  /// The merge of two tokens; null: they are not joined.
  const Merge* merge_of(token left, token right) const;
  /// Finds the next text that is one token from `begin` on: its place and id.
  std::pair<std::size_t, token> find_whole(std::string_view text, std::size_t begin,
                                           Marks marks) const;
  void encode_plain(std::vector<token>& ids, std::string_view text) const;
  void encode_part(std::vector<token>& ids, std::string_view part) const;

  const ByteBpeModel model_;
  KeyedMap<std::string_view, token> ids_;
  std::array<token, 256> bytes_{};
  std::vector<Merge> merges_;                     // a hash table: as many as a power of two
  std::uint64_t factor_ = 1;                      // of its hash, drawn by each process
  std::array<std::vector<token>, 256> wholes_{};  // marks and texts, by first byte, longest first
};

/// The tokenizer of a model; `bpe` may be shared. Marks in a text are read.
std::unique_ptr<Tokenizer> byte_bpe_tokenizer(std::shared_ptr<const ByteBpe> bpe);

}  // namespace fovea
