// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/attention_parts.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/printable.h"
#include "fovea/config/suggest.h"

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
    {"q", "B T H D"}, {"k", "B S G D"}, {"v", "B S G Dv"}, {"do", "B T H Dv"}};

template <class T>
void choose_score(AttentionCall<T>& call) {
  const std::optional<double> scale = parse_scale(call.settings.scale);
  switch (call.settings.score) {
    case AttentionScoreKind::kDot:
      call.attention.score = score::Dot{scale};
      return;
    case AttentionScoreKind::kCosine:
      call.attention.score = score::Cosine{scale};
      return;
    case AttentionScoreKind::kL2:
      call.attention.score = score::L2{scale};
      return;
    case AttentionScoreKind::kAdditive:
      call.attention.score = score::Additive<T>{
          .v = call.real_rows("score_v"), .dv = call.gradient_rows_out("score_v"), .scale = scale};
      return;
    case AttentionScoreKind::kConcat:
      call.attention.score = score::Concat<T>{
          .w = call.real_rows("score_w"), .dw = call.gradient_rows_out("score_w"), .scale = scale};
  }
}

// Throws if a tensor of one score is given with another score.
template <class T>
void require_score(const AttentionCall<T>& call, AttentionScoreKind kind, std::string_view tensor) {
  if (call.settings.score == kind) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("attention: {} is there, and the score is {}", tensor,
                          to_string(call.settings.score)),
              fmt::format("say --score {}, or leave the tensor out", to_string(kind)));
}

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

template <class T>
void add_softcap(AttentionCall<T>& call) {
  if (call.settings.softcap > 0) call.add(bias::Softcap<T>(call.settings.softcap));
}

template <class T>
void add_shaw_keys(AttentionCall<T>& call) {
  if (call.settings.score == AttentionScoreKind::kConcat) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("{}: shaw_k and --score concat exclude each other", call.tensors.where()),
        "shaw_k joins the keys of a product q.k, and w.[q; k] is none");
  }
  call.add(
      bias::Shaw(call.real_rows("shaw_k"), call.gradient_rows_out("shaw_k"), call.settings.order));
}

template <class T>
void add_t5(AttentionCall<T>& call) {
  using bias::T5Direction;
  const AttentionSettings& settings = call.settings;
  call.add(bias::T5(
      call.real_rows("t5"), call.gradient_rows_out("t5"),
      {.direction = settings.t5_causal ? T5Direction::kCausal : T5Direction::kBidirectional,
       .max_distance = settings.t5_max_distance}));
}

template <class T>
void choose_norm(AttentionCall<T>& call) {
  switch (call.settings.norm) {
    case AttentionNormKind::kSoftmax:
      call.attention.norm = norm::Softmax();
      return;
    case AttentionNormKind::kSigmoid:
      call.attention.norm = norm::Sigmoid();
      return;
    case AttentionNormKind::kNone:
      call.attention.norm = norm::None();
  }
}

/// A part of the call. It is made if its tensor is given, or, without a tensor, from the settings.
struct Part {
  TensorSpec tensor;
  Make<> make;
};

constexpr TensorSpec kAsSettingsSay = {};
constexpr auto kWithItsPair = [](auto&) {};

