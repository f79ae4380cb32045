// SPDX-License-Identifier: Apache-2.0
// Which instruction set the kernels run on: the best that the machine has, or the one pinned.
#pragma once

#include <string_view>
#include <vector>

namespace fovea {

/// From the plainest to the widest; the names are scalar, ssse3, sse4, avx2, avx512.
enum class Isa { kScalar, kSsse3, kSse4, kAvx2, kAvx512 };

std::string_view isa_name(Isa isa);

/// Throws Error(kOptionValue), which lists what the machine has, for an unknown name.
Isa isa_from_name(std::string_view name);

/// What this machine can run and this build contains, ascending; never empty.
std::vector<Isa> available_isas();

/// What every kernel runs on. Until pin_isa is called it is the one that the environment variable
/// FOVEA_ISA names, or else the best. Throws Error(kOptionValue) if FOVEA_ISA names none.
Isa current_isa();

/// From now on, in the whole process, kernels run on `isa`; results may differ in their last bits.
/// What was packed for another instruction set must be packed again. Not while a kernel runs.
/// Throws Error(kOptionValue), which lists what the machine has, unless `isa` is available.
void pin_isa(Isa isa);

/// Back to the best available, whatever FOVEA_ISA says.
void unpin_isa();

}  // namespace fovea
