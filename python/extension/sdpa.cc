// SPDX-License-Identifier: Apache-2.0
#include "python/extension/sdpa.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "fovea/attention/attention.h"
#include "python/extension/room.h"
#include "python/extension/row_type.h"
#include "python/extension/signals.h"
#include "python/extension/team.h"

namespace nb = nanobind;

namespace fovea::python {

namespace {

using Strides = std::array<index, 4>;

/// A tensor [B, H, L, D] of the caller without its address: sizes, strides in values. The last axis
/// is contiguous.
using Layout = std::tuple<std::array<index, 4>, Strides>;

/// The layouts of o, of the tensors that a backward needs, and of gradients.
using Layouts = nb::typed<nb::tuple, nb::any, nb::ellipsis>;
using Tensors = nb::typed<nb::tuple, nb::any, nb::ellipsis>;

/// (RowType, scale, is_causal, probability of dropout)
using Options = std::tuple<int, double, bool, double>;

/// 0: there is no such tensor, or it has no values.
using Address = std::uintptr_t;

template <class T>
View<T> view(Address address, const Layout& layout) {
  const auto& [size, stride] = layout;
  return {reinterpret_cast<T*>(address),
          size[0],
          size[2],
          size[1],
          size[3],
          stride[0],
          stride[2],
          stride[1]};
}

template <class T>
ScoreView<T> scores(Address address, const Layout& layout) {
  const auto& [size, stride] = layout;
  return {reinterpret_cast<T*>(address),
          size[0],
          size[1],
          size[2],
          size[3],
          stride[0],
          stride[1],
          stride[2]};
}

/// Room for a result: its layout, and what a tensor is asked for to make it.
struct Room {
  explicit Room(const nb::tuple& sizes_and_strides)
      : sizes(sizes_and_strides[0]),
        strides(sizes_and_strides[1]),
        layout(nb::cast<Layout>(sizes_and_strides)) {}
  /// `type`: another than the tensor's, or None.
  nb::object like(nb::handle tensor, const nb::object& type = nb::none()) const {
    const nb::object make = tensor.attr("new_empty_strided");
    return type.is_none() ? make(sizes, strides) : make(sizes, strides, nb::arg("dtype") = type);
  }
  nb::object sizes, strides;
  Layout layout;
};

Address address_of(nb::handle tensor) {
  return tensor.is_none() ? 0 : nb::cast<Address>(tensor.attr("data_ptr")());
}

template <std::size_t N>
std::array<Address, N> addresses_of(const nb::tuple& tensors, std::size_t first = 0) {
  std::array<Address, N> addresses;
  for (std::size_t n = 0; n < N; ++n) addresses[n] = address_of(tensors[first + n]);
  return addresses;
}

// To wake a worker takes about as long as so much work.
constexpr double kFlopsForTwo = 4e6;

/// The part that all calls with operands of the same types, sizes and strides share: at 40 tokens,
/// Python's work for each call would take as long as the attention.
class SdpaPlan {
 public:
  /// `mask` is absent, of bools, or of numbers. Gradients are those of q, k, v and such numbers.
  /// `type_of_saved`: of what a backward needs beside o, or None for that of q.
  SdpaPlan(const Options& options, bool mask_of_bools, const std::array<Layout, 3>& qkv,
           const std::optional<Layout>& mask, const Layouts& results, nb::object type_of_saved)
      : options_(options),
        mask_of_bools_(mask_of_bools),
        qkv_(qkv),
        mask_(mask.value_or(Layout{})),
        o_(nb::cast<nb::tuple>(results[0])),
        saved_(nb::cast<nb::tuple>(results[1])),
        type_of_saved_(std::move(type_of_saved)) {
    for (std::size_t n = 2; n < results.size(); ++n) {
      gradients_.emplace_back(nb::cast<nb::tuple>(results[n]));
    }
    const auto& [B, H, T, D] = std::get<0>(qkv[0]);
    const auto& [batch, G, S, Dv] = std::get<0>(qkv[2]);
    flops_ = 2.0 * static_cast<double>(B * H * T * S) * static_cast<double>(D + Dv);
  }

  /// o, and what a backward needs, [2, B, H, T]: lse and its rounding error. `operands` are q, k, v
  /// and the mask or None.
  std::pair<nb::object, nb::object> forward(const Tensors& operands, std::uint64_t seed,
                                            int threads) const {
    const nb::handle q = operands[0];
    std::pair<nb::object, nb::object> results(o_.like(q), saved_.like(q, type_of_saved_));
    const auto in = addresses_of<4>(operands);
    const Address o = address_of(results.first), saved = address_of(results.second);
    while_others_run([&] {
      const Context context = context_of(flops_ < kFlopsForTwo ? 1 : threads);
      with_row_type(std::get<0>(options_), [&]<class T>(T) {
        prepare<T>(o, o_);
        forward_in<T>(in, o, saved, seed, context);
      });
    });
    return results;
  }

