// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/attention_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fovea/attention/attention.h"
#include "fovea/explain/text_parts.h"
#include "fovea/report/terminal.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::array<int, 4> kModuli = {19, 23, 29, 31};
constexpr index kNumber = 10;  // columns of a number

struct Characters {
  std::vector<std::string> names;
  std::vector<double> rows;  // [characters, kWidth]
};

Characters read(std::string_view text, std::string_view option) {
  require_utf8(text, option);
  const index count = count_characters(text);
  if (count == 0) {
    throw Error(ErrorCode::kInputTooSmall, fmt::format("{}: the text is empty", option),
                "give at least one character");
  }
  if (count > kMostStepCharacters) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("{}: {} characters; expected at most {}", option, count, kMostStepCharacters),
        "give a shorter text");
  }
  Characters characters;
  while (!text.empty()) {
    const TakenCharacter c = take_character(text);
    characters.names.push_back(c.bytes == " " ? "' '" : shown_token(c.bytes));
    const std::vector<double> row = step_embedding(c.value);
    characters.rows.insert(characters.rows.end(), row.begin(), row.end());
  }
  return characters;
}

View<const double> view_of(const std::vector<double>& rows, index width) {
  return View<const double>::contiguous(rows.data(), 1, static_cast<index>(rows.size()) / width, 1,
                                        width);
}

// The result of the operator for q, k and v, of width Dv.
std::vector<double> attend(const Context& context, const Attention<double>& attention,
                           const AttentionSteps& steps, const std::vector<double>& v, index Dv,
                           std::vector<double>* weights = nullptr) {
  const auto T = static_cast<index>(steps.queries.size());
  const auto S = static_cast<index>(steps.keys.size());
  std::vector<double> o(static_cast<std::size_t>(T * Dv));
  AttentionOutputs<double> out{.o = View<double>::contiguous(o.data(), 1, T, 1, Dv)};
  if (weights != nullptr) {
    weights->resize(static_cast<std::size_t>(T * S));
    out.weights = ScoreView<double>::contiguous(weights->data(), 1, 1, T, S);
  }
  attention_forward<double>(
      context, attention,
      {view_of(steps.q, steps.kWidth), view_of(steps.k, steps.kWidth), view_of(v, Dv)}, out);
  return o;
}

// A matrix with names of its rows and columns, in blocks of columns that fit.
class MatrixText {
 public:
  MatrixText(const std::vector<std::string>& rows, index columns) : rows_(rows), width_(columns) {
    for (const std::string& row : rows) left_ = std::max(left_, display_width(row));
  }

  std::string operator()(const std::vector<std::string>& names, const std::vector<double>& values,
                         std::string_view format) const {
    const auto C = static_cast<index>(names.size());
    const index fit = std::max<index>(1, (width_ - left_ - 3) / kNumber);
    std::string text;
    for (index begin = 0; begin < C; begin += fit) {
      const index end = std::min(C, begin + fit);
      text += spaces(3 + left_);
      for (index c = begin; c < end; ++c) text += right(names[static_cast<std::size_t>(c)]);
      text += "\n";
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        text += spaces(3) + rows_[r] + spaces(left_ - display_width(rows_[r]));
        for (index c = begin; c < end; ++c) {
          const double value = values[r * names.size() + static_cast<std::size_t>(c)];
          text += right(fmt::format(fmt::runtime(format), value == 0 ? 0.0 : value));
        }
        text += "\n";
      }
    }
    return text;
  }

 private:
  static std::string spaces(index n) {
    return std::string(static_cast<std::size_t>(std::max<index>(0, n)), ' ');
  }
  static std::string right(const std::string& text) {
    return spaces(kNumber - display_width(text)) + text;
  }

  const std::vector<std::string>& rows_;
  index width_, left_ = 0;
};

std::string heading(std::string_view text, std::size_t rows, std::size_t columns) {
  return fmt::format("\n{}   [{}, {}]\n", text, rows, columns);
}

}  // namespace

std::vector<double> step_embedding(char32_t character) {
  std::vector<double> row;
  for (const int m : kModuli) {
    const int residue = static_cast<int>(character % static_cast<char32_t>(m));
    row.push_back(static_cast<double>(residue - (m - 1) / 2) / 10);
  }
  return row;
}

