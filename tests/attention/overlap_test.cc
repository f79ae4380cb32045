// SPDX-License-Identifier: Apache-2.0
// Views that share memory, against the set of bytes that each touches; and what a call says of
// them.
#include "fovea/attention/overlap.h"

#include <gmock/gmock.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "tests/attention/support/call.h"
#include "tests/attention/support/part_tensors.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

// Every byte that a view touches.
std::set<const char*> bytes_of(const detail::MemoryView& view) {
  std::set<const char*> bytes;
  const auto& [x, y, z] = view.axes;
  for (index a = 0; a < x.size; ++a) {
    for (index b = 0; b < y.size; ++b) {
      for (index c = 0; c < z.size; ++c) {
        const index place = a * x.stride + b * y.stride + c * z.stride;
        const char* const run = static_cast<const char*>(view.data) + place * view.value_bytes;
        for (index n = 0; n < view.width * view.value_bytes; ++n) bytes.insert(run + n);
      }
    }
  }
  return bytes;
}

bool share_bytes(const detail::MemoryView& a, const detail::MemoryView& b) {
  const std::set<const char*> first = bytes_of(a), second = bytes_of(b);
  return std::any_of(first.begin(), first.end(),
                     [&](const char* p) { return second.count(p) > 0; });
}

// Three axes, each stride at least what the axes before it span; in any order.
detail::MemoryView nested(Random& random, const char* memory) {
  detail::MemoryView view{"x", memory + 4 * random.below(40), 4, 1 + random.below(4), {}};
  index span = view.width;
  for (detail::MemoryAxis& axis : view.axes) {
    axis = {random.below(4), span + random.below(5)};
    span += std::max<index>(0, axis.size - 1) * axis.stride;
  }
  std::swap(view.axes[0], view.axes[static_cast<std::size_t>(random.below(3))]);
  return view;
}

// Two views of the same rows: other places, widths and sizes.
TEST(Overlap, SameStridesAreDecidedExactly) {
  const std::vector<char> memory(1 << 16);
  Random random(1, RandomUse::kTest);
  index shared = 0, apart = 0;
  for (int n = 0; n < 20000; ++n) {
    const detail::MemoryView a = nested(random, memory.data());
    detail::MemoryView b = a;
    b.data = memory.data() + 4 * random.below(40);
    index room = 1000;  // to the shortest stride: runs of one view do not meet each other
    for (detail::MemoryAxis& axis : b.axes) room = std::min(room, axis.stride);
    b.width = 1 + random.below(room);
    for (detail::MemoryAxis& axis : b.axes) axis.size = std::min(axis.size, 1 + random.below(4));
    const bool expected = share_bytes(a, b);
    ASSERT_EQ(detail::overlap(a, b), expected);
    ASSERT_EQ(detail::overlap(b, a), expected);
    ++(expected ? shared : apart);
  }
  EXPECT_GT(shared, 2000);
  EXPECT_GT(apart, 2000);
}

// Any two views: with sizes as small as these the search always ends.
TEST(Overlap, OtherStridesAreSearched) {
  const std::vector<char> memory(1 << 16);
  Random random(2, RandomUse::kTest);
  index shared = 0;
  for (int n = 0; n < 20000; ++n) {
    detail::MemoryView a = nested(random, memory.data()), b = nested(random, memory.data());
    a.value_bytes = 1 + random.below(8);
    if (random.below(3) == 0) b.axes[1].stride = 0;
    const bool expected = share_bytes(a, b);
    ASSERT_EQ(detail::overlap(a, b), expected);
    shared += expected ? 1 : 0;
  }
  EXPECT_GT(shared, 2000);
  EXPECT_LT(shared, 18000);
}

// Strides that interlock, with an answer that is far to find: what is said to overlap does.
TEST(Overlap, NoLegalCallIsRefused) {
  const std::vector<char> memory(1 << 16);
  Random random(3, RandomUse::kTest);
  for (int n = 0; n < 300; ++n) {
    const auto view = [&] {
      detail::MemoryView v{"x", memory.data() + random.below(500), 1, 1, {}};
      for (detail::MemoryAxis& axis : v.axes) axis = {1 + random.below(12), 16 * random.below(40)};
      return v;
    };
    const detail::MemoryView a = view(), b = view();
    if (detail::overlap(a, b)) {
      ASSERT_TRUE(share_bytes(a, b));
    }
  }
}

