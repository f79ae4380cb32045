// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/attention_call.h"

#include <string>
#include <type_traits>
#include <utility>

#include "fovea/attention/bfloat16.h"
#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/operator/attention_parts.h"

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

}  // namespace fovea
