// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/run_attention.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <tuple>
#include <utility>
#include <variant>

#include "fovea/attention/call.h"
#include "fovea/attention/checks.h"
#include "fovea/attention/fused/tile_cover.h"
#include "fovea/attention/reference.h"
#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/operator/attention_call.h"

namespace fovea {

namespace {

bool is_float64(const AttentionSettings& settings, const AttentionTensors& tensors) {
  if (settings.precision == AttentionPrecision::kBFloat16) return false;
  if (settings.reference || settings.precision == AttentionPrecision::kFloat64) return true;
  return settings.precision == AttentionPrecision::kAuto &&
         tensors.at("q").dtype() == DType::kFloat64;
}

/// The settings and tensors of a call.
struct CallParts {
  const AttentionSettings& settings;
  const AttentionTensors& tensors;
  const MoreParts* more = nullptr;
};

// A call whose rows are T.
template <class T>
struct CallOf : AttentionCall<Wide<T>> {
  using AttentionCall<Wide<T>>::AttentionCall;
};

// Calls f with the call in the precision that is asked for, and puts the name of the file in front
// of errors about shapes.
template <class F>
auto with_call(const CallParts& parts, F&& f) {
  const auto& [settings, tensors, more] = parts;
  try {
    if (is_float64(settings, tensors)) return f(CallOf<double>(settings, tensors, more));
    if (settings.precision == AttentionPrecision::kBFloat16) {
      return f(CallOf<BFloat16>(settings, tensors, more));
    }
    return f(CallOf<float>(settings, tensors, more));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kShape) throw;
    throw error.with(ErrorCode::kShape, fmt::format("{}: {}", tensors.where(), error.what()),
                     "fovea attention --help lists the tensors and their shapes");
  }
}

template <class T>
void forward(const Context& context, CallOf<T>& call, const AttentionOutputs<T>& outputs) {
  const AttentionInputs<T> in = call.template inputs<T>();
  if (call.settings.reference) return attention_reference_forward(call.attention, in, outputs);
  attention_forward(context, call.attention, in, outputs);
}

template <class T>
AttentionGradients<T> gradients_of(CallOf<T>& call) {
  return {call.template gradient_view_out<T>("q"), call.template gradient_view_out<T>("k"),
          call.template gradient_view_out<T>("v")};
}

template <class T>
void backward(const Context& context, CallOf<T>& call, const AttentionSaved<T>& saved,
              const AttentionGradients<T>& gradients) {
  const AttentionInputs<T> in = call.template inputs<T>();
  if (call.settings.reference) {
    return attention_reference_backward(call.attention, in, saved, gradients);
  }
  attention_backward(context, call.attention, in, saved, gradients);
}

// Room for o and, under softmax, for lse; for the rounding error of lse if `low` is given.
template <class T>
AttentionOutputs<T> outputs_of(CallOf<T>& call, Tensor* low) {
  using W = Wide<T>;
  const auto& [q, k, v] = call.in;
  AttentionOutputs<T> outputs{.o = call.template view_out<T>("o", q.length, q.heads, v.width)};
  if (!needs_lse(call.attention.norm)) return outputs;
  outputs.lse = call.rows_out("lse");
  if (low == nullptr) return outputs;
  *low = Tensor({q.batch, q.heads, q.length}, kDTypeOf<W>);
  outputs.lse_low = RowView<W>::contiguous(low->data<W>(), q.batch, q.heads, q.length);
  return outputs;
}

template <class T>
RowView<const T> d_lse_of(AttentionCall<T>& call) {
  return call.tensors.find("dlse") == nullptr ? RowView<const T>{} : call.rows("dlse");
}

template <class T>
std::vector<NamedTensor> run(const Context& context, CallOf<T> call, const AcceptResults& accept) {
  Tensor low;
  const AttentionOutputs<T> outputs = outputs_of(call, call.settings.backward ? &low : nullptr);
  const AttentionGradients<T> gradients = gradients_of(call);
  if (accept) accept(call.out);
  forward(context, call, outputs);
  if (call.settings.backward) {
    backward(context, call,
             {outputs.o, outputs.lse, call.template view<T>("do"), outputs.lse_low, d_lse_of(call)},
             gradients);
  }
  return std::move(call.out);
}

const Tensor& result(const AttentionForward& forward, std::string_view name) {
  return find_named(forward.results, name)->tensor;
}

// The results of a forward that its backward reads: o, and under softmax lse in two parts.
template <class T>
AttentionSaved<T> saved_of(CallOf<T>& call, const AttentionForward& forward) {
  using W = Wide<T>;
  const Shape& o = result(forward, "o").shape();
  AttentionSaved<T> saved{
      .o = View<const T>::contiguous(result(forward, "o").data<T>(), o[0], o[1], o[2], o[3]),
      .lse = {},
      .d_o = call.template view<T>("do"),
      .lse_low = {},
      .d_lse = d_lse_of(call)};
  if (!needs_lse(call.attention.norm)) return saved;
  const auto rows = [&](const Tensor& tensor) {
    return RowView<const W>::contiguous(tensor.data<W>(), o[0], o[2], o[1]);
  };
  saved.lse = rows(result(forward, "lse"));
  saved.lse_low = rows(forward.lse_low);
  return saved;
}

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

AttentionTensors read_attention_tensors(const AttentionSettings& settings, const TensorFile& file,
                                        std::string where) {
  constexpr std::string_view kOfBackward[] = {"do", "dlse"};
  std::span<const std::string_view> unused = kOfBackward;
  if (settings.backward) unused = {};
  return {file, attention_tensor_specs(), std::move(where), unused};
}

AttentionPlan plan_attention(const Context& context, const AttentionSettings& settings,
                             const AttentionTensors& tensors, const MoreParts* more) {
  AttentionPlan plan = with_call({settings, tensors, more}, [&]<class T>(CallOf<T> call) {
    return attention_plan(context, call.attention, call.template inputs<T>());
  });
  if (settings.reference) {
    const bool rounds = settings.precision == AttentionPrecision::kBFloat16;
    plan.kernel = rounds ? "reference bfloat16" : "reference float64";
  }
  return plan;
}

bool call_multiplies_bfloat16(const AttentionSettings& settings, const AttentionTensors& tensors) {
  return with_call({settings, tensors}, []<class T>(const CallOf<T>& call) {
    if constexpr (std::is_same_v<T, BFloat16>) return multiplies_bfloat16(call.attention);
    return false;
  });
}

std::vector<std::string> picture_attention(const AttentionSettings& settings,
                                           const AttentionTensors& tensors, const MoreParts* more) {
  constexpr index kMostTiles = 128;
  return with_call({settings, tensors, more}, [&]<class T>(const CallOf<T>& call) {
    detail::check_attention(call.attention, call.in);
    const std::vector<Sequence> sequences = detail::make_sequences(call.attention, call.in);
    const bool small = !sequences.empty() && sequences[0].queries <= kMostTiles * kLaneTile &&
                       sequences[0].keys <= kMostTiles * kRowBlock && call.sizes.H > 0;
    return small ? detail::picture_of_tiles(call.attention.mask, sequences[0], 0)
                 : std::vector<std::string>();
  });
}

std::vector<NamedTensor> run_attention(const Context& context, const AttentionSettings& settings,
                                       const AttentionTensors& tensors,
                                       const AcceptResults& accept) {
  return with_call({settings, tensors}, [&]<class T>(CallOf<T> call) {
    return run<T>(context, std::move(call), accept);
  });
}

AttentionForward run_attention_forward(const Context& context, const AttentionSettings& settings,
                                       const AttentionTensors& tensors, const MoreParts* more) {
  AttentionSettings forward_alone = settings;
  forward_alone.backward = false;
  return with_call({forward_alone, tensors, more}, [&]<class T>(CallOf<T> call) {
    AttentionForward results;
    forward(context, call, outputs_of(call, &results.lse_low));
    results.results = std::move(call.out);
    return results;
  });
}

std::vector<NamedTensor> run_attention_backward(const Context& context,
                                                const AttentionSettings& settings,
                                                const AttentionTensors& tensors,
                                                const AttentionForward& results,
                                                const MoreParts* more) {
  AttentionSettings backward_alone = settings;
  backward_alone.backward = true;
  backward_alone.observe.clear();
  return with_call({backward_alone, tensors, more}, [&]<class T>(CallOf<T> call) {
    const AttentionGradients<T> gradients = gradients_of(call);
    backward(context, call, saved_of(call, results), gradients);
    return std::move(call.out);
  });
}

AttentionPage page_attention(const Context& context, const AttentionSettings& settings,
                             const AttentionTensors& tensors, PageLanguage language) {
  AttentionSettings forward_alone = settings;
  forward_alone.observe.clear();
  forward_alone.backward = false;
  const std::string name = std::filesystem::path(tensors.where()).filename().string();
  constexpr Phrase kTitle = {"Attention of {}", "{} 的注意力"};
  AttentionPage page = with_call({forward_alone, tensors}, [&]<class T>(CallOf<T> call) {
    CallPage<Wide<T>> observed(call, language);
    const auto& [q, k, v] = call.in;
    const AttentionOutputs<T> outputs{
        .o = call.template view_out<T>("o", q.length, q.heads, v.width)};
    forward(context, call, outputs);
    return observed.page(fmt::format(fmt::runtime(kTitle.in(language)), name));
  });
  page.tiles = picture_attention(settings, tensors);
  return page;
}

std::vector<NamedTensor> run_plain_float32(const AttentionSettings& settings,
                                           const AttentionTensors& tensors) {
  AttentionSettings plain = settings;
  plain.reference = true;
  plain.precision = AttentionPrecision::kFloat32;
  return run<float>(Context(1), CallOf<float>(plain, tensors), {});
}

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