TEST(Overlap, SpansThatCannotBeCounted) {
  char memory[4] = {};
  const detail::MemoryView far{"q", memory, 4, 1, {{{2, index{1} << 61}, {1, 0}, {1, 0}}}};
  EXPECT_THROWS(detail::overlap(far, far), kShape, "q: ");
  const detail::MemoryView farther{"q", memory, 4, 1, {{{8, index{1} << 58}, {1, 0}, {1, 0}}}};
  EXPECT_THROWS(detail::overlap(farther, farther), kShape, "q spans more bytes than there are");
  // The stride of an axis of one is never used.
  const detail::MemoryView near{"q", memory, 4, 1, {{{1, index{1} << 61}, {1, 0}, {1, 0}}}};
  EXPECT_TRUE(detail::overlap(near, near));
}

constexpr Sizes kSizes{.B = 2, .T = 5, .S = 5, .H = 3, .G = 3, .D = 4, .Dv = 4};
constexpr index kRow = kSizes.H * kSizes.D;

// Columns of one projection, [B, T, 3, H, D]: from `column` on.
template <class V>
View<V> columns(V* data, index column) {
  const auto& [B, T, S, H, G, D, Dv] = kSizes;
  return {data + column * kRow, B, T, H, D, T * 3 * kRow, 3 * kRow, D};
}

TEST(Overlap, ColumnsOfOneProjectionAreApart) {
  Call<float> call(kSizes);
  std::vector<float> projection = normals<float>(1, 3 * kSizes.B * kSizes.T * kRow);
  std::vector<float> gradient(projection.size());
  const AttentionInputs<float> in{columns<const float>(projection.data(), 0),
                                  columns<const float>(projection.data(), 1),
                                  columns<const float>(projection.data(), 2)};
  const AttentionGradients<float> out{columns(gradient.data(), 0), columns(gradient.data(), 1),
                                      columns(gradient.data(), 2)};
  const Context ctx(1);
  EXPECT_NO_THROW(attention_forward<float>(ctx, {}, in, call.out()));
  EXPECT_NO_THROW(attention_backward<float>(ctx, {}, in, call.saved(), out));
  AttentionGradients<float> wrong = out;
  wrong.dk = columns(gradient.data(), 0);
  EXPECT_THROWS(attention_backward<float>(ctx, {}, in, call.saved(), wrong), kShape,
                "dk overlaps dq: what is written may share no memory with another tensor");
  wrong = out;
  wrong.dv.data -= 1;
  EXPECT_THROWS(attention_backward<float>(ctx, {}, in, call.saved(), wrong), kShape,
                "dv overlaps dk");
}

// lse in a column of its own behind the heads of o.
TEST(Overlap, LseMayLieBetweenRowsOfO) {
  Call<float> call(kSizes);
  const auto& [B, T, S, H, G, D, Dv] = kSizes;
  const index row = kRow + H;
  std::vector<float> both(static_cast<std::size_t>(B * T * row));
  AttentionOutputs<float> out = call.out();
  out.o = {both.data(), B, T, H, D, T * row, row, D};
  out.lse = {both.data() + kRow, B, H, T, T * row, 1, row};
  const Context ctx(1);
  EXPECT_NO_THROW(attention_forward<float>(ctx, {}, call.in(), out));
  out.lse.data -= 1;
  EXPECT_THROWS(attention_forward<float>(ctx, {}, call.in(), out), kShape, "lse overlaps o");
}

TEST(Overlap, EveryOutputIsLookedAt) {
  const Context ctx(1);
  Call<float> call(kSizes);
  call.want_weights();
  const auto forward = [&](AttentionOutputs<float> out, Observe<float> observe = {}) {
    const Attention<float> attention{.observe = std::move(observe)};
    attention_forward<float>(ctx, attention, call.in(), out);
    attention_reference_forward<float>(attention, call.in(), out);
  };
  EXPECT_NO_THROW(forward(call.out()));
  AttentionOutputs<float> out = call.out();
  out.o.data = call.v.data();
  EXPECT_THROWS(forward(out), kShape, "o overlaps v");
  out = call.out();
  out.lse_low.data = out.lse.data;
  EXPECT_THROWS(forward(out), kShape, "lse_low overlaps lse");
  out = call.out();
  out.weights.data = call.k.data();
  EXPECT_THROWS(forward(out), kShape, "weights overlaps k");
  std::vector<float> rows(call.lse.size());
  const auto of = [](std::vector<float>& x) {
    return RowView<float>::contiguous(x.data(), kSizes.B, kSizes.H, kSizes.T);
  };
  EXPECT_NO_THROW(forward(call.out(), observe::Entropy<float>(of(rows))));
  EXPECT_THROWS(forward(call.out(), observe::Entropy<float>(of(call.lse))), kShape,
                "entropy overlaps lse");
  EXPECT_THROWS(
      forward(call.out(), observe::Maximum<float>(of(rows)) + observe::ColumnMass<float>(of(rows))),
      kShape, "column_mass overlaps maximum");
}

