// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/sentencepiece/piece_model.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/machine.h"
#include "fovea/base/words.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

using detail::ProtoReader;

constexpr std::size_t kMostPieces = std::size_t{1} << 30;

// The names of the special pieces, unless the file gives others.
struct SpecialNames {
  std::string begin = "<s>", end = "</s>", pad = "<pad>";
};

ModelPiece read_piece(ProtoReader message) {
  ModelPiece piece;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        piece.text = message.bytes();
        break;
      case 2:
        piece.score = message.real();
        break;
      case 3: {
        const std::uint64_t type = message.number();
        if (type < 1 || type > 6) message.fail_here(fmt::format("a piece has type {}", type));
        piece.type = static_cast<PieceType>(type);
        break;
      }
      default:
        break;
    }
  }
  if (piece.text.empty()) message.fail_here("a piece is empty");
  return piece;
}

NormalizerSettings read_normalizer(ProtoReader message, NormalizerSettings settings) {
  while (message.next()) {
    switch (message.field()) {
      case 2:
        settings.charsmap = message.bytes();
        break;
      case 3:
        settings.add_dummy_prefix = message.flag();
        break;
      case 4:
        settings.remove_extra_whitespaces = message.flag();
        break;
      case 5:
        settings.escape_whitespaces = message.flag();
        break;
      default:
        break;
    }
  }
  return settings;
}

PieceAlgorithm algorithm_of(std::uint64_t type, std::string_view name) {
  if (type == 1 || type == 2) return static_cast<PieceAlgorithm>(type);
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: a SentencePiece model of type {}; expected unigram (1) or bpe (2)",
                          name, type),
              "train one: fovea tokenizer train --kind unigram");
}

void read_trainer(ProtoReader message, PieceModel& model, SpecialNames& names,
                  std::string_view name) {
  while (message.next()) {
    switch (message.field()) {
      case 3:
        model.algorithm = algorithm_of(message.number(), name);
        break;
      case 24:
        model.space_is_suffix = message.flag();
        break;
      case 35:
        model.byte_fallback = message.flag();
        break;
      case 44:
        model.unknown_surface = message.bytes();
        break;
      case 46:
        names.begin = message.bytes();
        break;
      case 47:
        names.end = message.bytes();
        break;
      case 48:
        names.pad = message.bytes();
        break;
      default:
        break;
    }
  }
}

class PieceChecks {
 public:
  PieceChecks(PieceModel& model, std::string_view name) : model_(model), name_(name) {
    model.unknown = kNoToken;
  }

  void run(const SpecialNames& names) {
    if (model_.pieces.empty()) fail("it has no pieces");
    index cuttable = 0;
    for (std::size_t id = 0; id < model_.pieces.size(); ++id) {
      check_text(model_.pieces[id]);
      place(model_.pieces[id], static_cast<token>(id), names);
      cuttable += is_text(model_.pieces[id].type) ? 1 : 0;
    }
    if (model_.unknown == kNoToken) fail("it has no unknown piece");
    if (cuttable == 0) fail("it has no pieces of text");
    if (model_.byte_fallback && !bytes_.all()) {
      fail(fmt::format("it says that it falls back to bytes, but has {} of 256", bytes_.count()));
    }
    check_surface();
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorCode::kModelDamaged, fmt::format("{}: {}", name_, what),
                "name a .model file that SentencePiece or fovea tokenizer train has written");
  }

  void require_length(std::string_view what, std::string_view text) const {
    if (text.size() <= kLongestPiece) return;
    fail(fmt::format("{} {} has {} bytes; at most {} are read", what, printable(text), text.size(),
                     kLongestPiece));
  }

  void check_text(const ModelPiece& piece) const {
    const std::string_view text = piece.text;
    if (text.empty()) fail("a piece is empty");
    require_length("the piece", text);
    if (text.find('\0') != text.npos || find_invalid_utf8(text)) {
      fail(fmt::format("the piece {} is no text", printable(text)));
    }
    if (!std::isfinite(piece.score)) {
      fail(fmt::format("the piece {} has the score {}", printable(text), piece.score));
    }
  }

  void place(const ModelPiece& piece, token id, const SpecialNames& names) {
    auto& known = is_text(piece.type) ? texts_ : marks_;
    if (!known.insert(piece.text).second) {
      fail(fmt::format("the piece {} is there twice", printable(piece.text)));
    }
    if (piece.type == PieceType::kUnknown) {
      if (model_.unknown != kNoToken) fail("it has two unknown pieces");
      model_.unknown = id;
    } else if (piece.type == PieceType::kControl) {
      if (piece.text == names.begin) model_.begin = id;
      if (piece.text == names.end) model_.end = id;
      if (piece.text == names.pad) model_.pad = id;
    } else if (piece.type == PieceType::kByte) {
      const int byte = byte_of_piece(piece.text);
      if (byte < 0 || !model_.byte_fallback) {
        fail(fmt::format("the piece {} is no byte, or bytes are not used", printable(piece.text)));
      }
      bytes_.set(static_cast<std::size_t>(byte));
    }
  }

  void check_surface() const {
    require_length("the unknown surface", model_.unknown_surface);
    if (find_invalid_utf8(model_.unknown_surface)) fail("the unknown surface is not UTF-8");
  }

  PieceModel& model_;
  const std::string_view name_;
  KeyedSet<std::string_view> texts_, marks_;
  std::bitset<256> bytes_;
};

}  // namespace

