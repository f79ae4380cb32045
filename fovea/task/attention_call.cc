// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/attention_call.h"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/printable.h"
#include "fovea/config/suggest.h"

namespace fovea {

namespace {

/// What a generic lambda does to a call, in either precision.
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

// Bounds that count the keys which a dilation keeps, in keys.
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

/// A part of the call: made where its tensor is there, or (without one) as the settings say.
struct Part {
  TensorSpec tensor;
  Make<> make;
};

constexpr TensorSpec kAsSettingsSay = {};
constexpr auto kWithItsPair = [](auto&) {};

// In the order in which biases are applied to a score.
constexpr Part kParts[] = {
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
    {kAsSettingsSay, [](auto& call) { add_softcap(call); }},
    {{"bias", "B|1 H|1 T|1 S"},
     [](auto& call) {
       call.add(bias::Dense(call.real_scores("bias"), call.gradient_scores_out("bias")));
     }},
    {{"slopes", "H"},
     [](auto& call) { call.add(bias::Alibi(call.reals("slopes"), call.gradient_out("slopes"))); }},
    {{"t5", "buckets H"}, [](auto& call) { add_t5(call); }},
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
  std::string_view value;  // what must stand behind "="; "": nothing may
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
       call.weights = call.scores_out("weights", call.sizes.T, call.sizes.S);
     }},
    {"rows", "A:B", [](auto& call, auto value) { see_rows(call, value); }},
    {"dropout_keep", "", [](auto& call, auto) { see_dropout(call); }},
};

// What --observe says of it.
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

void require_memory(std::string_view name, const Shape& shape, index value_bytes) {
  const double bytes = static_cast<double>(shape.size()) * static_cast<double>(value_bytes);
  const MemoryLimit memory = available_memory();
  if (bytes <= static_cast<double>(memory.bytes)) return;
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("attention: {} {} takes {:.0f} MiB; {:.0f} MiB are available ({})", name,
                          to_string(shape), bytes / (1 << 20),
                          static_cast<double>(memory.bytes) / (1 << 20), memory.reason),
              "ask for less to be seen, or for fewer rows");
}

// A tensor of four axes; V may be const.
template <class V, class AnyTensor>
ScoreView<V> scores_of(AnyTensor& tensor) {
  const Shape& s = tensor.shape();
  return ScoreView<V>::contiguous(tensor.template data<std::remove_const_t<V>>(), s[0], s[1], s[2],
                                  s[3]);
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
AttentionCall<T>::AttentionCall(const AttentionSettings& asked, const AttentionTensors& tensors)
    : settings(asked), sizes(tensors.sizes()), tensors_(tensors) {
  check_settings(settings);
  attention.score = score::Dot{parse_scale(settings.scale)};
  attention.dropout = {.probability = settings.dropout, .seed = settings.seed};
  if (settings.backward && tensors.find("do") == nullptr) {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: the tensor do is missing", tensors.where()),
                "--backward begins with do, the gradient of o");
  }
  in = {view("q"), view("k"), view("v")};
  add_parts();
  add_observed();
}

template <class T>
void AttentionCall<T>::add_parts() {
  for (const Part& part : kParts) {
    const std::string_view tensor = part.tensor.name;
    if (tensor.empty() || tensors_.find(tensor) != nullptr) part.make(*this);
  }
}

template <class T>
void AttentionCall<T>::add_observed() {
  for (const ObserveWish& wish : parse_observe(settings.observe)) {
    observed_of(wish).make(*this, wish.value);
  }
}

template <class T>
Tensor& AttentionCall<T>::new_out(std::string_view name, const Shape& shape, DType dtype) {
  require_memory(name, shape, byte_size(dtype));
  return out.emplace_back(NamedTensor{std::string(name), Tensor(shape, dtype)}).tensor;
}

template <class T>
View<T> AttentionCall<T>::view_out(std::string_view name, index length, index heads, index width) {
  T* data = new_out(name, {sizes.B, length, heads, width}).template data<T>();
  return View<T>::contiguous(data, sizes.B, length, heads, width);
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
Tensor& AttentionCall<T>::new_gradient(std::string_view name) {
  return new_out("d" + std::string(name), tensors_.at(name).shape());
}

template <class T>
Vec<T> AttentionCall<T>::gradient_out(std::string_view name) {
  return settings.backward ? new_gradient(name).template vec<T>() : Vec<T>{};
}

template <class T>
Rows<T> AttentionCall<T>::gradient_rows_out(std::string_view name) {
  return settings.backward ? new_gradient(name).template rows<T>() : Rows<T>{};
}

template <class T>
ScoreView<T> AttentionCall<T>::gradient_scores_out(std::string_view name) {
  return settings.backward ? scores_of<T>(new_gradient(name)) : ScoreView<T>{};
}

template <class T>
const Tensor& AttentionCall<T>::real(std::string_view name) {
  const Tensor& given = tensors_.at(name);
  if (given.dtype() == kDTypeOf<T>) return given;
  return kept_.emplace_back(NamedTensor{std::string(name), given.to(kDTypeOf<T>)}).tensor;
}

template <class T>
View<const T> AttentionCall<T>::view(std::string_view name) {
  const Tensor& tensor = real(name);
  const Shape& s = tensor.shape();
  return View<const T>::contiguous(tensor.data<T>(), s[0], s[1], s[2], s[3]);
}

template <class T>
Vec<const T> AttentionCall<T>::reals(std::string_view name) {
  return real(name).template vec<T>();
}

template <class T>
Rows<const T> AttentionCall<T>::real_rows(std::string_view name) {
  return real(name).template rows<T>();
}

template <class T>
ScoreView<const T> AttentionCall<T>::real_scores(std::string_view name) {
  return scores_of<const T>(real(name));
}

template <class T>
Vec<const std::int32_t> AttentionCall<T>::ints(std::string_view name) const {
  return tensors_.at(name).vec<std::int32_t>();
}

template <class T>
Rows<const std::int32_t> AttentionCall<T>::int_rows(std::string_view name) const {
  return tensors_.at(name).rows<std::int32_t>();
}

template <class T>
ScoreView<const std::uint8_t> AttentionCall<T>::bytes(std::string_view name) const {
  return scores_of<const std::uint8_t>(tensors_.at(name));
}

template <class T>
Rows<std::int32_t> AttentionCall<T>::int_rows_of(std::string_view name, index rows, index columns) {
  Tensor memory = Tensor::empty({rows, columns}, DType::kInt32);
  return kept_.emplace_back(NamedTensor{std::string(name), memory}).tensor.rows<std::int32_t>();
}

template class AttentionCall<float>;
template class AttentionCall<double>;

}  // namespace fovea
