// SPDX-License-Identifier: Apache-2.0
// Calls that are refused: every error names the tensor, the axis and both sizes.
#include "fovea/attention/checks.h"

#include <gmock/gmock.h>

#include <array>
#include <functional>

#include "tests/attention/support/call.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

using Floats = AttentionInputs<float>;

// A call of B=2, T=3, S=5, H=4, G=2, D=6, Dv=7 with one thing wrong.
class Wrong {
 public:
  Wrong() : call({.B = 2, .T = 3, .S = 5, .H = 4, .G = 2, .D = 6, .Dv = 7}) {
    in = call.in();
    out = call.out();
    saved = call.saved();
    gradients = call.gradients();
  }
  void forward() { attention_forward(Context(1), attention, in, out); }
  void backward() { attention_backward(Context(1), attention, in, saved, gradients); }
  void reference() { attention_reference_forward(attention, in, out); }

  Call<float> call;
  Attention<float> attention;
  Floats in;
  AttentionOutputs<float> out;
  AttentionSaved<float> saved;
  AttentionGradients<float> gradients;
};

using Change = std::function<void(Wrong&)>;

void expect_shape_error(const Change& change, const std::string& words) {
  Wrong forward, backward, reference;
  change(forward);
  change(backward);
  change(reference);
  EXPECT_THROWS(forward.forward(), kShape, words);
  EXPECT_THROWS(backward.backward(), kShape, words);
  EXPECT_THROWS(reference.reference(), kShape, words);
}

TEST(AttentionErrors, TheRightCallIsRight) {
  Wrong nothing;
  EXPECT_NO_THROW(nothing.forward());
  EXPECT_NO_THROW(nothing.backward());
}

TEST(AttentionErrors, WithoutRowsNothingOverlaps) {
  for (const Sizes& sizes :
       {Sizes{.B = 2, .T = 0, .S = 3, .H = 2}, Sizes{.B = 2, .T = 3, .S = 0, .H = 2},
        Sizes{.B = 2, .T = 3, .S = 3, .H = 0, .G = 0}}) {
    Call<float> call(sizes);
    EXPECT_NO_THROW(attention_forward<float>(Context(1), {}, call.in(), call.out()));
    EXPECT_NO_THROW(
        attention_backward<float>(Context(1), {}, call.in(), call.saved(), call.gradients()));
  }
}

TEST(AttentionErrors, InputsThatDisagreeAreNamedWithBothSizes) {
  const std::string q = "q is [B=2, T=3, H=4, D=6]", k = "k is [B=2, S=5, G=2, D=6]";
  expect_shape_error([](Wrong& w) { w.in.q.width = 5; },
                     "same width D; q is [B=2, T=3, H=4, D=5], " + k);
  expect_shape_error([](Wrong& w) { w.in.k.batch = 1; }, q + ", k is [B=1, S=5, G=2, D=6]");
  expect_shape_error([](Wrong& w) { w.in.v.batch = 1; }, "v is [B=1, S=5, G=2, Dv=7]");
  expect_shape_error([](Wrong& w) { w.in.v.length = 4; }, k + ", v is [B=2, S=4, G=2, Dv=7]");
  expect_shape_error([](Wrong& w) { w.in.v.heads = 1; }, k + ", v is [B=2, S=5, G=1, Dv=7]");
  expect_shape_error([](Wrong& w) { w.in.q.heads = 1; },
                     "H=1 heads of q are no multiple of G=2 heads of k and v");
  expect_shape_error([](Wrong& w) { w.in.q.heads = 3; },
                     "H=3 heads of q are no multiple of G=2 heads of k and v; q is [B=2, T=3, H=3, "
                     "D=6], k is [B=2, S=5, G=2, D=6]");
  expect_shape_error([](Wrong& w) { w.in.k.heads = w.in.v.heads = 0; }, "no multiple of G=0");
  expect_shape_error([](Wrong& w) { w.in.v.width = 0; }, "D and Dv must be at least 1");
  expect_shape_error([](Wrong& w) { w.in.q.length = -3; }, "q has a negative size: [2, -3, 4, 6]");
  expect_shape_error([](Wrong& w) { w.in.k.head_stride = -6; }, "k has a negative stride");
  expect_shape_error([](Wrong& w) { w.in.v.data = nullptr; }, "v has a shape but no data");
}