// In the order in which biases are applied to a score.
constexpr Part kParts[] = {
    {kAsSettingsSay, [](auto& call) { choose_score(call); }},
    {{"score_v", "H D"},
     [](auto& call) { require_score(call, AttentionScoreKind::kAdditive, "score_v"); }},
    {{"score_w", "H 2D"},
     [](auto& call) { require_score(call, AttentionScoreKind::kConcat, "score_w"); }},
    {{"query_lengths", "B", TensorValues::kInt32},
     [](auto& call) { call.keep(mask::QueryLengths(call.ints("query_lengths"))); }},
    {{"key_lengths", "B", TensorValues::kInt32},
     [](auto& call) { call.keep(mask::KeyLengths(call.ints("key_lengths"))); }},
    {{"query_offsets", "N+1", TensorValues::kInt32, "key_offsets"},
     [](auto& call) { call.attention.packed.query_offsets = call.ints("query_offsets"); }},
    {{"key_offsets", "N+1", TensorValues::kInt32, "query_offsets"},
     [](auto& call) { call.attention.packed.key_offsets = call.ints("key_offsets"); }},
    {{"query_segments", "B T", TensorValues::kInt32, "key_segments"},
     [](auto& call) {
       call.keep(mask::Segments(call.int_rows("query_segments"), call.int_rows("key_segments")));
     }},
    {{"key_segments", "B S", TensorValues::kInt32, "query_segments"}, kWithItsPair},
    {{"keep", "B|1 H|1 T|1 S", TensorValues::kBytes},
     [](auto& call) { call.keep(mask::Keep(call.bytes("keep"))); }},
    {{"drop", "B|1 H|1 T|1 S", TensorValues::kBytes},
     [](auto& call) { call.keep(mask::Drop(call.bytes("drop"))); }},
    {kAsSettingsSay, [](auto& call) { keep_causal(call); }},
    {kAsSettingsSay, [](auto& call) { keep_window(call); }},
    {{"window", "H 2", TensorValues::kInt32},
     [](auto& call) { call.keep(mask::HeadWindows(dilated_windows(call))); }},
    {kAsSettingsSay,
     [](auto& call) {
       if (call.settings.strided > 1) call.keep(mask::Strided(call.settings.strided));
     }},
    {{"shaw_k", "2s+1 D"}, [](auto& call) { add_shaw_keys(call); }},
    {kAsSettingsSay, [](auto& call) { add_softcap(call); }},
    {{"bias", "B|1 H|1 T|1 S"},
     [](auto& call) {
       call.add(bias::Dense(call.real_scores("bias"), call.gradient_scores_out("bias")));
     }},
    {{"slopes", "H"},
     [](auto& call) { call.add(bias::Alibi(call.reals("slopes"), call.gradient_out("slopes"))); }},
    {{"t5", "buckets H"}, [](auto& call) { add_t5(call); }},
    {{"shaw_v", "2s+1 Dv"},
     [](auto& call) {
       call.attention.values = values::Shaw(call.real_rows("shaw_v"),
                                            call.gradient_rows_out("shaw_v"), call.settings.order);
     }},
    {kAsSettingsSay, [](auto& call) { choose_norm(call); }},
    {{"sink", "H"},
     [](auto& call) {
       call.attention.sink = {call.reals("sink"), call.gradient_out("sink")};
     }},
};

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
};

constexpr Observed kObserved[] = {
    {"entropy", "", [](auto& call, auto) { call.see(observe::Entropy(call.rows_out("entropy"))); }},
    {"max", "", [](auto& call, auto) { call.see(observe::Maximum(call.rows_out("max"))); }},
    {"distance", "",
     [](auto& call, auto) { call.see(observe::Distance(call.rows_out("distance"))); }},
    {"topk", "K", [](auto& call, auto value) { see_top(call, value); }},
    {"column_mass", "",
     [](auto& call, auto) { call.see(observe::ColumnMass(call.key_rows_out("column_mass"))); }},
    {"weights", "",
     [](auto& call, auto) {
       const auto weights = call.scores_out("weights", call.sizes.T, call.sizes.S);
       call.see(observe::SelectedRows(0, call.sizes.T, weights));
     }},
    {"rows", "A:B", [](auto& call, auto value) { see_rows(call, value); }},
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
              found != nullptr ? "write " + spelling_of(*found) : did_you_mean(wish.name, known));
}

}  // namespace

std::span<const TensorSpec> attention_tensor_specs() {
  static const std::vector<TensorSpec> specs = [] {
    std::vector<TensorSpec> all(std::begin(kOperands), std::end(kOperands));
    for (const Part& part : kParts) {
      if (!part.tensor.name.empty()) all.push_back(part.tensor);
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
  for (const Part& part : kParts) {
    const std::string_view tensor = part.tensor.name;
    if (tensor.empty() || call.tensors.find(tensor) != nullptr) part.make(call);
  }
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