AttentionSteps attention_steps(const Context& context, std::string_view query_text,
                               std::string_view key_text) {
  Characters q = read(query_text, "--q"), k = read(key_text, "--kv");
  AttentionSteps steps{.queries = std::move(q.names), .keys = std::move(k.names)};
  steps.q = std::move(q.rows);
  steps.k = std::move(k.rows);
  const std::size_t S = steps.keys.size();
  std::vector<double> identity(S * S);
  for (std::size_t s = 0; s < S; ++s) identity[s * S + s] = 1;
  Attention<double> product{.norm = norm::None{}};
  product.score = score::Dot{.scale = 1.0};
  steps.scores = attend(context, product, steps, identity, static_cast<index>(S));
  product.score = score::Dot{};
  steps.scaled = attend(context, product, steps, identity, static_cast<index>(S));
  steps.output = attend(context, {}, steps, steps.k, AttentionSteps::kWidth, &steps.weights);
  return steps;
}

std::string steps_text(const AttentionSteps& steps, index columns, PageLanguage language) {
  constexpr Phrase kFormula = {
      "Scaled dot-product attention:  softmax(Q K^T / sqrt(d)) V\n"
      "(Vaswani et al. 2017, eq. 1). Queries: {}, keys: {}, width d = {}, V = K.\n"
      "A layer first multiplies by the matrices W_Q, W_K and W_V that it learned. There\n"
      "are none here, so that every number can be checked by hand.\n",
      "缩放点积注意力：softmax(Q K^T / sqrt(d)) V\n"
      "（Vaswani 等 2017，式 1）。查询 {} 个，键 {} 个，宽度 d = {}，V = K。\n"
      "真正的层会先乘以学到的矩阵 W_Q、W_K 和 W_V。这里没有这些矩阵，\n"
      "因此每个数都可以手工验算。\n"};
  constexpr Phrase kEmbedding = {
      "\n1. Embeddings. Number i of a character with code point c is\n"
      "   ((c mod m) - (m - 1) / 2) / 10,  m = 19, 23, 29, 31. (A model learns them.)\n",
      "\n1. 嵌入。码位为 c 的字符的第 i 个数是\n"
      "   ((c mod m) - (m - 1) / 2) / 10，m = 19、23、29、31。（模型中由训练得到。）\n"};
  constexpr Phrase kQueries = {"   Q, a row for each query", "   Q，每个查询一行"};
  constexpr Phrase kKeys = {"   K = V, a row for each key", "   K = V，每个键一行"};
  constexpr Phrase kScores = {"2. Scores  Q K^T: the dot product of each query with each key",
                              "2. 分数  Q K^T：每个查询与每个键的点积"};
  constexpr Phrase kScaled = {"3. Scaled scores  Q K^T / sqrt(d) = Q K^T / 2",
                              "3. 缩放后的分数  Q K^T / sqrt(d) = Q K^T / 2"};
  constexpr Phrase kWeights = {"4. Weights  P = softmax of each row: exp(s) / sum of exp(s)",
                               "4. 权重  P = 每行的 softmax：exp(s) / exp(s) 之和"};
  constexpr Phrase kOutput = {"5. Output  P V: the mean of the values with these weights",
                              "5. 输出  P V：以这些权重求得的值的平均"};
  const std::size_t T = steps.queries.size(), S = steps.keys.size(), d = AttentionSteps::kWidth;
  const std::vector<std::string> numbers = {"1", "2", "3", "4"};
  const MatrixText queries(steps.queries, columns), keys(steps.keys, columns);
  std::string text = fmt::format(fmt::runtime(kFormula.in(language)), T, S, d);
  text += kEmbedding.in(language);
  text += heading(kQueries.in(language), T, d) + queries(numbers, steps.q, "{:.1f}");
  text += heading(kKeys.in(language), S, d) + keys(numbers, steps.k, "{:.1f}");
  text += heading(kScores.in(language), T, S) + queries(steps.keys, steps.scores, "{:.4f}");
  text += heading(kScaled.in(language), T, S) + queries(steps.keys, steps.scaled, "{:.4f}");
  text += heading(kWeights.in(language), T, S) + queries(steps.keys, steps.weights, "{:.4f}");
  text += heading(kOutput.in(language), T, d) + queries(numbers, steps.output, "{:.4f}");
  return text;
}

}  // namespace fovea