// However few values there are, strides of 0 may repeat them without end.
TEST(AttentionErrors, SizesThatCannotBeCounted) {
  const auto repeat = [](View<const float>& view, index View<const float>::*axis, index size) {
    view.*axis = size;
    view.batch_stride = view.length_stride = view.head_stride = 0;
  };
  const auto expect = [&](index View<const float>::*axis, index size, const std::string& words) {
    expect_shape_error(
        [=](Wrong& w) {
          for (auto* view : {&w.in.q, &w.in.k, &w.in.v}) repeat(*view, axis, size);
        },
        words);
  };
  for (const index size : {index{1} << 31, index{1} << 62, std::numeric_limits<index>::max()}) {
    const std::string words = "no axis of q may be longer than 2147483647; it is";
    expect(&View<const float>::batch, size, words);
    expect(&View<const float>::length, size, words);
    expect(&View<const float>::heads, size, words);
  }
  expect(&View<const float>::batch, 1 << 30,
         "H x (B x (T + S) / 64 + 2 x sequences) may be at most 67108864; q is");
  expect(&View<const float>::heads, 1 << 30,
         "H x (B x (T + S) / 64 + 2 x sequences) may be at most 67108864; q is");
  expect_shape_error(
      [=](Wrong& w) { repeat(w.in.q, &View<const float>::length, 1 << 30); },
      "H x (B x (T + S) / 64 + 2 x sequences) may be at most 67108864; q is [B=2, T=1073741824");
  expect_shape_error(
      [=](Wrong& w) {
        w.in.q.width = w.in.k.width = w.in.v.width = 1 << 30;
        repeat(w.in.k, &View<const float>::length, 1 << 25);
        repeat(w.in.v, &View<const float>::length, 1 << 25);
      },
      "k may count at most 72057594037927936 values; it is [2, 33554432, 2, 1073741824]");
}

TEST(AttentionErrors, OutputsAndGradientsAreNamedWithBothSizes) {
  Wrong w;
  w.out.o.width = 6;
  EXPECT_THROWS(w.forward(), kShape, "o must be [2, 3, 4, 7]; it is [2, 3, 4, 6]");
  w = Wrong();
  w.out.lse.heads = 2;
  EXPECT_THROWS(w.forward(), kShape, "lse must be [B=2, H=4, T=3]; it is [2, 2, 3]");
  w = Wrong();
  w.out.lse_low.length = 2;
  EXPECT_THROWS(w.forward(), kShape, "lse_low must be [B=2, H=4, T=3]; it is [2, 4, 2]");
  w = Wrong();
  w.out.weights = ScoreView<float>::contiguous(w.call.q.data(), 2, 4, 3, 4);
  EXPECT_THROWS(w.forward(), kShape, "weights must be [B=2, H=4, 3, 5]; it is [2, 4, 3, 4]");
  w = Wrong();
  w.saved.d_o.length = 2;
  EXPECT_THROWS(w.backward(), kShape, "the gradient of o must be [2, 3, 4, 7]; it is [2, 2, 4, 7]");
  w = Wrong();
  w.gradients.dq.heads = 2;
  EXPECT_THROWS(w.backward(), kShape, "dq must be [2, 3, 4, 6]; it is [2, 3, 2, 6]");
  w = Wrong();
  w.gradients.dk.width = 7;
  EXPECT_THROWS(w.backward(), kShape, "dk must be [2, 5, 2, 6]; it is [2, 5, 2, 7]");
  w = Wrong();
  w.gradients.dv.batch = 1;
  EXPECT_THROWS(w.backward(), kShape, "dv must be [2, 5, 2, 7]; it is [1, 5, 2, 7]");
}

