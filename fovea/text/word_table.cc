// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/word_table.h"

#include <bit>
#include <cstring>

#include "fovea/base/check.h"
#include "fovea/text/keyed_hash.h"

namespace fovea {

namespace {

template <class T>
std::uint64_t load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// The first eight bytes of a word. No two words of the same length up to eight have the same.
std::uint64_t start_of(std::string_view word) {
  const char* const bytes = word.data();
  const std::size_t size = word.size();
  if (size >= 8) return load<std::uint64_t>(bytes);
  if (size >= 4) return load<std::uint32_t>(bytes) | load<std::uint32_t>(bytes + size - 4) << 32;
  if (size >= 2) return load<std::uint16_t>(bytes) | load<std::uint16_t>(bytes + size - 2) << 16;
  return size == 0 ? 0 : load<std::uint8_t>(bytes);
}

}  // namespace

// Half of the slots stay empty, so that a word that is not there is soon known.
WordTable::WordTable(std::size_t words) : slots_(std::bit_ceil(2 * words + 1)) {}

std::size_t WordTable::place_of(std::string_view word, std::uint64_t start) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t place = keyed_hash(word) & mask;; place = (place + 1) & mask) {
    const Slot& slot = slots_[place];
    if (slot.word.empty()) return place;
    if (slot.start != start || slot.word.size() != word.size()) continue;
    if (word.size() <= 8 || slot.word == word) return place;
  }
}

bool WordTable::add(std::string_view word, token id) {
  if (word.empty() || 2 * used_ >= slots_.size()) {
    fail(ErrorCode::kInternal, "table of words: an empty word, or more than there is room for");
  }
  const std::uint64_t start = start_of(word);
  Slot& slot = slots_[place_of(word, start)];
  if (!slot.word.empty()) return false;
  slot = {start, word, id};
  ++used_;
  return true;
}

token WordTable::find(std::string_view word) const {
  return slots_[place_of(word, start_of(word))].id;
}

}  // namespace fovea
