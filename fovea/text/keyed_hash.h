// SPDX-License-Identifier: Apache-2.0
// Hash tables whose keys come from a file: nobody can choose keys that meet in one place.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace fovea {

/// XXH3 of the bytes under a secret that each process draws anew. With a known hash, a vocabulary
/// could be chosen whose words all have the same one, and a table of it would be as slow as a list.
/// The order of such a table differs from run to run: no result may depend on it.
std::uint64_t keyed_hash(std::string_view bytes);

/// Also finds a std::string by a view of it, without a copy.
struct KeyedHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view key) const { return keyed_hash(key); }
  std::size_t operator()(std::u32string_view key) const {
    return keyed_hash({reinterpret_cast<const char*>(key.data()), key.size() * sizeof(char32_t)});
  }
};

template <class Key, class Value>
using KeyedMap = std::unordered_map<Key, Value, KeyedHash, std::equal_to<>>;
template <class Key>
using KeyedSet = std::unordered_set<Key, KeyedHash, std::equal_to<>>;

}  // namespace fovea
