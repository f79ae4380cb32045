// SPDX-License-Identifier: Apache-2.0
// Subwords of characters, as the library `tokenizers` cuts and joins them: added tokens are found,
// rules write the text between them, blanks become visible, and byte-pair encoding or a unigram
// model cuts what then lies between two cuts. So have Llama 2, Mistral, Gemma, XLM-RoBERTa and T5
// their text. Ids and decoded text are those of `tokenizers`.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "fovea/text/keyed_hash.h"
#include "fovea/text/tokenizer/added_tokens.h"
#include "fovea/text/tokenizer/subwords.h"
#include "fovea/text/tokenizer/text_rules.h"

namespace fovea {

/// Which texts get a blank in front.
enum class PrependBlank {
  kNever,
  kFirst,   ///< what begins a text, but not what stands behind an added token
  kAlways,  ///< each part between two cuts
};

/// Blanks become visible.
struct Metaspace {
  std::string symbol = std::string(kSpaceSymbol);
  PrependBlank prepend = PrependBlank::kAlways;  ///< the symbol, if none is there
  bool cuts = true;                              ///< before each symbol
};

/// Where a text is cut before the model cuts it, in this order.
struct PieceCuts {
  bool at_white_space = false;  ///< which is left out
  std::string behind = {};      ///< behind each such text; empty: nowhere
  std::optional<Metaspace> blanks = {};
};

/// Byte-pair encoding of characters (merge_table.h).
struct PieceMerges {
  std::vector<std::array<std::string, 2>> pairs;  ///< that are joined, the first ones first
  bool fuses_unknown = false;   ///< unknown characters in a row are one unknown token
  bool ignores_merges = false;  ///< a part that is a token is that token, whatever can be joined
};

/// A unigram model (Kudo 2018, section 3): of all cuts the one whose scores have the largest sum.
/// Unknown characters in a row are one unknown token.
struct PieceScores {
  std::vector<double> scores;  ///< of each token
};

/// One of the steps by which the texts of tokens become one text.
struct DecodeStep {
  enum class Kind {
    kReplace,   ///< each `from` in a token by `to`
    kBytes,     ///< tokens of bytes in a row are their characters, or else U+FFFD for each
    kFuse,      ///< all tokens are one
    kStrip,     ///< up to `left` and `right` times `from`, which is one character, off each token
    kMetaspace  ///< symbols are blanks; `drops`: of the first token none
  };
  Kind kind;
  std::string from = {}, to = {};
  index left = 0, right = 0;
  bool drops = false;
};

struct PiecePipelineModel {
  std::vector<std::string> names;  ///< of the tokens; empty: no text has the token
  std::vector<AddedToken> added{};
  std::vector<TextRule> rules{};
  PieceCuts cuts{};
  std::variant<PieceMerges, PieceScores> pieces{};
  token unknown = kNoToken;    ///< kNoToken: unknown characters of BPE are left out
  bool byte_fallback = false;  ///< unknown characters are spelled in bytes: <0x0A>
  std::vector<DecodeStep> decoder{};
  bool separates = false;  ///< decoded tokens have a blank between them: the file has no decoder
  token begin = kNoToken, end = kNoToken;  ///< the marks that special() names
};

/// Cuts a part of a text into tokens.
class PieceEncoder {
 public:
  virtual ~PieceEncoder() = default;
  virtual void append(std::vector<token>& ids, std::string_view part, Marks marks) const = 0;
};

class PiecePipeline final : public Subwords {
 public:
  /// Throws kModelDamaged for a vocabulary that contradicts itself: a name that is there twice, a
  /// merge of tokens that are not there, scores that are no numbers, an added token whose id has
  /// another name.
  explicit PiecePipeline(PiecePipelineModel model);
  ~PiecePipeline() override;

  const PiecePipelineModel& model() const { return model_; }
  index size() const override { return std::ssize(model_.names); }
  token id_of(std::string_view name) const override;
  const std::string& name(token id) const override {
    return model_.names[static_cast<std::size_t>(id)];
  }
  bool is_mark(token id) const override { return is_mark_[static_cast<std::size_t>(id)]; }
  bool is_unused(token id) const override { return name(id).empty(); }
  SpecialTokens special() const override {
    return {.begin = model_.begin, .end = model_.end, .unknown = model_.unknown};
  }
  LineSpace line_space() const override;

  void encode(std::vector<token>& ids, std::string_view text, Marks marks = Marks::kRead,
              TextPlace place = TextPlace::kBegin) const override;
  std::string decode(std::span<const token> ids) const override;
  void append_bytes(std::string& out, token id) const override;

 private:
  void add_names();
  void add_added();
  // A text between added tokens; `is_first`: it begins the text.
  void encode_plain(std::vector<token>& ids, std::string_view text, bool is_first,
                    Marks marks) const;
  void encode_cuts(std::vector<token>& ids, std::string_view text, bool is_first,
                   Marks marks) const;
  void encode_part(std::vector<token>& ids, std::string_view part, bool is_first,
                   Marks marks) const;

  const PiecePipelineModel model_;
  // What stands in decoded text: of an added token that rules have written, that.
  const std::string& decoded_name(token id) const;

  KeyedMap<std::string_view, token> ids_;
  std::unordered_map<token, std::string> written_names_;
  std::vector<bool> is_mark_;                    // of each token
  std::array<AddedTokens, 2> raw_, normalized_;  // by Marks
  std::unique_ptr<const PieceEncoder> encoder_;
};

}  // namespace fovea