TEST(Overlap, EveryGradientIsLookedAt) {
  const Context ctx(1);
  Call<float> call(kSizes);
  call.forward({});
  const auto backward = [&](const AttentionGradients<float>& gradients) {
    attention_backward<float>(ctx, {}, call.in(), call.saved(), gradients);
  };
  AttentionGradients<float> gradients = call.gradients();
  gradients.dq.data = call.d_o.data();
  EXPECT_THROWS(backward(gradients), kShape, "dq overlaps the gradient of o");
  gradients.dq.data = call.q.data();
  EXPECT_THROWS(backward(gradients), kShape, "dq overlaps q");
  gradients.dq.data = call.o.data();
  EXPECT_THROWS(backward(gradients), kShape, "dq overlaps o");
  gradients = call.gradients();
  gradients.dv.data = gradients.dk.data;
  EXPECT_THROWS(backward(gradients), kShape, "dv overlaps dk");
  gradients.dv = {};
  EXPECT_NO_THROW(backward(gradients));
}

// The tensors that parts read, against those that are written.
TEST(Overlap, EveryPartIsLookedAt) {
  Call<float> call(kSizes);
  std::vector<std::byte> memory(call.o.size() * sizeof(float));  // numbers of any type, all 0
  auto* const at = reinterpret_cast<float*>(memory.data());
  const auto* const ints = reinterpret_cast<const std::int32_t*>(memory.data());
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(memory.data());
  const auto* const samples = reinterpret_cast<const std::uint64_t*>(memory.data());
  const auto refused = [&](const Attention<float>& attention, const std::string& words) {
    AttentionOutputs<float> out = call.out();
    out.o.data = at;
    EXPECT_THROWS(attention_forward(Context(1), attention, call.in(), out), kShape, words);
    EXPECT_THROWS(attention_reference_forward(attention, call.in(), out), kShape, words);
  };
  const auto& [B, T, S, H, G, D, Dv] = kSizes;
  refused({.score = score::Concat<float>{{at, H, 2 * D}}}, "o overlaps w of concat");
  refused({.score = score::Additive<float>{{at, H, D}}}, "o overlaps v of additive");
  refused({.sink = {{at, H}}}, "o overlaps the sink");
  refused({.bias = bias::Alibi<float>({at, H})}, "o overlaps slopes");
  refused({.bias = bias::Dense<float>(ScoreView<const float>::contiguous(at, 1, 1, T, S))},
          "o overlaps the dense bias");
  refused({.bias = bias::T5<float>({at, 4, H})}, "o overlaps the table of t5");
  refused({.bias = bias::Shaw<float>({at, 3, D})}, "o overlaps the table of shaw");
  refused({.values = values::Shaw<float>({at, 3, Dv})}, "o overlaps the table of shaw on values");
  refused({.mask = mask::Keep(ScoreView<const std::uint8_t>::contiguous(bytes, 1, 1, T, S))},
          "o overlaps a dense mask");
  refused({.mask = mask::KeyLengths({ints, B})}, "o overlaps key_lengths");
  refused({.mask = mask::QueryLengths({ints, B})}, "o overlaps query_lengths");
  refused({.dropout = {.probability = 0.5, .samples = {samples, B}}}, "o overlaps dropout samples");
  const std::vector<std::int32_t> other(static_cast<std::size_t>(B * S));
  refused({.mask = mask::Segments({ints, B, T}, {other.data(), B, S})},
          "o overlaps query segments");
  refused({.mask = mask::Segments({other.data(), B, T}, {ints, B, S})}, "o overlaps key segments");
  refused({.mask = mask::NotPadding({ints, B, S}, 1)}, "o overlaps ids");
  refused({.mask = mask::HeadWindows({ints, H, 2})}, "o overlaps windows");
  refused({.bias = bias::LogNScale<float>(8, mask::HeadWindows({ints, H, 2}))},
          "o overlaps windows");
  std::array<float, 2> numbers = {1, 2}, gradient = {};
  const Bias<float> lambda = bias::of(bias::Learned<float, 2>{numbers, gradient},
                                      [](auto s, const auto& p) { return s * p[0] + p[1]; });
  OverlapCheck touched;
  lambda.parts()[0]->name_parameters(touched);
  lambda.parts()[0]->name_gradients(touched);
  EXPECT_THROWS(touched.write("lse", Vec<float>{numbers.data(), 2}), kShape,
                "lse overlaps a learned number");
  EXPECT_THROWS(touched.write("lse", Vec<float>{gradient.data(), 2}), kShape,
                "lse overlaps the gradient of a learned number");
  call = Call<float>({.T = 5, .S = 5, .D = 4, .Dv = 4});
  const std::int32_t offsets[] = {0, 5};
  std::memcpy(memory.data(), offsets, sizeof(offsets));
  refused({.packed = {{ints, 2}, offsets}}, "o overlaps query_offsets");
  refused({.packed = {offsets, {ints, 2}}}, "o overlaps key_offsets");
}

