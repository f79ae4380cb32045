// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/attention_parts.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/suggest.h"
#include "fovea/parts/part_table.h"

namespace fovea {

namespace {

/// A generic lambda on a call, for both precisions.
template <class... Args>
struct Make {
  template <class F>
  constexpr Make(F f) : f32(f), f64(f) {}
  void operator()(AttentionCall<float>& call, Args... args) const { f32(call, args...); }
  void operator()(AttentionCall<double>& call, Args... args) const { f64(call, args...); }

  void (*f32)(AttentionCall<float>&, Args...);
  void (*f64)(AttentionCall<double>&, Args...);
};

constexpr TensorSpec kOperands[] = {
    {"q", "B T H D"}, {"k", "B S G D"}, {"v", "B S G Dv"}, {"do", "B T H Dv"}, {"dlse", "B H T"}};

// Converts window bounds that count kept keys (with a dilation) to bounds that count all keys.
template <class T>
Rows<const std::int32_t> dilated_windows(AttentionCall<T>& call) {
  const Rows<const std::int32_t> bounds = call.int_rows("window");
  const index rate = call.settings.dilation;
  if (rate == 1) return bounds;
  constexpr index kFar = std::numeric_limits<std::int32_t>::max();
  const Rows<std::int32_t> scaled = call.int_rows_of("window", bounds.rows, bounds.columns);
  std::transform(bounds[0], bounds[bounds.rows], scaled[0], [&](index bound) {
    const index keys = bound <= kFar / rate ? bound * rate : kFar;
    return static_cast<std::int32_t>(bound > 0 ? keys : bound);
  });
  return scaled;
}

template <class T>
void keep_window(AttentionCall<T>& call) {
  const auto [left, right] = parse_window(call.settings.window);
  if (call.settings.dilation > 1) {
    call.keep(mask::dilated(call.settings.dilation, left, right));
  } else if (left != kOpen || right != kOpen) {
    call.keep(mask::Window(left, right));
  }
}

template <class T>
void keep_causal(AttentionCall<T>& call) {
  if (call.settings.causal == CausalKind::kNone) return;
  const bool top_left = call.settings.causal == CausalKind::kTopLeft;
  call.keep(mask::Causal(top_left ? Align::kTopLeft : Align::kBottomRight));
}

/// A mask of the call. It is made if its tensor is given, or, without a tensor, from the settings.
struct MaskRow {
  TensorSpec tensor;
  Make<> make;
};

constexpr TensorSpec kAsSettingsSay = {};
constexpr auto kWithItsPair = [](auto&) {};
constexpr std::string_view kPacked = "where each packed sequence begins, and the end";
constexpr std::string_view kOneSegment = "a query sees keys of the same number";

constexpr MaskRow kMasks[] = {
    {{"query_lengths", "B", TensorValues::kInt32, {}, "queries of each row; padding follows", true},
     [](auto& call) { call.keep(mask::QueryLengths(call.ints("query_lengths"))); }},
    {{"key_lengths", "B", TensorValues::kInt32, {}, "keys of each row; padding follows", true},
     [](auto& call) { call.keep(mask::KeyLengths(call.ints("key_lengths"))); }},
    {{"query_offsets", "N+1", TensorValues::kInt32, "key_offsets", kPacked},
     [](auto& call) { call.attention.packed.query_offsets = call.ints("query_offsets"); }},
    {{"key_offsets", "N+1", TensorValues::kInt32, "query_offsets", kPacked},
     [](auto& call) { call.attention.packed.key_offsets = call.ints("key_offsets"); }},
    {{"query_segments", "B T", TensorValues::kInt32, "key_segments", kOneSegment},
     [](auto& call) {
       call.keep(mask::Segments(call.int_rows("query_segments"), call.int_rows("key_segments")));
     }},
    {{"key_segments", "B S", TensorValues::kInt32, "query_segments", kOneSegment}, kWithItsPair},
    {{"keep", "B|1 H|1 T|1 S", TensorValues::kBytes, {}, "the keys that a query may see"},
     [](auto& call) { call.keep(mask::Keep(call.bytes("keep"))); }},
    {{"drop", "B|1 H|1 T|1 S", TensorValues::kBytes, {}, "the keys that a query may not see"},
     [](auto& call) { call.keep(mask::Drop(call.bytes("drop"))); }},
    {kAsSettingsSay, [](auto& call) { keep_causal(call); }},
    {kAsSettingsSay, [](auto& call) { keep_window(call); }},
    {{"window", "H 2", TensorValues::kInt32, {}, "L and R of each head"},
     [](auto& call) { call.keep(mask::HeadWindows(dilated_windows(call))); }},
    {kAsSettingsSay,
     [](auto& call) {
       if (call.settings.strided > 1) call.keep(mask::Strided(call.settings.strided));
     }},
};

// The tensor of a part, and room for its gradient.
template <class T>
PartViews<T> views_of(AttentionCall<T>& call, const AttentionPart& part) {
  const Tensor* const tensor = call.tensors.find(part.tensor);
  if (tensor == nullptr) return {};
  const std::string_view name = part.tensor;
  const int axes = tensor->shape().axes();
  if (axes == 4) {
    return {.scores = call.real_scores(name), .dscores = call.gradient_scores_out(name)};
  }
  if (axes == 2) {
    return {.values = call.real_rows(name), .gradient = call.gradient_rows_out(name)};
  }
  const Vec<const T> values = call.reals(name);
  const Vec<T> gradient = call.gradient_out(name);
  return {.values = {values.data, 1, values.size}, .gradient = {gradient.data, 1, gradient.size}};
}

// Throws for what a score needs, and for what excludes it.
template <class T>
void check_score(const AttentionCall<T>& call) {
  for (const AttentionPart& part : attention_parts()) {
    if (part.score == call.settings.score) call.tensors.at(part.tensor);
  }
  if (call.settings.score != AttentionScoreKind::kConcat) return;
  if (call.tensors.find("shaw_k") == nullptr) return;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{}: shaw_k and --score concat exclude each other", call.tensors.where()),
              "shaw_k joins the keys of a product q.k, and w.[q; k] is none");
}

template <class T>
void see_top(AttentionCall<T>& call, std::string_view value) {
  const std::vector<index> count = parse_numbers(value, ',');
  if (count.size() != 1 || count[0] < 1) {
    fail_option("observe", fmt::format("topk={}", printable(value)), "topk=K, K at least 1");
  }
  const auto keys = call.template scores_out<std::int32_t>("topk_index", call.sizes.T, count[0]);
  call.see(observe::TopK(keys, call.scores_out("topk_weight", call.sizes.T, count[0])));
}

template <class T>
void see_rows(AttentionCall<T>& call, std::string_view value) {
  const std::vector<index> ends = parse_numbers(value, ':');
  if (ends.size() != 2 || ends[0] < 0 || ends[1] < ends[0] || ends[1] > call.sizes.T) {
    fail_option("observe", fmt::format("rows={}", printable(value)),
                fmt::format("rows=A:B, 0 <= A <= B <= T, which is {}", call.sizes.T));
  }
  const auto weights = call.scores_out("rows", ends[1] - ends[0], call.sizes.S);
  call.see(observe::SelectedRows(ends[0], ends[1], weights));
}

template <class T>
void see_dropout(AttentionCall<T>& call) {
  call.see(observe::DropoutKeep<T>(
      call.template scores_out<std::uint8_t>("dropout_keep", call.sizes.T, call.sizes.S)));
}

struct Observed {
  std::string_view name;
  std::string_view value;  // the value after "="; "": it takes no value
  Make<std::string_view> make;
  std::string_view example = {};  // of a value
};

constexpr Observed kObserved[] = {
    {"entropy", "", [](auto& call, auto) { call.see(observe::Entropy(call.rows_out("entropy"))); }},
    {"max", "", [](auto& call, auto) { call.see(observe::Maximum(call.rows_out("max"))); }},
    {"distance", "",
     [](auto& call, auto) { call.see(observe::Distance(call.rows_out("distance"))); }},
    {"topk", "K", [](auto& call, auto value) { see_top(call, value); }, "8"},
    {"column_mass", "",
     [](auto& call, auto) { call.see(observe::ColumnMass(call.key_rows_out("column_mass"))); }},
    {"weights", "",
     [](auto& call, auto) {
       const auto weights = call.scores_out("weights", call.sizes.T, call.sizes.S);
       call.see(observe::SelectedRows(0, call.sizes.T, weights));
     }},
    {"rows", "A:B", [](auto& call, auto value) { see_rows(call, value); }, "0:4"},
    {"dropout_keep", "", [](auto& call, auto) { see_dropout(call); }},
};

// The entry as --observe spells it.
std::string spelling_of(const Observed& observed) {
  return fmt::format("{}{}{}", observed.name, observed.value.empty() ? "" : "=", observed.value);
}

const Observed& observed_of(const ObserveWish& wish) {
  const Observed* found = find_named(kObserved, wish.name);
  if (found != nullptr && found->value.empty() == wish.value.empty()) return *found;
  std::vector<std::string> known;
  for (const Observed& observed : kObserved) known.emplace_back(observed.name);
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--observe: expected some of: {}; got {}", observed_names(),
                          printable(wish.value.empty() ? wish.name : wish.name + "=" + wish.value)),
              found == nullptr ? did_you_mean(wish.name, known)
              : found->value.empty()
                  ? "write " + spelling_of(*found)
                  : fmt::format("write --observe {}={}, for example", found->name, found->example));
}

}  // namespace

