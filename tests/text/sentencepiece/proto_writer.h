// SPDX-License-Identifier: Apache-2.0
// Writes models as SentencePiece does, whether they make sense or not.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/sentencepiece/piece_model.h"

namespace fovea {

class ProtoWriter {
 public:
  ProtoWriter& number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  ProtoWriter& bytes(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    out_ += value;
    return *this;
  }
  ProtoWriter& real(int field, float value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 5);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) out_ += static_cast<char>(bits >> shift);
    return *this;
  }
  ProtoWriter& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
    return *this;
  }
  const std::string& text() const { return out_; }

 private:
  std::string out_;
};

inline std::string piece_bytes(std::string_view text, float score, PieceType type) {
  return ProtoWriter()
      .bytes(1, text)
      .real(2, score)
      .number(3, static_cast<std::uint64_t>(type))
      .text();
}

/// The file of a model without rules.
inline std::string model_bytes(const std::vector<ModelPiece>& pieces, PieceAlgorithm algorithm,
                               const std::string& more = "") {
  ProtoWriter file;
  for (const ModelPiece& piece : pieces) {
    file.bytes(1, piece_bytes(piece.text, piece.score, piece.type));
  }
  file.bytes(2, ProtoWriter().number(3, static_cast<std::uint64_t>(algorithm)).text());
  return file.text() + more;
}

/// With <unk> as id 0 before these.
inline std::string model_of(std::vector<ModelPiece> pieces, PieceAlgorithm algorithm,
                            const std::string& more = "") {
  pieces.insert(pieces.begin(), {"<unk>", 0, PieceType::kUnknown});
  return model_bytes(pieces, algorithm, more);
}

/// NormalizerSpec: no dummy space, spaces stay, and are not escaped.
inline std::string plain_spaces(std::string_view charsmap = "") {
  return ProtoWriter()
      .bytes(3, ProtoWriter().bytes(2, charsmap).number(3, 0).number(4, 0).number(5, 0).text())
      .text();
}

}  // namespace fovea