  /// The gradients of q, k, v and the mask, or None where they are not needed. `saved` are the
  /// operands and the results of the forward.
  Tensors backward(const Tensors& saved, nb::object d_o, const Tensors& needed, std::uint64_t seed,
                   int threads) const {
    Strides strides = nb::cast<Strides>(d_o.attr("stride")());
    if (strides[3] != 1 && std::get<0>(o_.layout)[3] > 1) {
      d_o = d_o.attr("contiguous")();
      strides = nb::cast<Strides>(d_o.attr("stride")());
    }
    std::array<nb::object, 4> gradients;
    for (std::size_t n = 0; n < gradients.size(); ++n) {
      const bool has = n < gradients_.size() && nb::cast<bool>(needed[n]);
      gradients[n] = has ? gradients_[n].like(saved[n]) : nb::none();
    }
    const nb::tuple results =
        nb::make_tuple(gradients[0], gradients[1], gradients[2], gradients[3]);
    const auto in = addresses_of<4>(saved);
    const std::array o_saved_do{address_of(saved[4]), address_of(saved[5]), address_of(d_o)};
    const auto out = addresses_of<4>(results);
    while_others_run([&] {
      const Context context = context_of(flops_ * 2.5 < kFlopsForTwo ? 1 : threads);
      with_row_type(std::get<0>(options_), [&]<class T>(T) {
        for (std::size_t n = 0; n < 3; ++n) prepare<T>(out[n], gradients_[n]);
        if (out[3] != 0) prepare<Wide<T>>(out[3], gradients_[3]);
        backward_in<T>(in, o_saved_do, strides, out, seed, context);
      });
    });
    return results;
  }

 private:
  template <class V>
  static void prepare(Address address, const Room& room) {
    const auto& size = std::get<0>(room.layout);
    if (address != 0) prepare_room(address, size[0] * size[1] * size[2] * size[3], sizeof(V));
  }

  template <class T>
  AttentionInputs<T> inputs(const std::array<Address, 4>& in) const {
    return {view<const T>(in[0], qkv_[0]), view<const T>(in[1], qkv_[1]),
            view<const T>(in[2], qkv_[2])};
  }

  template <class T>
  Attention<T> attention(Address mask, Address dmask, std::uint64_t seed) const {
    const auto& [row_type, scale, causal, dropout] = options_;
    Attention<T> attention;
    attention.score = score::Dot{.scale = scale};
    if (causal) attention.mask = mask::Causal(Align::kTopLeft);
    if (mask != 0 && mask_of_bools_) {
      attention.mask = attention.mask & mask::Keep(scores<const std::uint8_t>(mask, mask_));
    } else if (mask != 0) {
      attention.bias =
          bias::Dense<T>(scores<const T>(mask, mask_), scores<T>(dmask, gradients_[3].layout));
    }
    attention.dropout = {.probability = dropout, .seed = seed};
    return attention;
  }

  // lse, or with `low` its rounding error.
  template <class V>
  RowView<V> rows(Address saved, bool low) const {
    const auto& [B, H, T_, Dv] = std::get<0>(o_.layout);
    return RowView<V>::contiguous(reinterpret_cast<V*>(saved) + (low ? B * H * T_ : 0), B, H, T_);
  }

  template <class T>
  void forward_in(const std::array<Address, 4>& in, Address o, Address saved, std::uint64_t seed,
                  const Context& context) const {
    using W = Wide<T>;
    const AttentionOutputs<T> out{
        .o = view<T>(o, o_.layout), .lse = rows<W>(saved, false), .lse_low = rows<W>(saved, true)};
    attention_forward(context, attention<W>(in[3], 0, seed), inputs<T>(in), out);
  }

  template <class T>
  void backward_in(const std::array<Address, 4>& in, const std::array<Address, 3>& o_saved_do,
                   const Strides& strides, const std::array<Address, 4>& gradients,
                   std::uint64_t seed, const Context& context) const {
    using W = Wide<T>;
    const auto& [o, saved, d_o] = o_saved_do;
    const AttentionSaved<T> of_forward{.o = view<const T>(o, o_.layout),
                                       .lse = rows<const W>(saved, false),
                                       .d_o = view<const T>(d_o, {std::get<0>(o_.layout), strides}),
                                       .lse_low = rows<const W>(saved, true)};
    const AttentionGradients<T> out{view<T>(gradients[0], gradients_[0].layout),
                                    view<T>(gradients[1], gradients_[1].layout),
                                    view<T>(gradients[2], gradients_[2].layout)};
    attention_backward(context, attention<W>(in[3], gradients[3], seed), inputs<T>(in), of_forward,
                       out);
  }

  Options options_;
  bool mask_of_bools_;
  std::array<Layout, 3> qkv_;
  Layout mask_;
  Room o_, saved_;
  nb::object type_of_saved_;
  std::vector<Room> gradients_;  // of q, k, v, and of a mask of numbers
  double flops_ = 0;             // of the forward
};

}  // namespace

void bind_sdpa(nb::module_& m) {
  nb::class_<SdpaPlan>(m, "SdpaPlan",
                       "scaled_dot_product_attention for operands of some sizes and strides.")
      .def(nb::init<const Options&, bool, const std::array<Layout, 3>&,
                    const std::optional<Layout>&, const Layouts&, nb::object>(),
           nb::arg("options"), nb::arg("mask_of_bools"), nb::arg("qkv"), nb::arg("mask").none(),
           nb::arg("results"), nb::arg("type_of_saved").none())
      .def("forward", &SdpaPlan::forward, nb::arg("operands"), nb::arg("seed"), nb::arg("threads"))
      .def("backward", &SdpaPlan::backward, nb::arg("saved"), nb::arg("do"), nb::arg("needed"),
           nb::arg("seed"), nb::arg("threads"));
}

}  // namespace fovea::python
