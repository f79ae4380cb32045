// SPDX-License-Identifier: Apache-2.0
// How the backward is cut, what it costs in memory, and many callers at once.
#include "fovea/attention/backward_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <thread>

#include "fovea/base/sanitizer.h"
#include "tests/attention/call.h"
#include "tests/isa.h"

namespace {

// Bytes that are allocated now, and the most there were.
std::atomic<std::int64_t> live_bytes{0}, most_bytes{0};

#if !defined(FOVEA_ADDRESS_SANITIZER) && !defined(FOVEA_THREAD_SANITIZER)
constexpr bool kCounted = true;
constexpr std::size_t kHeader = 64;  // keeps every alignment that we ask for

[[gnu::noinline]] void* counted(std::size_t size) {
  auto* memory =
      static_cast<std::byte*>(std::aligned_alloc(64, (size + 2 * kHeader - 1) / 64 * 64));
  if (memory == nullptr) return nullptr;
  *reinterpret_cast<std::size_t*>(memory) = size;
  const std::int64_t now = live_bytes += static_cast<std::int64_t>(size);
  std::int64_t most = most_bytes;
  while (most < now && !most_bytes.compare_exchange_weak(most, now)) {
  }
  return memory + kHeader;
}

[[gnu::noinline]] void uncounted(void* memory) {
  if (memory == nullptr) return;
  std::byte* start = static_cast<std::byte*>(memory) - kHeader;
  live_bytes -= static_cast<std::int64_t>(*reinterpret_cast<std::size_t*>(start));
  std::free(start);
}
#else
constexpr bool kCounted = false;  // the sanitizer's own allocator stays
#endif

}  // namespace