PieceModel read_piece_model(std::string_view file, std::string_view name) {
  PieceModel model;
  SpecialNames names;
  ProtoReader reader(file, std::string(name));
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        if (model.pieces.size() == kMostPieces) reader.fail_here("more than 2^30 pieces");
        model.pieces.push_back(read_piece(reader.message()));
        break;
      case 2:
        read_trainer(reader.message(), model, names, name);
        break;
      case 3:
        model.normalizer = read_normalizer(reader.message(), std::move(model.normalizer));
        break;
      case 5:
        model.denormalizer = read_normalizer(reader.message(), {}).charsmap;
        break;
      default:
        break;
    }
  }
  PieceChecks(model, name).run(names);
  return model;
}

void check_piece_model(PieceModel& model, std::string_view name) {
  PieceChecks(model, name).run({});
}

int byte_of_piece(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return -1;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && !(c >= 'A' && c <= 'F')) return -1;
    value = 16 * value + (digit ? c - '0' : c - 'A' + 10);
  }
  return value;
}

std::string piece_model_bytes(const std::string& file) {
  constexpr std::uintmax_t kLargest = std::uintmax_t{256} << 20;
  std::error_code ignored;
  const std::uintmax_t size = std::filesystem::file_size(file, ignored);
  if (!ignored && size > kLargest) {
    throw Error(ErrorCode::kModelDamaged,
                fmt::format("{} has {}; a model of subwords has at most {}", file, size_text(size),
                            size_text(kLargest)),
                "name a .model file");
  }
  return read_file(file);
}

}  // namespace fovea

namespace fovea::detail {

bool ProtoReader::next() {
  if (waiting_) skip();
  if (rest_.empty()) return false;
  const std::uint64_t tag = varint();
  const std::uint64_t field = tag >> 3, wire = tag & 7;
  if (field == 0 || field > 0x1FFFFFFF) fail_here(fmt::format("field number {}", field));
  if (wire == 3 || wire == 4 || wire > 5) fail_here(fmt::format("type {} of a field", wire));
  field_ = static_cast<int>(field);
  wire_ = static_cast<Wire>(wire);
  waiting_ = true;
  return true;
}

std::uint64_t ProtoReader::number() {
  expect(Wire::kVarint);
  return varint();
}

float ProtoReader::real() {
  expect(Wire::kFixed32);
  std::uint32_t bits = 0;
  int shift = 0;
  for (const char byte : take(4)) {
    bits |= static_cast<std::uint32_t>(static_cast<unsigned char>(byte)) << shift;
    shift += 8;
  }
  return std::bit_cast<float>(bits);
}

std::string_view ProtoReader::bytes() {
  expect(Wire::kBytes);
  return take(varint());
}

ProtoReader ProtoReader::message() {
  const std::string_view inner = bytes();
  return ProtoReader(inner, name_, offset_ - inner.size());
}

void ProtoReader::fail_here(std::string_view what) const {
  throw Error(ErrorCode::kModelDamaged, fmt::format("{}: byte {}: {}", name_, offset_, what),
              "name a .model file that SentencePiece or fovea tokenizer train has written");
}

std::uint64_t ProtoReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) fail_here("the file ends inside a number");
    const auto byte = static_cast<unsigned char>(take(1).front());
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail_here("a number has more than 10 bytes");
}

