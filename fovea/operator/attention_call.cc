// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/attention_call.h"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fovea/attention/bfloat16.h"
#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/suggest.h"
#include "fovea/parts/part_table.h"

namespace fovea {

namespace {

// A tensor of four axes, one value after another; V may be const.
template <class V, class AnyTensor>
ScoreView<V> scores_of(AnyTensor& tensor) {
  const Shape& s = tensor.shape();
  return ScoreView<V>::contiguous(tensor.template data<std::remove_const_t<V>>(), s[0], s[1], s[2],
                                  s[3]);
}

// A tensor of four axes with the strides in which it was given.
template <class V>
ScoreView<V> given_scores_of(const GivenTensor& given) {
  ScoreView<V> view = scores_of<V>(given.tensor);
  if (!given.is_contiguous()) {
    view.batch_stride = given.strides[0];
    view.head_stride = given.strides[1];
    view.query_stride = given.strides[2];
  }
  return view;
}

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

template <class T>
AttentionCall<T>::AttentionCall(const AttentionSettings& asked, const AttentionTensors& given,
                                const MoreParts* also)
    : settings(asked), tensors(given), more(also), sizes(given.sizes()) {
  check_settings(settings);
  if (settings.backward && tensors.find("do") == nullptr) {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: the tensor do is missing", tensors.where()),
                "--backward begins with do, the gradient of o");
  }
  read_rows();
  add_parts(*this);
  attention.dropout = {.probability = settings.dropout, .seed = settings.seed};
  add_observed(*this);
}

template <class T>
void AttentionCall<T>::read_rows() {
  if constexpr (std::is_same_v<T, float>) {
    if (settings.precision == AttentionPrecision::kBFloat16) {
      rounded_ = {view<BFloat16>("q"), view<BFloat16>("k"), view<BFloat16>("v")};
      in = detail::float32_shapes(rounded_);
      return;
    }
  }
  in = {view("q"), view("k"), view("v")};
}

template <class T>
Tensor& AttentionCall<T>::new_out(std::string_view name, const Shape& shape, DType dtype) {
  require_memory(fmt::format("attention: {} {}", name, to_string(shape)),
                 static_cast<double>(shape.size()) * static_cast<double>(byte_size(dtype)),
                 "ask for less to be seen, or for fewer rows");
  return out.emplace_back(NamedTensor{std::string(name), Tensor(shape, dtype)}).tensor;
}

template <class T>
template <class V>
AttentionInputs<V> AttentionCall<T>::inputs() {
  if constexpr (std::is_same_v<V, T>) {
    return in;
  } else {
    return rounded_;
  }
}

template <class T>
template <class V>
View<V> AttentionCall<T>::view_out(std::string_view name, index length, index heads, index width) {
  V* data = new_out(name, {sizes.B, length, heads, width}, kDTypeOf<V>).template data<V>();
  return View<V>::contiguous(data, sizes.B, length, heads, width);
}

template <class T>
RowView<T> AttentionCall<T>::rows_out(std::string_view name) {
  T* data = new_out(name, {sizes.B, sizes.H, sizes.T}).template data<T>();
  return RowView<T>::contiguous(data, sizes.B, sizes.H, sizes.T);
}

template <class T>
RowView<T> AttentionCall<T>::key_rows_out(std::string_view name) {
  T* data = new_out(name, {sizes.B, sizes.H, sizes.S}).template data<T>();
  return RowView<T>::contiguous(data, sizes.B, sizes.H, sizes.S);
}

template <class T>
template <class V>
ScoreView<V> AttentionCall<T>::scores_out(std::string_view name, index rows, index columns) {
  return scores_of<V>(new_out(name, {sizes.B, sizes.H, rows, columns}, kDTypeOf<V>));
}

template <class T>
T* AttentionCall<T>::values_out(std::string_view name, const Shape& shape) {
  return new_out(name, shape).template data<T>();
}

template <class T>
Tensor& AttentionCall<T>::new_gradient(std::string_view name) {
  return new_out(fmt::format("d{}", name), tensors.at(name).shape());
}

template <class T>
bool AttentionCall<T>::is_learned(std::string_view name) const {
  const GivenTensor* const given = tensors.given(name);
  return settings.backward && given != nullptr && given->learns;
}

template <class T>
template <class V>
View<V> AttentionCall<T>::gradient_view_out(std::string_view name) {
  if (!is_learned(name)) return {};
  const Shape& s = tensors.at(name).shape();
  return view_out<V>(fmt::format("d{}", name), s[1], s[2], s[3]);
}

template <class T>
Vec<T> AttentionCall<T>::gradient_out(std::string_view name) {
  return is_learned(name) ? new_gradient(name).template vec<T>() : Vec<T>{};
}

template <class T>
Rows<T> AttentionCall<T>::gradient_rows_out(std::string_view name) {
  return is_learned(name) ? new_gradient(name).template rows<T>() : Rows<T>{};
}

template <class T>
ScoreView<T> AttentionCall<T>::gradient_scores_out(std::string_view name) {
  return is_learned(name) ? scores_of<T>(new_gradient(name)) : ScoreView<T>{};
}

template <class T>
const GivenTensor& AttentionCall<T>::real(std::string_view name, DType dtype) {
  tensors.at(name);  // throws if it is missing
  const GivenTensor& given = *tensors.given(name);
  if (given.tensor.dtype() == dtype) return given;
  return kept_.emplace_back(GivenTensor{given.name, contiguous(given).to(dtype)});
}

template <class T>
template <class V>
View<const V> AttentionCall<T>::view(std::string_view name) {
  const GivenTensor& given = real(name, kDTypeOf<V>);
  const Shape& s = given.tensor.shape();
  View<const V> view =
      View<const V>::contiguous(given.tensor.template data<V>(), s[0], s[1], s[2], s[3]);
  if (!given.is_contiguous()) {
    view.batch_stride = given.strides[0];
    view.length_stride = given.strides[1];
    view.head_stride = given.strides[2];
  }
  return view;
}

template <class T>
RowView<const T> AttentionCall<T>::rows(std::string_view name) {
  return RowView<const T>::contiguous(real(name).tensor.template data<T>(), sizes.B, sizes.H,
                                      sizes.T);
}

template <class T>
Vec<const T> AttentionCall<T>::reals(std::string_view name) {
  return real(name).tensor.template vec<T>();
}

template <class T>
Rows<const T> AttentionCall<T>::real_rows(std::string_view name) {
  return real(name).tensor.template rows<T>();
}

template <class T>
ScoreView<const T> AttentionCall<T>::real_scores(std::string_view name) {
  return given_scores_of<const T>(real(name));
}

template <class T>
Vec<const std::int32_t> AttentionCall<T>::ints(std::string_view name) const {
  return tensors.at(name).vec<std::int32_t>();
}

template <class T>
Rows<const std::int32_t> AttentionCall<T>::int_rows(std::string_view name) const {
  return tensors.at(name).rows<std::int32_t>();
}

template <class T>
ScoreView<const std::uint8_t> AttentionCall<T>::bytes(std::string_view name) const {
  tensors.at(name);  // throws if it is missing
  return given_scores_of<const std::uint8_t>(*tensors.given(name));
}

template <class T>
Rows<std::int32_t> AttentionCall<T>::int_rows_of(std::string_view name, index rows, index columns) {
  Tensor memory = Tensor::empty({rows, columns}, DType::kInt32);
  return kept_.emplace_back(GivenTensor{std::string(name), memory}).tensor.rows<std::int32_t>();
}

#define FOVEA_INSTANTIATE(T)                                                                     \
  template class AttentionCall<T>;                                                               \
  template ScoreView<T> AttentionCall<T>::scores_out(std::string_view, index, index);            \
  template ScoreView<std::int32_t> AttentionCall<T>::scores_out(std::string_view, index, index); \
  template ScoreView<std::uint8_t> AttentionCall<T>::scores_out(std::string_view, index, index);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

#define FOVEA_INSTANTIATE(T, V)                                                       \
  template AttentionInputs<V> AttentionCall<T>::inputs();                             \
  template View<V> AttentionCall<T>::view_out(std::string_view, index, index, index); \
  template View<V> AttentionCall<T>::gradient_view_out(std::string_view);             \
  template View<const V> AttentionCall<T>::view(std::string_view);
FOVEA_INSTANTIATE(float, float)
FOVEA_INSTANTIATE(double, double)
FOVEA_INSTANTIATE(float, BFloat16)
#undef FOVEA_INSTANTIATE

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
