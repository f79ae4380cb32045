// SPDX-License-Identifier: Apache-2.0
// The different tokens of a batch, of which texts repeat many.
#pragma once

#include <cstdint>

#include "fovea/grad/tape.h"

namespace fovea {

/// ids[n] is kept[places[n]]; `kept` has each number once, in the order in which they first occur.
/// Both live as long as the tape.
struct DistinctIds {
  Vec<const std::int32_t> kept, places;
};

DistinctIds distinct_ids(Tape& tape, Vec<const std::int32_t> ids);

}  // namespace fovea