std::string_view ProtoReader::take(std::uint64_t bytes) {
  if (bytes > rest_.size()) {
    fail_here(fmt::format("{} bytes are announced, {} are left", bytes, rest_.size()));
  }
  const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(bytes));
  rest_.remove_prefix(taken.size());
  offset_ += taken.size();
  return taken;
}

void ProtoReader::expect(Wire wire) {
  if (wire_ != wire || !waiting_) {
    fail_here(fmt::format("field {} has type {}, expected {}", field_, static_cast<int>(wire_),
                          static_cast<int>(wire)));
  }
  waiting_ = false;
}

void ProtoReader::skip() {
  waiting_ = false;
  switch (wire_) {
    case Wire::kVarint:
      varint();
      return;
    case Wire::kFixed64:
      take(8);
      return;
    case Wire::kFixed32:
      take(4);
      return;
    case Wire::kBytes:
      take(varint());
      return;
  }
}

}  // namespace fovea::detail

namespace fovea {

namespace {

// The sorted pieces [begin, end) begin with the `depth` bytes that lead to the node.
struct Range {
  std::uint32_t node;
  std::size_t begin, end, depth;
};

}  // namespace

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, token>> pieces) {
  std::sort(pieces.begin(), pieces.end());
  double bytes = 0;
  for (const auto& [text, id] : pieces) bytes += static_cast<double>(text.size());
  // Vectors double; pieces without a common beginning have a node for each byte.
  require_memory("the pieces", 2 * bytes * (sizeof(Node) + 1),
                 "take a model with fewer or shorter pieces");
  nodes_.emplace_back();
  labels_.push_back(0);
  std::deque<Range> open{{0, 0, pieces.size(), 0}};
  for (; !open.empty(); open.pop_front()) {  // breadth first
    Range range = open.front();
    if (range.depth > 0 && pieces[range.begin].first.size() == range.depth) {
      nodes_[range.node].id = pieces[range.begin++].second;
    }
    nodes_[range.node].first = static_cast<std::uint32_t>(nodes_.size());
    while (range.begin < range.end) {
      const char label = pieces[range.begin].first[range.depth];
      std::size_t end = range.begin + 1;
      while (end < range.end && pieces[end].first[range.depth] == label) ++end;
      open.push_back(
          {static_cast<std::uint32_t>(nodes_.size()), range.begin, end, range.depth + 1});
      nodes_.emplace_back();
      labels_.push_back(static_cast<unsigned char>(label));
      ++nodes_[range.node].count;
      range.begin = end;
    }
  }
  for (std::uint32_t i = 0; i < nodes_[0].count; ++i) roots_[labels_[1 + i]] = 1 + i;
}

PieceTrie trie_of(const PieceModel& model, bool (*takes)(PieceType)) {
  std::vector<std::pair<std::string_view, token>> pieces;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const ModelPiece& piece = model.pieces[id];
    if (takes(piece.type)) pieces.emplace_back(piece.text, static_cast<token>(id));
  }
  return PieceTrie(std::move(pieces));
}

PieceTrie trie_of_reversed(const PieceModel& model, bool (*takes)(PieceType)) {
  std::vector<std::string> reversed;
  std::vector<std::pair<std::string_view, token>> pieces;
  reversed.reserve(model.pieces.size());  // its texts are viewed
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const ModelPiece& piece = model.pieces[id];
    if (!takes(piece.type)) continue;
    reversed.emplace_back(piece.text.rbegin(), piece.text.rend());
    pieces.emplace_back(reversed.back(), static_cast<token>(id));
  }
  return PieceTrie(std::move(pieces));
}

std::uint32_t PieceTrie::child(std::uint32_t node, char label) const {
  const auto wanted = static_cast<unsigned char>(label);
  if (node == 0) return roots_[wanted];
  const Node& at = nodes_[node];
  const unsigned char* const begin = labels_.data() + at.first;
  const unsigned char* const end = begin + at.count;
  constexpr std::uint32_t kFew = 8;  // no slower one by one
  const unsigned char* const found =
      at.count <= kFew ? std::find(begin, end, wanted) : std::lower_bound(begin, end, wanted);
  return found == end || *found != wanted ? 0
                                          : at.first + static_cast<std::uint32_t>(found - begin);
}

std::size_t PieceTrie::longest_prefix(std::string_view text) const {
  std::size_t longest = 0;
  visit_prefixes(text, [&](std::size_t length, token) { longest = length; });
  return longest;
}

}  // namespace fovea
