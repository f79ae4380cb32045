// SPDX-License-Identifier: Apache-2.0
#include "fovea/simd/isa.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/simd/simd-inl.h"

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

namespace fovea {

namespace {

struct IsaInfo {
  Isa isa;
  std::string_view name;
  std::int64_t targets;  // Highway's bits; both of its fallbacks count as scalar
};

constexpr std::array kIsas = {
    IsaInfo{Isa::kScalar, "scalar", HWY_SCALAR | HWY_EMU128},
    IsaInfo{Isa::kSsse3, "ssse3", HWY_SSSE3},
    IsaInfo{Isa::kSse4, "sse4", HWY_SSE4},
    IsaInfo{Isa::kAvx2, "avx2", HWY_AVX2},
    IsaInfo{Isa::kAvx512, "avx512", HWY_AVX3},
    IsaInfo{Isa::kAmx, "amx", HWY_AVX3},
};

constexpr int kUndecided = -1;
std::atomic<int> chosen{kUndecided};

bool is_available(const IsaInfo& info) {
  constexpr std::int64_t kFallback = HWY_SCALAR | HWY_EMU128;
  if (info.isa == Isa::kAmx && !detail::may_use_amx()) return false;
  return (info.targets & HWY_TARGETS & (hwy::SupportedTargets() | kFallback)) != 0;
}

std::string names_of_available() {
  std::string names;
  for (const IsaInfo& info : kIsas) {
    if (!is_available(info)) continue;
    if (!names.empty()) names += ", ";
    names += info.name;
  }
  return names;
}

void choose(const IsaInfo& info) {
  hwy::GetChosenTarget().Update(info.targets);
  chosen.store(static_cast<int>(info.isa), std::memory_order_release);
}

const IsaInfo& best() {
  const IsaInfo* result = &kIsas.front();
  for (const IsaInfo& info : kIsas) {
    if (is_available(info)) result = &info;
  }
  return *result;
}

const IsaInfo& find(std::string_view name) {
  for (const IsaInfo& info : kIsas) {
    if (info.name == name) return info;
  }
  throw Error(ErrorCode::kOptionValue,
              fmt::format("instruction set (FOVEA_ISA): {} is not known", printable(name)),
              "this machine has " + names_of_available());
}

}  // namespace

std::string_view isa_name(Isa isa) { return kIsas[static_cast<std::size_t>(isa)].name; }

Isa isa_from_name(std::string_view name) { return find(name).isa; }

std::vector<Isa> available_isas() {
  std::vector<Isa> result;
  for (const IsaInfo& info : kIsas) {
    if (is_available(info)) result.push_back(info.isa);
  }
  return result;
}

Isa current_isa() {
  const int now = chosen.load(std::memory_order_acquire);
  if (now != kUndecided) return static_cast<Isa>(now);
  // Two threads may decide here at once: both get the same result.
  const char* wanted = std::getenv("FOVEA_ISA");
  if (wanted == nullptr || *wanted == '\0') {
    choose(best());
  } else {
    pin_isa(find(wanted).isa);
  }
  return static_cast<Isa>(chosen.load(std::memory_order_acquire));
}

void pin_isa(Isa isa) {
  const IsaInfo& info = kIsas[static_cast<std::size_t>(isa)];
  if (!is_available(info)) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("instruction set (FOVEA_ISA): {} is not available on this machine", info.name),
        "it has " + names_of_available());
  }
  choose(info);
}

bool has_bfloat16_products() {
#if HWY_ARCH_X86
  static const bool has_fast_pairs =
      __builtin_cpu_supports("avx512bf16") != 0 && __builtin_cpu_is("amd") != 0;
  return has_tiles() || (has_fast_pairs && current_isa() == Isa::kAvx512);
#else
  return false;
#endif
}

bool has_tiles() { return current_isa() == Isa::kAmx; }

void unpin_isa() { choose(best()); }

}  // namespace fovea