#if !defined(FOVEA_ADDRESS_SANITIZER) && !defined(FOVEA_THREAD_SANITIZER)
void* operator new(std::size_t size) {
  void* memory = counted(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t size, std::align_val_t) { return ::operator new(size); }
void* operator new(std::size_t size, std::align_val_t, const std::nothrow_t&) noexcept {
  return counted(size);
}
void operator delete(void* memory) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t) noexcept { uncounted(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { uncounted(memory); }
#endif

namespace fovea::testing {
namespace {

#ifdef FOVEA_FEW_PROBLEMS
constexpr index kLongest = 4096;
#else
constexpr index kLongest = 32768;
#endif

// The most bytes that forward and backward held, beyond their inputs and outputs. A thread of its
// own starts with no scratch.
double peak_bytes(index T, const Mask& mask) {
  Call<float> call({.T = T, .S = T, .D = 8, .Dv = 8});
  std::int64_t peak = 0;
  std::thread([&] {
    const std::int64_t before = live_bytes;
    most_bytes = before;
    call.run({.mask = mask});
    peak = most_bytes - before;
  }).join();
  return static_cast<double>(peak);
}

// Nothing of size T x S: the slope of log(bytes) over log(T), fitted.
void expect_linear(const Mask& mask) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (index T = 1024; T <= kLongest; T *= 2) {
    const double a = std::log(static_cast<double>(T)), b = std::log(peak_bytes(T, mask));
    n += 1;
    x += a;
    y += b;
    xx += a * a;
    xy += a * b;
  }
  EXPECT_LE((n * xy - x * y) / (n * xx - x * x), 1.1) << mask.name();
}

TEST(AttentionMemory, IsLinearInTheLength) {
  if (!kCounted) GTEST_SKIP() << "the sanitizer allocates";
  expect_linear(mask::Window(64, 0));
  expect_linear(mask::Causal());
  const auto scores = 4.0 * 8192 * 8192;
  EXPECT_LT(peak_bytes(8192, mask::Causal()), scores / 50);
}

struct Planned {
  double counted, planned;
};

Planned scratch_of(const Sizes& sizes, const Attention<float>& attention) {
  Call<float> call(sizes);
  std::int64_t peak = 0;
  std::thread([&] {
    const std::int64_t before = live_bytes;
    most_bytes = before;
    call.run(attention);
    peak = most_bytes - before;
  }).join();
  return {static_cast<double>(peak),
          attention_plan(Context(1), attention, call.in()).scratch_bytes};
}

// Memory is taken in blocks, each at least as large as those before: at most three times as much.
TEST(AttentionMemory, IsWhatThePlanSays) {
  if (!kCounted) GTEST_SKIP() << "the sanitizer allocates";
  const auto expect_planned = [](const Sizes& sizes, const Attention<float>& attention) {
    const auto [counted, planned] = scratch_of(sizes, attention);
    EXPECT_GE(counted, planned) << attention.mask.name() << " T=" << sizes.T;
    EXPECT_LE(counted, 3 * planned + 200e3) << attention.mask.name() << " T=" << sizes.T;
  };
  std::vector<float> rows(8192);
  for (const index T : {1024, 8192}) {
    const Sizes heads{.T = T, .S = T, .H = 4, .G = 2, .D = 64, .Dv = 64};
    const Sizes alone{.T = T, .S = T, .H = 1, .G = 1, .D = 32, .Dv = 16};
    for (const Mask& mask : {Mask(mask::Window(64, 0)), Mask(mask::Window(500, 500))}) {
      expect_planned(heads, {.mask = mask});
      expect_planned(alone, {.mask = mask});
      const auto view = RowView<float>::contiguous(rows.data(), 1, 1, T);
      expect_planned(alone, {.mask = mask, .observe = observe::Entropy<float>(view)});
    }
  }
  expect_planned({.T = 20000, .S = 20000, .D = 8, .Dv = 8}, {.mask = mask::Window(64, 0)});
  expect_planned({.T = 1024, .S = 1024, .H = 2, .G = 1, .D = 64, .Dv = 64}, {});
  expect_planned({.T = 16000, .S = 256, .D = 64, .Dv = 64}, {});
}

// Chunks depend on the length alone.
TEST(BackwardWork, ChunksAreWholeTiles) {
  for (index keys = 1; keys < 5000; keys += 77) {
    EXPECT_EQ(key_chunk(keys) % kLaneTile, 0);
    EXPECT_GE(key_chunk(keys), key_chunk(1));
  }
}

// In the order of a product, to the bit: a row with one weight of 1 has a gradient of exactly 0.
template <class T>
void expect_dots_in_order(index rows, index columns, index stride) {
  const auto a = normals<T>(1, rows * stride), b = normals<T>(2, rows * stride);
  std::vector<T> dots(static_cast<std::size_t>(rows));
  backward_kernels<T>().row_dots({a.data(), rows, columns, stride},
                                 {b.data(), rows, columns, stride}, dots.data());
  const bool fuses = current_isa() >= Isa::kAvx2;
  for (index r = 0; r < rows; ++r) {
    T sum = 0;
    for (index c = 0; c < columns; ++c) {
      const T x = a[static_cast<std::size_t>(r * stride + c)];
      const T y = b[static_cast<std::size_t>(r * stride + c)];
      const T product = x * y;
      sum = fuses ? std::fma(x, y, sum) : sum + product;
    }
    ASSERT_EQ(dots[static_cast<std::size_t>(r)], sum) << rows << " x " << columns << ", row " << r;
  }
}
TEST(BackwardWork, RowDotsAreSummedInOrder) {
  for_each_isa([] {
    for (const index columns : {1, 3, 16, 17, 64, 65}) {
      for (const index rows : {1, 16, 19, 40}) {
        expect_dots_in_order<float>(rows, columns, columns + 3);
        expect_dots_in_order<double>(rows, columns, columns);
      }
    }
  });
}

// Any number of threads may call at once: each sees what it would see alone.
TEST(AttentionCallers, DoNotSeeEachOther) {
  const Sizes sizes{.B = 2, .T = 70, .S = 300, .H = 2, .G = 1, .D = 16, .Dv = 8};
  const Attention<float> attention{.mask = mask::Causal(), .dropout = {.probability = 0.1}};
  Call<float> alone(sizes);
  alone.run(attention);
  std::vector<Call<float>> calls(4, Call<float>(sizes));
  std::vector<std::thread> callers;
  for (Call<float>& call : calls) {
    callers.emplace_back([&] {
      for (int n = 0; n < 3; ++n) call.run(attention, Method::kFused, 3);
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const Call<float>& call : calls) EXPECT_TRUE(same_results(alone, call));
}

}  // namespace
}  // namespace fovea::testing