// A view that nobody set is missed by its name.
TEST(AttentionErrors, WhatIsNotGivenIsSaidSo) {
  for (View<const float> Floats::*view : {&Floats::q, &Floats::k, &Floats::v}) {
    const std::string name = view == &Floats::q ? "q" : view == &Floats::k ? "k" : "v";
    expect_shape_error([&](Wrong& w) { w.in.*view = {}; }, name + " was not given");
  }
  Wrong w;
  w.out.o = {};
  EXPECT_THROWS(w.forward(), kShape, "attention: o was not given; it must be [2, 3, 4, 7]");
  EXPECT_THROWS(w.reference(), kShape, "attention: o was not given; it must be [2, 3, 4, 7]");
  w.saved.d_o = {};
  EXPECT_THROWS(w.backward(), kShape, "the gradient of o was not given; it must be [2, 3, 4, 7]");
  w = Wrong();
  w.saved.o = {};
  EXPECT_THROWS(w.backward(), kShape, "o was not given; it must be [2, 3, 4, 7]");
  w = Wrong();
  w.saved.lse = {};
  EXPECT_THROWS(w.backward(), kShape, "lse was not given; it must be [B=2, H=4, T=3]");
  w = Wrong();
  w.attention.observe = observe::Entropy<float>({});
  EXPECT_THROWS(w.forward(), kShape, "entropy was not given; it must be [B=2, H=4, T=3]");
  w.attention.observe = observe::TopK<float>({}, {});
  EXPECT_THROWS(w.forward(), kShape, "was not given; it must be [B=2, H=4, 3, ");
}

TEST(AttentionErrors, EveryErrorHasAHint) {
  const auto hint_of = [](const Change& change) {
    Wrong wrong;
    change(wrong);
    const auto error = error_of([&] { wrong.forward(); });
    return error ? error->hint() : "";
  };
  EXPECT_EQ(hint_of([](Wrong& w) { w.in.q.heads = 3; }),
            "make H a multiple of G: each head of k and v serves H / G heads of q");
  EXPECT_THAT(hint_of([](Wrong& w) { w.out.o = {}; }), ::testing::HasSubstr("View<float>"));
  EXPECT_THAT(hint_of([](Wrong& w) { w.out.o.width = 3; }),
              ::testing::HasSubstr("o and its gradient [B, T, H, Dv]"));
  EXPECT_THAT(hint_of([](Wrong& w) { w.attention.dropout.probability = 2; }),
              ::testing::HasSubstr("a probability"));
  EXPECT_THAT(hint_of([](Wrong& w) {
                w.attention.sink.logits = {nullptr, 4};
              }),
              ::testing::HasSubstr("its pointer is null"));
  float logit = 0;
  EXPECT_EQ(hint_of([&](Wrong& w) {
              w.attention.sink.logits = {&logit, 1};
            }),
            "give the sink a logit for each head");
  EXPECT_THAT(hint_of([&](Wrong& w) {
                w.attention.bias = bias::Alibi<float>({&logit, 1});
              }),
              ::testing::HasSubstr("a slope for each head"));
  const std::int32_t length[] = {3};
  EXPECT_EQ(hint_of([&](Wrong& w) { w.attention.mask = mask::KeyLengths(length); }),
            info(ErrorCode::kShape).hint)
      << "that of the code, where nothing more particular is known";
}

TEST(AttentionErrors, ShapesWithoutData) {
  Wrong w;
  w.saved.lse.data = nullptr;
  EXPECT_THROWS(w.backward(), kShape, "lse has a shape but no data");
  w = Wrong();
  w.saved.lse.head_stride = -3;
  EXPECT_THROWS(w.backward(), kShape, "lse has a negative stride: 12, -3, 1");
  w = Wrong();
  w.out.o.data = nullptr;
  EXPECT_THROWS(w.forward(), kShape, "o has a shape but no data");
  w = Wrong();
  w.saved.d_o.data = nullptr;
  EXPECT_THROWS(w.backward(), kShape, "the gradient of o has a shape but no data");
  expect_shape_error(
      [](Wrong& x) {
        const std::uint8_t* nothing = nullptr;
        x.attention.mask =
            mask::Keep(ScoreView<const std::uint8_t>::contiguous(nothing, 1, 1, 3, 5));
      },
      "the keep mask has a shape but no data");
}

