// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/article_demo.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "fovea/attention/attention.h"
#include "fovea/base/random.h"
#include "fovea/nn/attention.h"

namespace fovea {

namespace {

constexpr std::uint64_t kSeed = 1;

std::vector<float> normal_numbers(std::size_t count, std::uint64_t number) {
  Random random(kSeed, RandomUse::kInit, number);
  std::vector<float> numbers(count);
  for (float& x : numbers) x = static_cast<float>(random.normal());
  return numbers;
}

std::string shape_text(const std::array<index, 3>& shape) {
  return fmt::format("[{}, {}, {}]", shape[0], shape[1], shape[2]);
}

// Rows of a matrix; of many columns the first ones and the last.
std::string rows_text(const float* values, index rows, index columns) {
  constexpr index kMost = 8, kFirst = 5, kLast = 2;
  std::string text;
  for (index r = 0; r < rows; ++r) {
    text += "   ";
    for (index c = 0; c < columns; ++c) {
      const bool skipped = columns > kMost && c >= kFirst && c < columns - kLast;
      if (skipped && c == kFirst) text += "     ...";
      if (!skipped) text += fmt::format(" {:7.4f}", values[r * columns + c]);
    }
    text += "\n";
  }
  return text;
}

// The mask of S3: true keeps.
constexpr std::uint8_t kValid[PaddingDemo::kBatch][PaddingDemo::kLength] = {{1, 1, 1, 0, 0},
                                                                            {1, 1, 1, 1, 0}};

void attend_with_padding(const Context& context, const std::vector<std::vector<float>>& qkv,
                         PaddingDemo& demo) {
  constexpr index B = PaddingDemo::kBatch, n = PaddingDemo::kLength, d = PaddingDemo::kWidth;
  demo.output.resize(static_cast<std::size_t>(B * n * d));
  demo.weights.resize(static_cast<std::size_t>(B * n * n));
  const ScoreView<const std::uint8_t> valid{&kValid[0][0], B, 1, 1, n, n, n, n};
  const Attention<float> attention{.mask = mask::Keep(valid)};
  const auto view = [&](const std::vector<float>& x) {
    return View<const float>::contiguous(x.data(), B, n, 1, d);
  };
  const View<float> o = View<float>::contiguous(demo.output.data(), B, n, 1, d);
  attention_forward<float>(
      context, attention, {view(qkv[0]), view(qkv[1]), view(qkv[2])},
      {.o = o, .weights = ScoreView<float>::contiguous(demo.weights.data(), B, 1, n, n)});
  demo.shape = {o.batch, o.length, o.heads * o.width};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

MultiHeadDemo multi_head_demo(const Context& context) {
  constexpr index B = MultiHeadDemo::kBatch, n = MultiHeadDemo::kLength, d = MultiHeadDemo::kWidth;
  ParameterSet parameters(ParameterSetOptions{.seed = kSeed});
  MultiHeadAttentionOptions options;
  options.width = d;
  options.heads = MultiHeadDemo::kHeads;
  options.mask = mask::Causal();
  options.input_init = options.output_init = linear_uniform_init(d);
  const MultiHeadAttention layer(options, ParameterScope(parameters));
  const std::vector<float> x = normal_numbers(static_cast<std::size_t>(B * n * d), 100);
  Tape tape(context, TapeMode::kInference);
  const std::vector<std::int32_t> lengths(static_cast<std::size_t>(B), static_cast<int>(n));
  const std::vector<std::int32_t> offsets = offsets_of({lengths.data(), B});
  const PackedRows rows = lay_out_rows(tape, B * n, {offsets.data(), B + 1}, {});
  HeadStatistics seen{.keeps_weights = true};
  const Variable y =
      layer.forward(tape, tape.constant(Rows<const float>(x.data(), B * n, d)), rows, {}, &seen);
  MultiHeadDemo demo{.shape = {rows.count(), y.rows() / rows.count(), y.columns()}};
  const Rows<const float> values = y.value<float>();
  demo.output.assign(values.data, values.data + values.rows * values.columns);
  for (index h = 0; h < MultiHeadDemo::kHeads; ++h) {
    for (index i = 0; i < n; ++i) {
      const auto row = seen.weights.begin() + (h * B * n + i) * B * n;
      demo.weights.insert(demo.weights.end(), row, row + n);
    }
  }
  return demo;
}

std::string demo_text(const MultiHeadDemo& demo) {
  constexpr index B = MultiHeadDemo::kBatch, n = MultiHeadDemo::kLength, d = MultiHeadDemo::kWidth,
                  h = MultiHeadDemo::kHeads, D = d / h;
  std::string text =
      fmt::format("S1: multi-head attention with a causal mask, d = {}, n = {}, B = {}, h = {}\n\n",
                  d, n, B, h);
  const auto step = [&](std::string_view name, const std::string& shape, std::string_view what) {
    text += fmt::format("   {:<9} {:<14} {}\n", name, shape, what);
  };
  const std::string rows = fmt::format("[{}, {}, {}]", B, n, d);
  step("x", rows, "B sentences of n tokens, d random numbers each");
  step("Q, K, V", rows, "x W_Q + b_Q and so on: each has its own matrix");
  step("heads", fmt::format("[{}, {}, {}, {}]", B, h, n, D), "the columns, d / h for each head");
  step("scores", fmt::format("[{}, {}, {}, {}]", B, h, n, n),
       fmt::format("Q K^T / sqrt({}) in each head", D));
  step("mask", fmt::format("[1, 1, {}, {}]", n, n),
       "causal: token i sees tokens 1 to i; one rule for all");
  step("weights", fmt::format("[{}, {}, {}, {}]", B, h, n, n),
       "softmax over the keys; exactly 0 where masked");
  step("P V", fmt::format("[{}, {}, {}, {}]", B, h, n, D), "the mean of the values");
  step("concat", rows, "the heads side by side again");
  step("output", shape_text(demo.shape), "concat W_O + b_O");
  for (index head = 0; head < h; ++head) {
    text += fmt::format("\nWeights of sentence 1, head {}  [{}, {}]\n", head + 1, n, n) +
            rows_text(demo.weights.data() + head * n * n, n, n);
  }
  text +=
      fmt::format("\nOutput of sentence 1  [{}, {}]\n", n, d) + rows_text(demo.output.data(), n, d);
  return text + fmt::format("\n{}\n", shape_text(demo.shape));
}

PaddingDemo padding_demo(const Context& context) {
  constexpr index B = PaddingDemo::kBatch, n = PaddingDemo::kLength, d = PaddingDemo::kWidth;
  std::vector<std::vector<float>> qkv;
  for (std::uint64_t i = 0; i < 3; ++i) {
    qkv.push_back(normal_numbers(static_cast<std::size_t>(B * n * d), 200 + i));
  }
  PaddingDemo demo, poisoned;
  attend_with_padding(context, qkv, demo);
  for (index row = 0; row < B * n; ++row) {
    if ((&kValid[0][0])[row] != 0) continue;
    for (const std::size_t of : {1U, 2U}) {
      std::fill_n(qkv[of].begin() + row * d, d, std::numeric_limits<float>::quiet_NaN());
    }
  }
  attend_with_padding(context, qkv, poisoned);
  demo.padding_has_no_effect =
      same_bits(demo.output, poisoned.output) && same_bits(demo.weights, poisoned.weights);
  return demo;
}

std::string demo_text(const PaddingDemo& demo) {
  constexpr index B = PaddingDemo::kBatch, n = PaddingDemo::kLength, d = PaddingDemo::kWidth;
  std::string text =
      fmt::format("S3: attention with a padding mask, Q, K, V [{}, {}, {}]\n\n", B, n, d);
  text += fmt::format("   mask      [{}, {}]     true (1) = valid; it is that of the keys\n", B, n);
  for (const auto& sentence : kValid) {
    text += "            ";
    for (const std::uint8_t valid : sentence) text += fmt::format(" {}", valid);
    text += "\n";
  }
  text += fmt::format("   scores    [{0}, {1}, {1}]  Q K^T / sqrt({2}), scaled once\n", B, n, d);
  text +=
      fmt::format("   mask      [{}, 1, {}]  the same row for every query; 0 becomes -inf\n", B, n);
  text += fmt::format("   weights   [{0}, {1}, {1}]  softmax over the keys; exactly 0 at padding\n",
                      B, n);
  text += fmt::format("   output    {} P V\n", shape_text(demo.shape));
  for (index b = 0; b < B; ++b) {
    text += fmt::format("\nWeights of sentence {}  [{}, {}]\n", b + 1, n, n) +
            rows_text(demo.weights.data() + b * n * n, n, n);
  }
  for (index b = 0; b < B; ++b) {
    text += fmt::format("\nOutput of sentence {}  [{}, {}]\n", b + 1, n, d) +
            rows_text(demo.output.data() + b * n * d, n, d);
  }
  text += fmt::format(
      "\nWith NaN in the padding of K and V: {}.\n"
      "The mask is that of the keys alone, so the padded queries have outputs, too.\n"
      "With the lengths of both (query_lengths, key_lengths) they are 0.\n",
      demo.padding_has_no_effect ? "the same bits" : "other bits");
  return text + fmt::format("\n{}\n", shape_text(demo.shape));
}

}  // namespace fovea
