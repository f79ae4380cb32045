// SPDX-License-Identifier: Apache-2.0
#include "experiments/article_demo.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "fovea/attention/attention.h"
#include "fovea/base/torch_random.h"
#include "fovea/nn/attention.h"

namespace fovea {

namespace {

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

// Phrases in one language, filled in.
struct PhraseFormat {
  PageLanguage language;

  template <class... T>
  std::string operator()(const Phrase& phrase, const T&... values) const {
    return fmt::format(fmt::runtime(phrase.in(language)), values...);
  }
};

std::string matrix_text(const std::string& name, const std::vector<float>& values, index rows,
                        index columns) {
  return fmt::format("\n{}  [{}, {}]\n", name, rows, columns) +
         rows_text(values.data(), rows, columns);
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

// As torch.nn.Linear(d, d) starts, in its order: the weight, then the bias. All projections are
// copies of it.
void set_projections(TorchRandom& random, index d, ParameterSet& parameters) {
  const auto size = static_cast<std::size_t>(d);
  const auto bound = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  const std::vector<float> weight = random.uniform(size * size, -bound, bound);
  const std::vector<float> bias = random.uniform(size, -bound, bound);
  for (Parameter* parameter : parameters.parameters()) {
    const std::vector<float>& from = parameter->value.size() % (d * d) == 0 ? weight : bias;
    float* to = parameter->value.data<float>();
    for (index n = 0; n < parameter->value.size(); ++n) {
      to[n] = from[static_cast<std::size_t>(n) % from.size()];
    }
    ++parameter->version;
  }
}

}  // namespace

MultiHeadDemo multi_head_demo(const Context& context, std::uint64_t seed) {
  constexpr index B = MultiHeadDemo::kBatch, n = MultiHeadDemo::kLength, d = MultiHeadDemo::kWidth;
  ParameterSet parameters(ParameterSetOptions{});
  MultiHeadAttentionOptions options;
  options.width = d;
  options.heads = MultiHeadDemo::kHeads;
  options.mask = mask::Causal();
  const MultiHeadAttention layer(options, ParameterScope(parameters));
  TorchRandom random(seed);
  const std::vector<float> x = random.rand(static_cast<std::size_t>(B * n * d));
  set_projections(random, d, parameters);
  Tape tape(context, TapeMode::kInference);
  const std::vector<std::int32_t> lengths(static_cast<std::size_t>(B), static_cast<int>(n));
  const std::vector<std::int32_t> offsets = offsets_of({lengths.data(), B});
  const PackedRows rows = lay_out_rows(tape, B * n, {offsets.data(), B + 1}, {});
  HeadStatistics seen{.keeps_weights = true};
  const Variable y =
      layer.forward(tape, tape.constant(Rows<const float>(x.data(), B * n, d)), rows, {}, &seen);
  MultiHeadDemo demo{
      .seed = seed, .shape = {rows.count(), y.rows() / rows.count(), y.columns()}, .input = x};
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

std::string demo_text(const MultiHeadDemo& demo, PageLanguage language) {
  constexpr index B = MultiHeadDemo::kBatch, n = MultiHeadDemo::kLength, d = MultiHeadDemo::kWidth,
                  h = MultiHeadDemo::kHeads, D = d / h;
  const PhraseFormat say{language};
  std::string text =
      say({"transformer-3: multi-head attention, causal, d = {}, n = {}, B = {}, h = "
           "{}\n\n",
           "transformer-3：带因果掩码的多头注意力，d = {}，n = {}，B = {}，h = {}\n\n"},
          d, n, B, h);
  const auto step = [&](std::string_view name, const std::string& shape, const Phrase& what) {
    text += fmt::format("   {:<9} {:<14} {}\n", name, shape, what.in(language));
  };
  const std::string rows = fmt::format("[{}, {}, {}]", B, n, d);
  const std::string scores = fmt::format("[{}, {}, {}, {}]", B, h, n, n);
  step("x", rows,
       {"B sentences of n tokens, d random numbers each",
        "B 个句子，每句 n 个词元，每个 d 个随机数"});
  step("Q, K, V", rows,
       {"x W + b; the copies of one layer have the same W", "x W + b；同一层的副本，W 相同"});
  step("heads", fmt::format("[{}, {}, {}, {}]", B, h, n, D),
       {"the columns, d / h for each head", "各列，每个头 d / h 列"});
  step("scores", scores, {"Q K^T / sqrt(d / h) in each head", "每个头中的 Q K^T / sqrt(d / h)"});
  step("mask", fmt::format("[1, 1, {}, {}]", n, n),
       {"causal: token i sees tokens 1 to i; one rule for all",
        "因果：词元 i 只看 1 到 i；全体共用一条规则"});
  step("weights", scores,
       {"softmax over the keys; exactly 0 where masked", "对键做 softmax；被掩盖处恰为 0"});
  step("P V", fmt::format("[{}, {}, {}, {}]", B, h, n, D),
       {"the mean of the values", "值的加权平均"});
  step("concat", rows, {"the heads side by side again", "各头重新并排"});
  step("output", shape_text(demo.shape), {"concat W + b", "concat W + b"});
  for (index head = 0; head < h; ++head) {
    text +=
        say({"\nWeights of sentence 1, head {}  [{}, {}]\n", "\n第 1 句的权重，头 {}  [{}, {}]\n"},
            head + 1, n, n) +
        rows_text(demo.weights.data() + head * n * n, n, n);
  }
  text += matrix_text(say({"Input of sentence 1", "第 1 句的输入"}), demo.input, n, d);
  text += matrix_text(say({"Output of sentence 1", "第 1 句的输出"}), demo.output, n, d);
  text += say({"\nThe article prints the shape alone, with random weights and dropout 0.1:\n"
               "   article   [6, 3, 8]\n   fovea     {0}\n"
               "Dropout masks differ between builds of PyTorch, so there is none here. For the\n"
               "numbers above, put torch.manual_seed({1}) before the article's input and .eval()\n"
               "behind its layer; they agree to rounding.\n",
               "\n文章只打印形状，权重是随机的，dropout 为 0.1：\n"
               "   文章      [6, 3, 8]\n   fovea     {0}\n"
               "不同版本的 PyTorch 的 dropout 掩码不同，因此这里没有 dropout。若要得到上面的\n"
               "数值，请在文章的输入之前加 torch.manual_seed({1})，并对该层调用 .eval()；\n"
               "结果在舍入误差内一致。\n"},
              shape_text(demo.shape), demo.seed);
  return text + fmt::format("\n{}\n", shape_text(demo.shape));
}

PaddingDemo padding_demo(const Context& context, std::uint64_t seed) {
  constexpr index B = PaddingDemo::kBatch, n = PaddingDemo::kLength, d = PaddingDemo::kWidth;
  TorchRandom random(seed);
  std::vector<std::vector<float>> qkv;
  PaddingDemo demo{.seed = seed}, poisoned;
  for (int i = 0; i < 3; ++i) {
    qkv.push_back(random.rand(static_cast<std::size_t>(B * n * d)));
    demo.input.insert(demo.input.end(), qkv.back().begin(), qkv.back().end());
  }
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

std::string demo_text(const PaddingDemo& demo, PageLanguage language) {
  constexpr index B = PaddingDemo::kBatch, n = PaddingDemo::kLength, d = PaddingDemo::kWidth;
  const PhraseFormat say{language};
  std::string text = say({"padding-mask: attention with a padding mask, Q, K, V [{}, {}, {}]\n\n",
                          "padding-mask：带填充掩码的注意力，Q、K、V [{}, {}, {}]\n\n"},
                         B, n, d);
  const auto step = [&](std::string_view name, const std::string& shape, const std::string& what) {
    text += fmt::format("   {:<9} {:<10} {}\n", name, shape, what);
  };
  const std::string scores = fmt::format("[{0}, {1}, {1}]", B, n);
  step("mask", fmt::format("[{}, {}]", B, n),
       say({"true (1) = valid; it is that of the keys", "true（1）= 有效；是键的掩码"}));
  for (const auto& sentence : kValid) {
    text += "            ";
    for (const std::uint8_t valid : sentence) text += fmt::format(" {}", valid);
    text += "\n";
  }
  step("scores", scores, say({"Q K^T / sqrt({}), scaled once", "Q K^T / sqrt({})，只缩放一次"}, d));
  step("mask", fmt::format("[{}, 1, {}]", B, n),
       say({"the same row for every query; 0 becomes -inf", "所有查询用同一行；0 变为 -inf"}));
  step("weights", scores,
       say({"softmax over the keys; exactly 0 at padding", "对键做 softmax；填充处恰为 0"}));
  step("output", shape_text(demo.shape), "P V");
  for (index b = 0; b < B; ++b) {
    text +=
        say({"\nWeights of sentence {}  [{}, {}]\n", "\n第 {} 句的权重  [{}, {}]\n"}, b + 1, n, n) +
        rows_text(demo.weights.data() + b * n * n, n, n);
  }
  text += matrix_text(say({"Q of sentence 1", "第 1 句的 Q"}), demo.input, n, d);
  for (index b = 0; b < B; ++b) {
    text +=
        say({"\nOutput of sentence {}  [{}, {}]\n", "\n第 {} 句的输出  [{}, {}]\n"}, b + 1, n, d) +
        rows_text(demo.output.data() + b * n * d, n, d);
  }
  text += say({"\nThe article prints this tensor, of torch.rand without a seed. With\n"
               "torch.manual_seed({}) before its Q, K and V it prints the numbers above, to\n"
               "rounding.\n",
               "\n文章打印的就是这个张量，其输入来自未设种子的 torch.rand。在其 Q、K、V 之前加\n"
               "torch.manual_seed({})，打印的就是上面的数值（在舍入误差内）。\n"},
              demo.seed);
  text += say({"\nWith NaN in the padding of K and V: {}.\n"
               "The mask is that of the keys alone, so the padded queries have outputs, too.\n"
               "With the lengths of both (query_lengths, key_lengths) they are 0.\n",
               "\nK 和 V 的填充处为 NaN 时：{}。\n"
               "掩码只管键，所以填充的查询也有输出。\n"
               "同时给出两者的长度（query_lengths、key_lengths）时，这些输出为 0。\n"},
              demo.padding_has_no_effect ? say({"the same bits", "各位完全相同"})
                                         : say({"other bits", "结果不同"}));
  return text + fmt::format("\n{}\n", shape_text(demo.shape));
}

}  // namespace fovea
