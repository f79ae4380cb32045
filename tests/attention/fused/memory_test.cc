// SPDX-License-Identifier: Apache-2.0
// The memory of a call beyond its tensors is linear in the length, for every part that there is.
#include "fovea/base/memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <new>
#include <thread>
#include <vector>

#include "fovea/attention/fused/backward.h"
#include "fovea/attention/fused/forward.h"
#include "fovea/base/sanitizer.h"
#include "tests/attention/support/table.h"
#include "tests/isa.h"

namespace {

// Bytes that are allocated now, the most there were, and all that were ever asked for.
std::atomic<std::int64_t> live_bytes{0}, most_bytes{0}, all_bytes{0};

#if !defined(FOVEA_ADDRESS_SANITIZER) && !defined(FOVEA_THREAD_SANITIZER)
constexpr bool kCounted = true;
constexpr std::size_t kHeader = 64;  // keeps every alignment that we ask for

[[gnu::noinline]] void* counted(std::size_t size) {
  auto* memory =
      static_cast<std::byte*>(std::aligned_alloc(64, (size + 2 * kHeader - 1) / 64 * 64));
  if (memory == nullptr) return nullptr;
  *reinterpret_cast<std::size_t*>(memory) = size;
  all_bytes += static_cast<std::int64_t>(size);
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

struct Taken {
  double most = 0;  ///< bytes that were held at once
  double all = 0;   ///< bytes that were asked for
};

// By forward and backward, beyond their inputs and outputs. A thread of its own starts with no
// scratch.
template <class V>
Taken taken_by(Call<V>& call, const Attention<Wide<V>>& attention) {
  Taken taken;
  std::thread([&] {
    const std::int64_t live = live_bytes, all = all_bytes;
    most_bytes = live;
    call.run(attention);
    taken = {static_cast<double>(most_bytes - live), static_cast<double>(all_bytes - all)};
  }).join();
  return taken;
}

double peak_bytes(index T, const Mask& mask) {
  Call<float> call({.T = T, .S = T, .D = 8, .Dv = 8});
  return taken_by(call, {.mask = mask}).most;
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

template <class T>
Planned scratch_of(const Sizes& sizes, const Attention<float>& attention) {
  Call<T> call(sizes);
  return {taken_by(call, attention).most,
          attention_plan(Context(1), attention, call.in()).scratch_bytes};
}

// Memory is taken in blocks, each at least as large as those before: at most three times as much.
template <class T = float>
void expect_planned(const Sizes& sizes, const Attention<float>& attention) {
  const auto [counted, planned] = scratch_of<T>(sizes, attention);
  EXPECT_GE(counted, planned) << attention.mask.name() << " T=" << sizes.T;
  EXPECT_LE(counted, 3 * planned + 200e3) << attention.mask.name() << " T=" << sizes.T;
}

TEST(AttentionMemory, IsWhatThePlanSays) {
  if (!kCounted) GTEST_SKIP() << "the sanitizer allocates";
  std::vector<float> rows(8192);
  for_each_isa(
      [&] { expect_planned({.T = 1024, .S = 1024, .H = 4, .G = 2, .D = 64, .Dv = 64}, {}); });
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

TEST(AttentionMemory, OfBFloat16IsWhatThePlanSays) {
  if (!kCounted) GTEST_SKIP() << "the sanitizer allocates";
  const std::vector<float> slopes = {.1F, .2F};
  const Attention<float> plain, biased{.bias = bias::Alibi<float>({slopes.data(), 2})};
  for (const index D : {63, 64}) {
    for (const index T : {512, 4096, 16384}) {
      const Sizes sizes{.T = T / 8, .S = T, .H = 2, .G = 1, .D = D, .Dv = 40};
      expect_planned<BFloat16>(sizes, plain);
      expect_planned<BFloat16>(sizes, biased);
    }
  }
}

void reserve(double bytes) { Scratch().allocate<std::byte>(static_cast<index>(bytes)); }

// Whether so many bytes are enough for what `run` takes as scratch. A thread of its own, whose
// scratch is one block of them, would else take another block, which is at least as large.
bool is_enough(double bytes, const std::function<void()>& run) {
  bool enough = false;
  std::thread([&] {
    reserve(bytes);
    const std::int64_t live = live_bytes;
    most_bytes = live;
    run();
    enough = static_cast<double>(most_bytes - live) < bytes;
  }).join();
  return enough;
}

void expect_scratch(double planned, const std::function<void()>& run) {
  ASSERT_GT(planned, 65536);  // the smallest block
  EXPECT_TRUE(is_enough(1.03 * planned, run)) << planned;
  EXPECT_FALSE(is_enough(.95 * planned, run)) << planned;
}

// Both passes allocate what the plan counts, buffer by buffer.
template <class T>
void expect_each_planned(const Sizes& sizes, const Attention<float>& attention) {
  SCOPED_TRACE(fmt::format("{} bytes a value, T={} S={} D={}, bias {}, observe {}", sizeof(T),
                           sizes.T, sizes.S, sizes.D, attention.bias.name(),
                           attention.observe.name()));
  const Context ctx(1);
  Call<T> call(sizes);
  const detail::LoweredCall<T> lowered(ctx, attention, call.in());
  expect_scratch(detail::forward_scratch(ctx, lowered).caller, [&] { call.forward(attention); });
  expect_scratch(detail::backward_scratch(ctx, lowered).caller, [&] { call.backward(attention); });
}

// Rows that are made (here: turned) have no gaps, however those that were asked for lie.
TEST(AttentionMemory, OfMadeRowsIsWhatThePlanSays) {
  constexpr index T = 2048, D = 8;
  for (const index H : {1, 8}) {
    std::vector<float> rows(static_cast<std::size_t>(T * H * D));
    const View<const float> apart{rows.data(), 1, T, H, D, T * H * D, D, T * D};  // heads first
    const auto together = View<const float>::contiguous(rows.data(), 1, T, H, D);
    const Attention<float> attention{.rotary = {.pairs = RotaryPairs::kHalves}};
    for (const auto& [k, v] : {std::pair(apart, apart), {apart, together}, {together, apart}}) {
      const AttentionInputs<float> in{together, k, v};
      const Context ctx(1);
      const detail::LoweredCall<float> made(ctx, attention, in);
      const auto shape = detail::LoweredCall<float>::shape(attention, in);
      EXPECT_EQ(detail::forward_scratch(ctx, shape).caller,
                detail::forward_scratch(ctx, made).caller);
      EXPECT_EQ(detail::backward_scratch(ctx, shape).caller,
                detail::backward_scratch(ctx, made).caller);
    }
  }
}

TEST(AttentionMemory, OfEachPassIsWhatThePlanSays) {
  if (!kCounted) GTEST_SKIP() << "the sanitizer allocates";
  const std::vector<float> slopes = {.1F, .2F};
  std::vector<float> mass(2 * 6000);
  // With 60 queries, 6000 keys and an odd width, the pass over the columns takes most: it pairs 512
  // keys at once, the first pass 128.
  for (const index D : {64, 127}) {
    for (const index T : {60, 900}) {
      for (const index S : {512, 6000}) {
        const Sizes sizes{.T = T, .S = S, .H = 2, .G = 1, .D = D, .Dv = 64};
        const auto columns = RowView<float>::contiguous(mass.data(), 1, 2, S);
        for (const Attention<float>& attention : {
                 Attention<float>{},
                 Attention<float>{.bias = bias::Alibi<float>({slopes.data(), 2})},
                 Attention<float>{.observe = observe::ColumnMass<float>(columns)},
             }) {
          expect_each_planned<float>(sizes, attention);
          if (has_bfloat16_products()) expect_each_planned<BFloat16>(sizes, attention);
        }
      }
    }
  }
}

constexpr index kLength = 2048;

/// One call with any row of the tables: it says that it runs fused, and takes no byte for each
/// score, held or given back.
template <class V>
class Part {
 public:
  Part() : data_(1, kLength), parts_{.most = kLength, .width = sizes().D}, call_(sizes()) {}

  void expect_linear(const std::string& name, const Attention<V>& attention) {
    SCOPED_TRACE(name);
    EXPECT_EQ(attention_plan(Context(1), attention, call_.in()).kernel, kernel_of(attention));
    const Taken taken = taken_by(call_, attention);
    EXPECT_LT(taken.all, kLength * kLength);
    EXPECT_GT(taken.most, 0);
  }
  const TableData& data() const { return data_; }
  PartData<V>& parts() { return parts_; }
  index D() const { return call_.D; }

 private:
  // Without a norm, the sums of all keys change places.
  static std::string kernel_of(const Attention<V>& attention) {
    const bool none = std::holds_alternative<norm::None>(attention.norm);
    return std::string(none ? "linear " : "fused ") + (sizeof(V) == 4 ? "float32" : "float64");
  }
  static Sizes sizes() {
    return {.T = kLength, .S = kLength, .H = 2, .G = 1, .D = 6, .Dv = PartData<V>::kDv};
  }

  TableData data_;
  PartData<V> parts_;
  Call<V> call_;
};

template <class V>
class EveryPart : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kCounted) GTEST_SKIP() << "the sanitizer allocates";
  }
};
using Precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(EveryPart, Precisions);

TYPED_TEST(EveryPart, IsFusedInLinearMemory) {
  using V = TypeParam;
  Part<V> part;
  for (const MaskRow& row : mask_table()) {
    part.expect_linear(row.name, {.mask = row.make(part.data())});
  }
  for (const auto& row : bias_table<V>()) {
    part.expect_linear(row.name, {.bias = row.make(part.parts())});
  }
  for (const auto& row : value_table<V>()) {
    part.expect_linear(row.name, {.values = row.make(part.parts())});
  }
  for (const auto& row : norm_table<V>()) {
    Attention<V> attention;
    row.set(attention, part.parts());
    part.expect_linear(row.name, attention);
  }
  for (const auto& row : score_table<V>()) {
    Attention<V> attention;
    row.set(attention, part.parts(), part.D());
    part.expect_linear(row.name, attention);
  }
  part.expect_linear("dropout", {.dropout = {.probability = 0.3}});
}

/// The results of observers, which take the memory where there is a value for each score.
template <class V>
struct Seen {
  static constexpr index kTop = 8;
  std::vector<V> rows = std::vector<V>(2 * kLength), top = std::vector<V>(2 * kLength * kTop),
                 scores = std::vector<V>(2 * kLength * kLength);
  std::vector<std::int32_t> keys = std::vector<std::int32_t>(2 * kLength * kTop);
  std::vector<std::uint8_t> keep = std::vector<std::uint8_t>(2 * kLength * kLength);

  RowView<V> row_view() { return RowView<V>::contiguous(rows.data(), 1, 2, kLength); }
  template <class X>
  ScoreView<X> score_view(std::vector<X>& values, index begin, index columns) {
    return ScoreView<X>::contiguous(values.data(), 1, 2, kLength - begin, columns);
  }
  std::vector<Observe<V>> all() {
    return {observe::Entropy<V>(row_view()),
            observe::Maximum<V>(row_view()),
            observe::Distance<V>(row_view()),
            observe::TopK<V>(score_view(keys, 0, kTop), score_view(top, 0, kTop)),
            observe::SelectedRows<V>(7, kLength, score_view(scores, 7, kLength)),
            observe::ColumnMass<V>(row_view()),
            observe::DropoutKeep<V>(score_view(keep, 0, kLength))};
  }
};

TYPED_TEST(EveryPart, IsSeenInLinearMemory) {
  Part<TypeParam> part;
  Seen<TypeParam> seen;
  for (const Observe<TypeParam>& observe : seen.all()) {
    part.expect_linear(observe.name(), {.mask = mask::Causal(), .observe = observe});
  }
}

}  // namespace
}  // namespace fovea::testing
