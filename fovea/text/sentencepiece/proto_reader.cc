// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/sentencepiece/proto_reader.h"

#include <bit>

#include "fovea/base/check.h"

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
