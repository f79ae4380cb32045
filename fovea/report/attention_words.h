// SPDX-License-Identifier: Apache-2.0
// Every text of the attention page, in both languages.
#pragma once

#include "fovea/report/html.h"

namespace fovea::attention_words {

inline constexpr Phrase kWarning = {
    "Attention weights are no explanation by themselves. They say where a head looked, not why the "
    "model answered as it did.",
    "注意力权重本身不是解释。它只说明某个头看了哪里，并不说明模型为什么这样回答。"};
inline constexpr Phrase kPrediction = {"What the model says", "模型的判断"};
inline constexpr Phrase kMore = {"and {} more", "另有 {} 个"};
inline constexpr Phrase kLabels = {"What the model says of each token, and how probable it is",
                                   "模型对每个词元的判断及其概率"};
inline constexpr Phrase kWeights = {"Attention weights", "注意力权重"};
inline constexpr Phrase kLayer = {"Layer", "层"};
inline constexpr Phrase kPart = {"Joint or time step", "关节或时间步"};
inline constexpr Phrase kHead = {"Head", "头"};
inline constexpr Phrase kShading = {"Colour", "着色"};
inline constexpr Phrase kCell = {"Cell size", "格子大小"};
inline constexpr Phrase kMap = {"Heat map. Arrow keys move the chosen cell.",
                                "热力图。用方向键移动选中的格子。"};
inline constexpr Phrase kLines = {"Lines from queries to keys", "从查询到键的连线"};
inline constexpr Phrase kStrongest = {"Where this query looks most", "该查询最关注的键"};
inline constexpr Phrase kKeys = {"Point at a cell, or choose the map and use the arrow keys.",
                                 "把鼠标移到格子上，或选中热力图后用方向键。"};

// The scripts read these by name.
struct ScriptWord {
  std::string_view name;
  Phrase phrase;
};
inline constexpr ScriptWord kScriptWords[] = {
    {"head", {"Head {0}", "头 {0}"}},
    {"mean", {"Mean of all heads", "各头平均"}},
    {"largest", {"0 to the largest weight", "从 0 到最大权重"}},
    {"one", {"0 to 1", "从 0 到 1"}},
    {"root", {"Square root: small weights show", "开平方：突出小权重"}},
    {"weight", {"Query {0} gives key {1} the weight {2}.", "查询 {0} 给键 {1} 的权重是 {2}。"}},
    {"pair", {"{0} {1}, {2} {3}: weight {4}.", "{0} {1}，{2} {3}：权重 {4}。"}},
    {"isMasked",
     {"Query {0} may not look at key {1}: masked.", "查询 {0} 不能看键 {1}：已被屏蔽。"}},
    {"isMissing",
     {"Query {0}, key {1}: left out of this page, at most {2}.",
      "查询 {0}，键 {1}：本页未保存，不超过 {2}。"}},
    {"masked", {"masked", "已屏蔽"}},
    {"missing", {"at most {0}", "不超过 {0}"}},
    {"query", {"query", "查询"}},
    {"key", {"key", "键"}},
    {"legendMasked", {"masked: weight 0", "已屏蔽：权重为 0"}},
    {"legendMissing", {"left out: small", "未保存：很小"}},
    {"negative", {"below 0", "小于 0"}},
    {"lines",
     {"The {0} largest weights; bold: those of the chosen query.",
      "最大的 {0} 个权重；粗线属于选中的查询。"}},
};

inline constexpr Phrase kSaliency = {"Other evidence: what each token counts for",
                                     "其他证据：每个词元的作用"};
inline constexpr Phrase kSaliencyOfNumbers = {
    "Other evidence: what each time step and joint counts for", "其他证据：每个时间步和关节的作用"};
inline constexpr Phrase kCounts = {"What each token counts for", "每个词元的作用"};
inline constexpr Phrase kCountsOfNumbers = {"What each time step and joint counts for",
                                            "每个时间步和关节的作用"};
inline constexpr Phrase kPairs = {"Rows: {}. Columns: {}.", "行：{}；列：{}。"};
inline constexpr Phrase kSource = {"Source: {}", "出处：{}"};

inline constexpr Phrase kStatistics = {"Heads at a glance", "各头概览"};
inline constexpr Phrase kEntropy = {"Entropy, in nats", "熵（nat）"};
inline constexpr Phrase kEntropyMeans = {
    "0: a query looks at one key. ln n: it looks at n keys alike. Mean of the queries.",
    "0 表示查询只看一个键；ln n 表示同等地看 n 个键。对各查询取平均。"};
inline constexpr Phrase kDistance = {"Distance, in tokens", "距离（词元数）"};
inline constexpr Phrase kDistanceInTime = {"Distance, in time steps", "距离（时间步数）"};
inline constexpr Phrase kDistanceMeans = {
    "How far away the keys are, weighted by their weights. Mean of the queries.",
    "所看的键平均相距多远，按权重加权。对各查询取平均。"};
inline constexpr Phrase kLargest = {"Largest weight", "最大权重"};
inline constexpr Phrase kLargestMeans = {"Of the queries that see more than one key.",
                                         "在能看到不止一个键的查询中。"};

inline constexpr Phrase kTiles = {"Tiles of the plan", "计算计划的分块"};
inline constexpr Phrase kTilesMean = {
    "Each square is 64 queries by 128 keys of the first sequence and head. Filled: computed whole. "
    "Striped: computed, partly masked. Empty: never computed.",
    "每个方块是第一条序列、第一个头的 64 个查询乘 128 "
    "个键。实心：整块计算；条纹：计算，部分被屏蔽；"
    "空白：从不计算。"};

inline constexpr Phrase kReading = {"How to read this page", "怎样读这一页"};
inline constexpr Phrase kRowMeans = {
    "A row is a query, the token that looks. A column is a key, a token that is looked at.",
    "每一行是一个查询，即正在看的词元；每一列是一个键，即被看的词元。"};
inline constexpr Phrase kRowOfNumbers = {
    "A row is a query: the time step or joint that looks. A column is a key, one that is looked "
    "at. Samples, time steps and joints count from 0, as in the arrays.",
    "每一行是一个查询，即正在看的时间步或关节；每一列是一个键，即被看的时间步或关节。"
    "样本、时间步和关节都从 0 数起，与数组一致。"};
inline constexpr Phrase kColourMeans = {
    "The stronger the colour of a cell, the larger its weight: the share of that key's value in "
    "the "
    "output of the query.",
    "格子颜色越重，权重越大：它是该键的值在查询输出中所占的份额。"};
inline constexpr Phrase kFactorMeans = {
    "The stronger the colour of a cell, the farther its weight is from 0: the factor of that key's "
    "value in the output of the query.",
    "格子颜色越重，权重离 0 越远：它是该键的值在查询输出中的系数。"};
inline constexpr Phrase kRowSum = {"The weights of a row add up to 1.", "每一行的权重之和为 1。"};
inline constexpr Phrase kMaskedMeans = {
    "A striped cell is masked: the query may not look there, and the weight is exactly 0.",
    "斜纹格子被屏蔽：查询不能看那里，权重恰好为 0。"};
inline constexpr Phrase kDigits = {"Weights are given to {} decimals, before dropout.",
                                   "权重保留 {} 位小数，为 dropout 之前的值。"};
inline constexpr Phrase kRounded = {"Weights are rounded to a multiple of {}, before dropout.",
                                    "权重四舍五入到 {} 的倍数，为 dropout 之前的值。"};
inline constexpr Phrase kCut = {
    "To stay below {1} MB, this page keeps only the {0} largest weights of each row. Cells that "
    "are "
    "left out are yellow.",
    "为使文件不超过 {1} MB，本页每行只保存最大的 {0} 个权重。未保存的格子为黄色。"};
inline constexpr Phrase kConclude = {
    "Do not conclude that a token caused the answer because it has a large weight. Other weights "
    "can "
    "give the same answer, and from the second layer on a position holds a mixture of many tokens "
    "(Jain and Wallace 2019, arXiv:1902.10186; Wiegreffe and Pinter 2019, arXiv:1908.04626).",
    "不要因为某个词元权重大，就断定是它造成了这个回答。不同的权重可以得出同样的回答；而且从第二层起"
    "，"
    "每个位置已经混合了许多词元的信息（Jain 和 Wallace 2019，arXiv:1902.10186；Wiegreffe 和 Pinter "
    "2019，arXiv:1908.04626）。"};
inline constexpr Phrase kConcludeOfNumbers = {
    "Do not conclude that a time step or joint caused the answer because it has a large weight. "
    "Other weights can give the same answer, and behind recurrent layers, convolutions or "
    "attention "
    "a row holds a mixture of many time steps or joints (Jain and Wallace 2019, arXiv:1902.10186; "
    "Wiegreffe and Pinter 2019, arXiv:1908.04626).",
    "不要因为某个时间步或关节权重大，就断定是它造成了这个回答。不同的权重可以得出同样的回答；而且"
    "在循环层、卷积层或注意力层之后，每一行已经混合了许多时间步或关节的信息（Jain 和 Wallace 2019，"
    "arXiv:1902.10186；Wiegreffe 和 Pinter 2019，arXiv:1908.04626）。"};
inline constexpr Phrase kCountColours = {
    "The stronger the colour, the farther the number is from 0. Numbers above 0 speak for what is "
    "explained, those below 0, in another colour, against it.",
    "颜色越重，数值离 0 越远。大于 0 的数支持所解释的量，小于 0 的数（另一种颜色）反对它。"};
inline constexpr Phrase kSaliencyOfNumbersMeans = {
    "Saliency is other evidence, with limits of its own. Change the numbers and see what changes.",
    "显著性是另一种证据，同样有局限。不妨改动数值，看看结果怎样变化。"};
inline constexpr Phrase kSaliencyMeans = {
    "Saliency is other evidence, with limits of its own. Change the text and see what changes.",
    "显著性是另一种证据，同样有局限。不妨改动文本，看看结果怎样变化。"};

}  // namespace fovea::attention_words
