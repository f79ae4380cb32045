// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/distinct_ids.h"

#include <algorithm>
#include <bit>

#include "fovea/base/memory.h"

namespace fovea {

// A hash table of places, by open addressing: it needs no room for the whole vocabulary.
DistinctIds distinct_ids(Tape& tape, Vec<const std::int32_t> ids) {
  constexpr std::int32_t kFree = -1;
  constexpr std::uint32_t kFactor = 2654435769;  // 2^32 / the golden ratio: spreads neighbours
  const auto N = static_cast<std::size_t>(ids.size);
  const std::size_t slots = std::bit_ceil(2 * N + 2);
  const int unused_bits = 32 - std::countr_zero(slots);
  Scratch scratch;
  auto* const place_in = scratch.allocate<std::int32_t>(static_cast<index>(slots));
  std::fill_n(place_in, slots, kFree);
  auto* const kept = tape.saved<std::int32_t>(ids.size);
  auto* const places = tape.saved<std::int32_t>(ids.size);
  std::int32_t count = 0;
  for (index n = 0; n < ids.size; ++n) {
    std::size_t slot = (static_cast<std::uint32_t>(ids[n]) * kFactor) >> unused_bits;
    while (place_in[slot] != kFree && kept[place_in[slot]] != ids[n]) {
      slot = (slot + 1) % slots;
    }
    if (place_in[slot] == kFree) {
      kept[count] = ids[n];
      place_in[slot] = count++;
    }
    places[n] = place_in[slot];
  }
  return {{kept, count}, {places, ids.size}};
}

}  // namespace fovea