std::span<const TensorSpec> attention_tensor_specs() {
  static const std::vector<TensorSpec> specs = [] {
    std::vector<TensorSpec> all(std::begin(kOperands), std::end(kOperands));
    for (const MaskRow& mask : kMasks) {
      if (!mask.tensor.name.empty()) all.push_back(mask.tensor);
    }
    for (const AttentionPart& part : attention_parts()) {
      if (part.tensor.empty()) continue;
      all.push_back({.name = part.tensor, .axes = part.axes, .what = part.formula});
    }
    return all;
  }();
  return specs;
}

std::string observed_names() {
  std::string names;
  for (const Observed& observed : kObserved) {
    names += (names.empty() ? "" : ", ") + spelling_of(observed);
  }
  return names;
}

template <class T>
void add_parts(AttentionCall<T>& call) {
  const AttentionVariant variant = variant_of(call.settings);
  check_score(call);
  PartTensors<T> tensors{};
  for (std::size_t n = 0; n < attention_parts().size(); ++n) {
    tensors[n] = views_of(call, attention_parts()[n]);
  }
  for (const MaskRow& mask : kMasks) {
    const std::string_view tensor = mask.tensor.name;
    if (tensor.empty() || call.tensors.find(tensor) != nullptr) mask.make(call);
  }
  if (call.more != nullptr) call.more->add_masks(call);
  const Packed packed = call.attention.packed;
  call.attention = make_attention(variant, tensors, call.attention.mask);
  call.attention.packed = packed;
  if (call.more != nullptr) call.more->add_biases(call);
}

template <class T>
void add_observed(AttentionCall<T>& call) {
  for (const ObserveWish& wish : parse_observe(call.settings.observe)) {
    observed_of(wish).make(call, wish.value);
  }
}

template void add_parts(AttentionCall<float>&);
template void add_parts(AttentionCall<double>&);
template void add_observed(AttentionCall<float>&);
template void add_observed(AttentionCall<double>&);

}  // namespace fovea