TEST(AttentionErrors, WhatIsWrittenDoesNotOverlap) {
  Wrong w;
  w.out.o.head_stride = 0;
  EXPECT_THROWS(w.forward(), kShape, "o is written, so its rows must not overlap; a stride is 0");
  w = Wrong();
  w.out.o.length_stride -= 1;
  EXPECT_THROWS(w.forward(), kShape, "must not overlap; a stride is 27, and what it steps over");
  w = Wrong();
  w.out.lse.batch_stride = 2;
  EXPECT_THROWS(w.forward(), kShape, "lse is written");
  w = Wrong();
  w.gradients.dk.batch_stride = 0;
  EXPECT_THROWS(w.backward(), kShape, "dk is written");
}

TEST(AttentionErrors, PartsThatAreNotThere) {
  EXPECT_THROW(Mask(std::shared_ptr<const MaskPart>()), Error);
  EXPECT_THROW(Bias<float>(std::shared_ptr<const BiasPart<float>>()), Error);
  Call<float> call({.T = 4, .S = 4, .D = 3, .Dv = 3});
  EXPECT_THROW(call.run({.mask = mask::KeyLengths({nullptr, 1})}), Error);
  EXPECT_THROW(call.run({.packed = {{nullptr, 2}, {nullptr, 2}}}), Error);
  EXPECT_THROWS(call.run({.bias = bias::Alibi<float>({nullptr, 1})}), kShape, "slopes have a size");
}

TEST(AttentionErrors, OptionsOutOfRange) {
  Wrong w;
  for (const double scale : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    w.attention.score = score::Dot{scale};
    EXPECT_THROWS(w.forward(), kOptionValue, "the scale must be finite");
  }
  w = Wrong();
  for (const double p : {-0.1, 1.0, 2.0, std::nan("")}) {
    w.attention.dropout.probability = p;
    EXPECT_THROWS(w.forward(), kOptionValue, "dropout must be in 0 <= p < 1");
    EXPECT_THROWS(w.backward(), kOptionValue, "dropout must be in 0 <= p < 1");
  }
  const std::uint64_t samples[3] = {};
  expect_shape_error(
      [&](Wrong& x) {
        x.attention.dropout.samples = {samples, 3};
      },
      "samples must be [2], one for each sequence; they are [3]");
}

TEST(AttentionErrors, PartsThatDoNotFit) {
  const std::int32_t lengths[] = {3, 5, 1}, wrong[] = {6, -1};
  const auto mask = [](Mask m) { return [m](Wrong& w) { w.attention.mask = m; }; };
  expect_shape_error(mask(mask::KeyLengths({lengths, 3})), "key_lengths must be [B=2]; it is [3]");
  expect_shape_error(mask(mask::KeyLengths({wrong, 2})),
                     "key_lengths[0] must be in 0..S=5; it is 6");
  expect_shape_error(mask(mask::QueryLengths({wrong, 2})), "query_lengths[0] must be in 0..T=3");
  const std::uint8_t values[60] = {};
  const auto matrix = [&](index B, index H, index T, index S) {
    return ScoreView<const std::uint8_t>::contiguous(values, B, H, T, S);
  };
  const std::string expected = "mask must be [2 or 1, 4 or 1, 3 or 1, 5]; it is ";
  expect_shape_error(mask(mask::Keep(matrix(1, 1, 3, 4))), "keep " + expected + "[1, 1, 3, 4]");
  expect_shape_error(mask(mask::Drop(matrix(1, 1, 2, 5))), "drop " + expected + "[1, 1, 2, 5]");
  expect_shape_error(mask(mask::Keep(matrix(1, 2, 1, 5))), expected + "[1, 2, 1, 5]");
  const float slopes[3] = {};
  expect_shape_error(
      [&](Wrong& w) {
        w.attention.bias = bias::Alibi<float>({slopes, 3});
      },
      "slopes must be [H=4]; they are [3]");
}

