// SPDX-License-Identifier: Apache-2.0
// The instruction set of the kernels: the best one of the machine, or the one that was pinned.
#pragma once

#include <string_view>
#include <vector>

namespace fovea {

/// In ascending order of vector width and features; the names are scalar, ssse3, sse4, avx2,
/// avx512, amx. amx is avx512 with products of bfloat16 on tile registers.
enum class Isa { kScalar, kSsse3, kSse4, kAvx2, kAvx512, kAmx };

std::string_view isa_name(Isa isa);

/// Throws Error(kOptionValue), which lists what the machine has, for an unknown name.
Isa isa_from_name(std::string_view name);

/// The instruction sets that this machine can run and this build contains, ascending; never empty.
std::vector<Isa> available_isas();

/// The instruction set on which kernels run. Until pin_isa is called it is the one named in the
/// environment variable FOVEA_ISA, or else the best. Throws Error(kOptionValue) if FOVEA_ISA names
/// none.
Isa current_isa();

/// From now on, kernels of the whole process run on `isa`; results may differ in their last bits. A
/// matrix that was packed for another instruction set must be packed again. Do not call it while a
/// kernel runs. Throws Error(kOptionValue), which lists what the machine has, unless `isa` is
/// available.
void pin_isa(Isa isa);

/// Whether kernels compute products of bfloat16 as such (simd/pairs-inl.h): on amx, and on avx512
/// where vdpbf16ps is faster than float32. It is on AMD's processors; on Intel's it takes twice as
/// long for as many multiplications.
bool has_bfloat16_products();

/// Whether these products run on tile registers (simd/amx-inl.h): on amx.
bool has_tiles();

/// Goes back to the best available instruction set; ignores FOVEA_ISA.
void unpin_isa();

}  // namespace fovea

namespace fovea::detail {

/// Whether the processor has AMX with bfloat16, AVX-512 with vdpbf16ps beside it, and the operating
/// system lets this process use it: Linux wants to be asked, once, which the first call does.
bool may_use_amx();

}  // namespace fovea::detail
