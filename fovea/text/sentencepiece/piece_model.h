// SPDX-License-Identifier: Apache-2.0
// The contents of a .model file of SentencePiece (Kudo, Richardson 2018, "SentencePiece: a simple
// and language independent subword tokenizer"; its sentencepiece_model.proto), read and checked.
//
// Protocol buffers, as far as SentencePiece's models need them (the wire format:
// https://protobuf.dev/programming-guides/encoding). Nothing that a length claims is believed
// before it has been compared with the bytes that are there.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// The numbers are those of the file.
enum class PieceType { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

/// Whether text is made of such pieces: normal, user-defined and unused ones.
constexpr bool is_text(PieceType type) {
  return type == PieceType::kNormal || type == PieceType::kUserDefined ||
         type == PieceType::kUnused;
}

struct ModelPiece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

/// How text is rewritten before it is cut.
struct NormalizerSettings {
  std::string charsmap = {};             ///< rules (CharsMap); empty: none
  bool add_dummy_prefix = true;          ///< a space before the text
  bool remove_extra_whitespaces = true;  ///< at both ends, and of several all but one
  bool escape_whitespaces = true;        ///< a space is written as U+2581
};

enum class PieceAlgorithm { kUnigram = 1, kBpe };

struct PieceModel {
  std::vector<ModelPiece> pieces = {};  ///< [V]: the place is the id
  PieceAlgorithm algorithm = PieceAlgorithm::kUnigram;
  NormalizerSettings normalizer = {};
  std::string denormalizer = {};  ///< rules for decoded text; empty: none
  bool byte_fallback = false;     ///< characters that no piece has are spelled in bytes
  bool space_is_suffix = false;   ///< the dummy space stands behind the text
  std::string unknown_surface = " \xE2\x81\x87 ";  ///< the text of an unknown piece
  token unknown = kNoToken;
  token begin = kNoToken, end = kNoToken, pad = kNoToken;  ///< if the vocabulary has them
};

/// The most bytes of a piece, and of what a rule replaces: those of 512 characters, which is the
/// longest piece that SentencePiece learns. A text is read that far ahead at each character.
inline constexpr std::size_t kLongestPiece = 2048;

/// Reads a file of that kind; `name` begins each error. Throws kModelDamaged for what is no such
/// file or contradicts itself: no pieces, pieces twice, empty, not UTF-8, with NUL, of more than
/// kLongestPiece bytes, as the unknown surface is; scores that are no numbers; no unknown piece, or
/// two; byte pieces without byte fallback, or fewer than 256 with it. Throws kModelWrongKind for
/// models of words or characters.
PieceModel read_piece_model(std::string_view file, std::string_view name);

/// Finds the unknown piece of a model that was made from elsewhere. Throws the same.
void check_piece_model(PieceModel& model, std::string_view name);

/// The bytes of such a file, 256 MiB at most. Throws kModelDamaged for a larger one, and as
/// read_file.
std::string piece_model_bytes(const std::string& file);

/// The byte of "<0x41>"; -1 for any other text.
int byte_of_piece(std::string_view text);

/// U+2581, which stands for a space.
inline constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";

}  // namespace fovea

namespace fovea::detail {

/// The fields of one message, one after another. A field of a type that was not expected, a length
/// beyond the end, an unfinished number: each throws kModelDamaged, with the byte in the file.
class ProtoReader {
 public:
  /// `name` begins each error; `offset` is where the message begins in the file.
  ProtoReader(std::string_view message, std::string name, std::size_t offset = 0)
      : rest_(message), name_(std::move(name)), offset_(offset) {}

  /// Goes to the next field, and skips the value of this one if nobody took it. False at the end.
  bool next();
  int field() const { return field_; }

  /// The value of the field, of one of these types. Each once.
  std::uint64_t number();
  bool flag() { return number() != 0; }
  float real();
  std::string_view bytes();
  /// A message within this one.
  ProtoReader message();

  [[noreturn]] void fail_here(std::string_view what) const;

 private:
  enum class Wire : int { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  std::uint64_t varint();
  std::string_view take(std::uint64_t bytes);
  void expect(Wire wire);
  void skip();

  std::string_view rest_;
  std::string name_;
  std::size_t offset_;  // of rest_ in the file
  int field_ = 0;
  Wire wire_ = Wire::kVarint;
  bool waiting_ = false;  // the value of the field has not been taken
};

}  // namespace fovea::detail

namespace fovea {

/// Finds all pieces that a text begins with, byte by byte.
class PieceTrie {
 public:
  PieceTrie() : PieceTrie(std::vector<std::pair<std::string_view, token>>{}) {}
  /// Pieces that are not empty, none twice, with their ids.
  explicit PieceTrie(std::vector<std::pair<std::string_view, token>> pieces);

  /// Calls f(length, id) for each piece at the front of the text, shortest first.
  template <class F>
  void visit_prefixes(std::string_view text, F&& f) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = child(node, text[i]);
      if (node == 0) return;
      if (nodes_[node].id != kNoToken) f(i + 1, nodes_[node].id);
    }
  }

  /// Where a text leads to from a node, of which 0 is the root; kNowhere if no piece goes on so.
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
  std::uint32_t walk(std::uint32_t node, std::string_view text) const {
    for (const char label : text) {
      if (node == kNowhere) break;
      const std::uint32_t next = child(node, label);
      node = next == 0 ? kNowhere : next;
    }
    return node;
  }
  /// The piece that ends at a node; kNoToken if none does, or at kNowhere.
  token id_at(std::uint32_t node) const { return node == kNowhere ? kNoToken : nodes_[node].id; }

  /// Bytes of the longest piece at the front of the text; 0: none.
  std::size_t longest_prefix(std::string_view text) const;

 private:
  struct Node {
    std::uint32_t first = 0;  // its children are nodes first, first + 1, ... by label
    std::uint32_t count = 0;
    token id = kNoToken;
  };

  // 0 (the root) if there is none.
  std::uint32_t child(std::uint32_t node, char label) const;

  std::vector<Node> nodes_;
  std::vector<unsigned char> labels_;          // [nodes]
  std::array<std::uint32_t, 256> roots_ = {};  // the children of the root
};

/// The trie of the pieces whose type `takes` says yes to.
PieceTrie trie_of(const PieceModel& model, bool (*takes)(PieceType));
/// The trie of these pieces written backward.
PieceTrie trie_of_reversed(const PieceModel& model, bool (*takes)(PieceType));

}  // namespace fovea