TEST(AttentionErrors, OffsetsThatDoNotFit) {
  const auto packed = [](std::vector<std::int32_t> queries, std::vector<std::int32_t> keys,
                         const std::string& words) {
    expect_shape_error(
        [&](Wrong& w) {
          for (index* batch : {&w.in.q.batch, &w.in.k.batch, &w.in.v.batch, &w.out.o.batch,
                               &w.out.lse.batch, &w.saved.o.batch}) {
            *batch = 1;
          }
          w.attention.packed = {view_of(queries), view_of(keys)};
        },
        words);
  };
  packed({0, 2, 1}, {0, 2, 5}, "query_offsets must ascend; [2] = 1 follows 2");
  packed({0, 2, 4}, {0, 2, 5}, "query_offsets end at 4; T is 3");
  packed({0, 1, 2}, {0, 2, 5}, "query_offsets end at 2; T is 3");
  packed({0, 2, 3}, {0, 2, 4}, "key_offsets end at 4; S is 5");
  packed({0}, {0}, "query_offsets end at 0; T is 3");
  packed({1, 2, 3}, {0, 2, 5}, "query_offsets[0] must be 0; it is 1");
  packed({0, 2, 3}, {0, 6}, "key_offsets end at 6; S is 5");
  packed({0, 2, 3}, {0, 5}, "must name the same sequences; they are [3] and [2]");
  packed({0, 2, 3}, {}, "key_offsets must hold at least one offset");
  const std::int32_t offsets[] = {0, 3}, length[] = {2};
  expect_shape_error(
      [&](Wrong& w) {
        w.attention.packed = {{offsets, 2}, {offsets, 2}};
      },
      "packed sequences need B = 1; q is [B=2, T=3, H=4, D=6]");
  Call<float> call({.T = 3, .S = 3});
  EXPECT_THROWS(
      call.forward({.mask = mask::KeyLengths({length, 1}), .packed = {{offsets, 2}, {offsets, 2}}}),
      kShape, "give offsets or lengths, not both; the mask is key_lengths");
}

// Also where the lengths happen to cut nothing.
TEST(AttentionErrors, OffsetsAndLengthsExcludeEachOther) {
  const std::int32_t offsets[] = {0, 1, 3}, length[] = {3};
  const Packed packed{{offsets, 3}, {offsets, 3}};
  const Mask of_keys = mask::KeyLengths({length, 1}), of_queries = mask::QueryLengths({length, 1});
  for (const Mask& lengths : {of_keys, of_queries, mask::Causal() & mask::lengths({length, 1})}) {
    for (const Method method : {Method::kFused, Method::kReference}) {
      Call<float> call({.T = 3, .S = 3});
      EXPECT_THROWS(call.forward({.mask = lengths, .packed = packed}, method), kShape,
                    "give offsets or lengths, not both; the mask is " + lengths.name());
    }
  }
}

TEST(AttentionErrors, OneCallHasOneAlignment) {
  const Mask last = mask::Causal(), first = mask::Causal(Align::kTopLeft);
  Call<float> call({.T = 3, .S = 5});
  for (const Method method : {Method::kFused, Method::kReference}) {
    EXPECT_THROWS(call.forward({.mask = last & first}, method), kShape,
                  "one call has one alignment; the mask is causal & causal(top-left)");
    EXPECT_THROWS(call.forward({.mask = first & mask::Window(1, 0) & last}, method), kShape,
                  "one call has one alignment");
  }
  EXPECT_THROWS(attention_plan<float>(Context(1), {.mask = last & first}, call.in()), kShape,
                "one call has one alignment");
  EXPECT_EQ((first & first).alignment(), Align::kTopLeft);
  EXPECT_EQ((last & mask::Window(2, 2)).alignment(), Align::kBottomRight);
  EXPECT_EQ(Mask(mask::Window(2, 2)).alignment(), std::nullopt);
}

}  // namespace
}  // namespace fovea::testing
