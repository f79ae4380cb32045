// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/run_attention.h"

#include <filesystem>
#include <utility>
#include <variant>

#include "fovea/attention/call.h"
#include "fovea/attention/checks.h"
#include "fovea/attention/fused/tile_cover.h"
#include "fovea/attention/reference.h"
#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/operator/attention_call.h"
#include "fovea/operator/call_page.h"

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

}  // namespace fovea