TEST(Overlap, EveryGradientOfAPartIsLookedAt) {
  Call<float> call(kSizes);
  call.forward({});
  const auto& [B, T, S, H, G, D, Dv] = kSizes;
  std::vector<float> parameters(100, 0.5f);
  float *const p = parameters.data(), *const dq = call.dq.data();
  const auto refused = [&](const Attention<float>& attention, const std::string& words) {
    EXPECT_THROWS(call.backward(attention), kShape, words);
    EXPECT_THROWS(call.backward(attention, Method::kReference), kShape, words);
  };
  const auto scores = [&](float* x) {
    return ScoreView<float>::contiguous(x, 1, 1, kSizes.T, kSizes.S);
  };
  refused({.score = score::Concat<float>{{p, H, 2 * D}, {dq, H, 2 * D}}},
          "the gradient of w of concat overlaps dq");
  refused({.score = score::Additive<float>{{p, H, D}, {dq, H, D}}},
          "the gradient of v of additive overlaps dq");
  refused({.sink = {{p, H}, {dq, H}}}, "the gradient of the sink overlaps dq");
  refused({.bias = bias::Alibi<float>({p, H}, {dq, H})}, "the gradient of slopes overlaps dq");
  refused({.bias = bias::Dense<float>(scores(p), scores(dq))}, "of the dense bias overlaps dq");
  refused({.bias = bias::Dense<float>(scores(p), scores(p))}, "overlaps the dense bias");
  refused({.bias = bias::T5<float>({p, 4, H}, {dq, 4, H})}, "the gradient of t5 overlaps dq");
  refused({.bias = bias::Shaw<float>({p, 3, D}, {dq, 3, D})}, "the gradient of shaw overlaps dq");
  refused({.values = values::Shaw<float>({p, 3, Dv}, {dq, 3, Dv})},
          "the gradient of shaw on values overlaps dq");
  refused({.bias = bias::Alibi<float>({p, H}, {p + 50, H}),
           .values = values::Shaw<float>({p, 3, Dv}, {p + 52, 3, Dv})},
          "the gradient of shaw on values overlaps the gradient of slopes");
}

// As above, for each bias of the table of parts.
TEST(Overlap, EveryBiasOfTheTableIsLookedAt) {
  const auto& [B, T, S, H, G, D, Dv] = kSizes;
  for (const std::size_t number : bias_rows()) {
    PartTensor<float> tensor = drawn_part<float>(number, {B, T, S, H, G, D, Dv});
    SCOPED_TRACE(tensor.part().tensor);
    Call<float> call(kSizes);
    call.forward({});
    tensor.x.resize(std::max(tensor.x.size(), call.o.size()));
    AttentionOutputs<float> out = call.out();
    out.o.data = tensor.x.data();
    const Bias<float> bias = bias_of(tensor);
    EXPECT_THROWS(attention_forward(Context(1), {.bias = bias}, call.in(), out), kShape,
                  "o overlaps ");
    EXPECT_THROWS(attention_reference_forward<float>({.bias = bias}, call.in(), out), kShape,
                  "o overlaps ");
    tensor.dx.resize(std::max(tensor.dx.size(), call.dq.size()));
    AttentionGradients<float> gradients = call.gradients();
    gradients.dq.data = tensor.dx.data();
    const Bias<float> learned = bias_of(tensor);
    EXPECT_THROWS(attention_backward<float>(Context(1), {.bias = learned}, call.in(), call.saved(),
                                            gradients),
                  kShape, " overlaps dq");
    EXPECT_THROWS(
        attention_reference_backward<float>({.bias = learned}, call.in(), call.saved(), gradients),
        kShape, " overlaps dq");
  }
}

// 6 i and 10 j + 1 never meet; not all of them are tried.
TEST(Overlap, TheSearchEnds) {
  constexpr index kMany = index{1} << 40;
  const float values[2] = {};
  const detail::MemoryView even{"a", values, sizeof(float), 1, {{{kMany, 6}, {1, 0}, {1, 0}}}};
  const detail::MemoryView odd{"b", values + 1, sizeof(float), 1, {{{kMany, 10}, {1, 0}, {1, 0}}}};
  EXPECT_FALSE(detail::overlap(even, odd));
  EXPECT_FALSE(detail::overlap(odd, even));
}

}  // namespace
}  // namespace fovea::testing
