// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/call_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"

namespace fovea {

namespace {

constexpr Phrase kSequence = {"Sequence", "序列"}, kSequenceName = {"sequence {}", "序列 {}"};
constexpr Phrase kSizesPhrase = {"Sizes", "大小"}, kScore = {"Score", "打分"},
                 kMask = {"Mask", "掩码"}, kBias = {"Bias", "偏置"}, kNorm = {"Norm", "归一化"};
constexpr Phrase kQueries = {"queries", "查询"}, kKeys = {"keys", "键"};
constexpr Phrase kSomeSequences = {"Only the first {} of {} sequences are shown.",
                                   "只显示 {1} 条序列中的前 {0} 条。"};
constexpr Phrase kSomeRows = {
    "Only {} of {} queries are shown, evenly spaced, because all would be too many. Their numbers "
    "are those of the rows of q. Entropy, distance and the largest weight are of all queries.",
    "查询太多，只均匀选取 {1} 个中的 {0} 个显示。编号是 q "
    "的行号。熵、距离和最大权重按全部查询计算。"};
constexpr Phrase kSomeRowsAlone = {
    "Only {} of {} queries are shown, evenly spaced, because all would be too many. Their numbers "
    "are those of the rows of q.",
    "查询太多，只均匀选取 {1} 个中的 {0} 个显示。编号是 q 的行号。"};

// The weights of the chosen rows, float whatever T is. Its results lie in memory of its own.
template <class T>
class ChosenRows final : public Observer<T> {
 public:
  ChosenRows(const PageRows& chosen, const AttentionSizes& sizes, std::span<float> weights)
      : sequences_(chosen.sequences),
        count_(static_cast<index>(chosen.rows.size())),
        heads_(sizes.H),
        keys_(sizes.S),
        slots_(static_cast<std::size_t>(sizes.T + 1), 0),
        weights_(weights) {
    for (const index row : chosen.rows) slots_[static_cast<std::size_t>(row) + 1] = 1;
    std::partial_sum(slots_.begin(), slots_.end(), slots_.begin());
  }

  bool sees(const ObservedQueries<T>& queries) const override {
    const index begin = queries.sequence.query_row + queries.query;
    return queries.sequence.batch < sequences_ &&
           chosen_before(begin) < chosen_before(begin + queries.queries);
  }

  void row(const ObservedRow<T>& row) const override {
    const index i = row.sequence.query_row + row.i, slot = chosen_before(i);
    if (row.sequence.batch >= sequences_ || slot == chosen_before(i + 1)) return;
    const index line = (row.sequence.batch * heads_ + row.head) * count_ + slot;
    float* to = weights_.data() + line * keys_ + row.sequence.key_row;
    for (index j = 0; j < row.weights.size; ++j) to[j] = static_cast<float>(row.weights[j]);
  }

  void clear() const override { std::fill(weights_.begin(), weights_.end(), 0.0F); }
  std::string name() const override { return "page"; }

 private:
  // How many of the rows before `row` are chosen.
  index chosen_before(index row) const { return slots_[static_cast<std::size_t>(row)]; }

  index sequences_, count_, heads_, keys_;
  std::vector<index> slots_;
  std::span<float> weights_;
};

// The second says whether a query sees more than one key.
index strongest_kept(const AttentionSizes& sizes) { return std::min<index>(2, sizes.S); }

std::vector<std::string> numbers_of(const std::vector<index>& numbers) {
  std::vector<std::string> names;
  for (const index number : numbers) names.push_back(std::to_string(number));
  return names;
}

std::vector<index> first_numbers(index count) {
  std::vector<index> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), index{0});
  return numbers;
}

template <class... Args>
std::string words(const Phrase& phrase, PageLanguage language, const Args&... args) {
  return fmt::format(fmt::runtime(phrase.in(language)), args...);
}

}  // namespace

PageRows choose_page_rows(const AttentionSizes& sizes, index most) {
  const auto& [B, T, S, H] = std::tie(sizes.B, sizes.T, sizes.S, sizes.H);
  check(B > 0 && T > 0 && S > 0 && H > 0,
        "attention: a page needs at least one sequence, query, key and head; there are {}, {}, {}, "
        "{}",
        B, T, S, H);
  check(S <= kMostPageKeys, Hint{"show a part: fewer rows of k and v"},
        "attention: there are {} keys; a page has at most {} columns", S, kMostPageKeys);
  const index rows = std::max<index>(1, most / (H * S));
  if (rows >= T) return {std::min(B, std::max<index>(1, rows / T)), first_numbers(T)};
  PageRows chosen{1, {}};
  for (index n = 1; n <= rows; ++n) chosen.rows.push_back(n * T / rows - 1);
  return chosen;
}

