// SPDX-License-Identifier: Apache-2.0
// Protocol buffers, as far as SentencePiece's models need them (the wire format:
// https://protobuf.dev/programming-guides/encoding). Nothing that a length claims is believed
// before it has been compared with the bytes that are there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fovea/base/types.h"

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
