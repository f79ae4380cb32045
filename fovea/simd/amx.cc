// SPDX-License-Identifier: Apache-2.0
#include "fovea/simd/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace fovea::detail {

namespace {

#if defined(__x86_64__) && defined(__linux__)

bool has_pairs() { return __builtin_cpu_supports("avx512bf16") != 0; }

#ifdef FOVEA_EMULATE_AMX
bool find_amx() { return has_pairs(); }
#else
bool processor_has_amx() {
  constexpr unsigned kBFloat16 = 1u << 22, kTiles = 1u << 24;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & kBFloat16) != 0 && (edx & kTiles) != 0;
}

// The numbers are those of Linux's asm/prctl.h, which has them since 5.16. The kernel refuses where
// it knows nothing of AMX.
bool kernel_permits() {
  constexpr long kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

bool find_amx() { return has_pairs() && processor_has_amx() && kernel_permits(); }
#endif

#else
bool find_amx() { return false; }
#endif

}  // namespace

bool may_use_amx() {
  static const bool result = find_amx();
  return result;
}

}  // namespace fovea::detail