template <class T>
CallPage<T>::CallPage(AttentionCall<T>& call, PageLanguage language)
    : call_(call), language_(language), chosen_(choose_page_rows(call.sizes)) {
  const auto rows = static_cast<index>(chosen_.rows.size());
  const index size = chosen_.sequences * call.sizes.H * rows * call.sizes.S;
  require_memory("attention: the page", 4.0 * static_cast<double>(size),
                 "show fewer heads or keys");
  weights_.resize(static_cast<std::size_t>(size));
  call.see(ChosenRows<T>(chosen_, call.sizes, weights_));
  if (!needs_lse(call.attention.norm)) return;
  call.see(observe::Entropy(call.rows_out("entropy")));
  call.see(observe::Distance(call.rows_out("distance")));
  const index kept = strongest_kept(call.sizes);
  const auto best = call.template scores_out<std::int32_t>("topk_index", call.sizes.T, kept);
  call.see(observe::TopK(best, call.scores_out("topk_weight", call.sizes.T, kept)));
}

template <class T>
AttentionMap CallPage<T>::map_of(index sequence) const {
  const auto& sizes = call_.sizes;
  AttentionMap map{.name = words(kSequenceName, language_, sequence + 1), .heads = sizes.H};
  map.key_text = 1;
  const auto size = weights_.size() / static_cast<std::size_t>(chosen_.sequences);
  const auto begin = weights_.begin() + static_cast<std::ptrdiff_t>(size) * sequence;
  map.weights.assign(begin, begin + static_cast<std::ptrdiff_t>(size));
  if (!needs_lse(call_.attention.norm)) return map;
  const auto tensor = [&](std::string_view name) -> const Tensor& {
    return std::find_if(call_.out.begin(), call_.out.end(),
                        [&](const NamedTensor& named) { return named.name == name; })
        ->tensor;
  };
  const T *entropy = tensor("entropy").template data<T>(),
          *distance = tensor("distance").template data<T>(),
          *weight = tensor("topk_weight").template data<T>();
  const auto* key = tensor("topk_index").template data<std::int32_t>();
  const index kept = strongest_kept(sizes);
  for (index head = 0; head < sizes.H; ++head) {
    double entropies = 0, distances = 0, rows = 0;
    double largest = 0, of_choice = 0;  // as strongest_cell() tells them apart
    const index begin_row = (sequence * sizes.H + head) * sizes.T;
    for (index row = begin_row; row < begin_row + sizes.T; ++row) {
      const index first = row * kept, last = first + kept - 1;
      if (key[first] < 0) continue;  // keeps no key, or is padding
      rows += 1;
      entropies += static_cast<double>(entropy[row]);
      distances += static_cast<double>(distance[row]);
      largest = std::max(largest, static_cast<double>(weight[first]));
      if (last > first && key[last] >= 0) {
        of_choice = std::max(of_choice, static_cast<double>(weight[first]));
      }
    }
    map.entropy.push_back(static_cast<float>(entropies / std::max(rows, 1.0)));
    map.distance.push_back(static_cast<float>(distances / std::max(rows, 1.0)));
    map.largest.push_back(static_cast<float>(of_choice > 0 ? of_choice : largest));
  }
  return map;
}

template <class T>
std::vector<std::pair<std::string, std::string>> CallPage<T>::facts() const {
  const auto& sizes = call_.sizes;
  const auto named = [&](const Phrase& phrase) { return std::string(phrase.in(language_)); };
  const Attention<T>& attention = call_.attention;
  return {{named(kSizesPhrase), fmt::format("B {}, T {}, S {}, H {}, D {}", sizes.B, sizes.T,
                                            sizes.S, sizes.H, call_.in.q.width)},
          {named(kScore), name_of(attention.score)},
          {named(kMask), attention.mask.name()},
          {named(kBias), attention.bias.name()},
          {named(kNorm), name_of(attention.norm)}};
}

template <class T>
AttentionPage CallPage<T>::page(std::string title) const {
  for (const float weight : weights_) {
    if (std::isfinite(weight)) continue;
    throw Error(
        ErrorCode::kInputFormat,
        fmt::format("{}: a weight is not finite, and cannot be shown", call_.tensors.where()),
        "look for NaN and infinity in q, k and the biases");
  }
  AttentionPage page{.language = language_, .title = std::move(title), .facts = facts()};
  page.maps_are = kSequence.in(language_);
  const bool softmax = needs_lse(call_.attention.norm);
  page.rows_sum_to_one = softmax && call_.attention.sink.logits.empty();
  page.has_entropies = softmax;
  const std::vector<index> keys = first_numbers(call_.sizes.S);
  page.texts = {{std::string(kQueries.in(language_)), numbers_of(chosen_.rows), chosen_.rows},
                {std::string(kKeys.in(language_)), numbers_of(keys), {}}};
  for (index sequence = 0; sequence < chosen_.sequences; ++sequence) {
    page.maps.push_back(map_of(sequence));
  }
  const auto rows = static_cast<index>(chosen_.rows.size());
  if (chosen_.sequences < call_.sizes.B) {
    page.notes.push_back(words(kSomeSequences, language_, chosen_.sequences, call_.sizes.B));
  }
  if (rows < call_.sizes.T) {
    const Phrase& note = softmax ? kSomeRows : kSomeRowsAlone;
    page.notes.push_back(words(note, language_, rows, call_.sizes.T));
  }
  return page;
}

template class CallPage<float>;
template class CallPage<double>;

}  // namespace fovea
