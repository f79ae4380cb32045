// SPDX-License-Identifier: Apache-2.0
#include "fovea/parts/part_table.h"

#include <iterator>
#include <string>

#include "fovea/parts/axes.h"

namespace fovea {

namespace {

template <class T>
Score<T> score_of(const AttentionVariant& variant) {
  switch (variant.score) {
    case AttentionScoreKind::kCosine:
      return score::Cosine{variant.scale};
    case AttentionScoreKind::kL2:
      return score::L2{variant.scale};
    case AttentionScoreKind::kAdditive:
      return score::Additive<T>{.v = {}, .scale = variant.scale};
    case AttentionScoreKind::kConcat:
      return score::Concat<T>{.w = {}, .scale = variant.scale};
    case AttentionScoreKind::kDot:
      break;
  }
  return score::Dot{variant.scale};
}

Norm norm_of(AttentionNormKind kind) {
  switch (kind) {
    case AttentionNormKind::kSigmoid:
      return norm::Sigmoid();
    case AttentionNormKind::kNone:
      return norm::None();
    case AttentionNormKind::kSoftmax:
      break;
  }
  return norm::Softmax();
}

// Throws if the tensor of one score is given with another score.
void require_score(const AttentionVariant& variant, const AttentionPart& part) {
  if (variant.score == part.score.value_or(variant.score)) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("attention: {} is there, and the score is {}", part.tensor,
                          to_string(variant.score)),
              fmt::format("say --score {}, or leave the tensor out", to_string(*part.score)));
}

template <class T, class Part>
void add_bias(Attention<T>& attention, Part part) {
  attention.bias = attention.bias + Bias<T>(std::move(part));
}

template <class T>
void add_t5(Attention<T>& attention, const PartViews<T>& views, const AttentionVariant& variant) {
  using bias::T5Direction;
  const bias::T5Options options{
      .direction = variant.t5_causal ? T5Direction::kCausal : T5Direction::kBidirectional,
      .max_distance = variant.t5_max_distance};
  add_bias(attention, bias::T5(views.values, views.gradient, options));
}

constexpr AttentionPart kParts[] = {
    {.tensor = "score_v",
     .axes = "H D",
     .formula = "s_ij = scale v_h . t_ij",
     .source = {"Bahdanau et al.", 2015},
     .add =
         []<class T>(Attention<T>& attention, const PartViews<T>& views,
                     const AttentionVariant& variant) {
           attention.score = score::Additive<T>{views.values, views.gradient, variant.scale};
         },
     .start = PartStart::kNormal,
     .score = AttentionScoreKind::kAdditive},
    {.tensor = "score_w",
     .axes = "H 2D",
     .formula = "s_ij = scale w_h . [q_i; k_j]",
     .source = {"Luong et al.", 2015},
     .add =
         []<class T>(Attention<T>& attention, const PartViews<T>& views,
                     const AttentionVariant& variant) {
           attention.score = score::Concat<T>{views.values, views.gradient, variant.scale};
         },
     .start = PartStart::kNormal,
     .score = AttentionScoreKind::kConcat},
    {.tensor = "shaw_k",
     .axes = "2s+1 D",
     .formula = "s_ij <- s_ij + scale q_i . A[r_ij]",
     .source = {"Shaw et al.", 2018},
     .add =
         [](auto& attention, const auto& views, const AttentionVariant& variant) {
           add_bias(attention, bias::Shaw(views.values, views.gradient, variant.order));
         },
     .start = PartStart::kNormal,
     .position = "shaw-keys"},
    {.tensor = "",
     .axes = "",
     .formula = "s_ij <- s_ij log(n_i) / log(N)",
     .source = {"Su", 2021},
     .add =
         []<class T>(Attention<T>& attention, const PartViews<T>&,
                     const AttentionVariant& variant) {
           if (variant.log_n_scale == 0) return;
           add_bias(attention, bias::LogNScale<T>(variant.log_n_scale, attention.mask));
         }},
    {.tensor = "",
     .axes = "",
     .formula = "s <- C tanh(s / C)",
     .source = {"Gemma Team", 2024},
     .add =
         []<class T>(Attention<T>& attention, const PartViews<T>&,
                     const AttentionVariant& variant) {
           if (variant.softcap > 0) add_bias(attention, bias::Softcap<T>(variant.softcap));
         }},
    {.tensor = "bias",
     .axes = "B|1 H|1 T|1 S",
     .formula = "s_bhij <- s_bhij + A_bhij",
     .add =
         [](auto& attention, const auto& views, const AttentionVariant&) {
           add_bias(attention, bias::Dense(views.scores, views.dscores));
         }},
    {.tensor = "slopes",
     .axes = "H",
     .formula = "s_ij <- s_ij - m_h |p_i - j|",
     .source = {"Press et al.", 2022},
     .add =
         [](auto& attention, const auto& views, const AttentionVariant&) {
           add_bias(attention, bias::Alibi(views.vec(), views.gradient_vec()));
         },
     .start = PartStart::kSlopes,
     .position = "alibi"},
    {.tensor = "t5",
     .axes = "buckets H",
     .formula = "s_ij <- s_ij + E[bucket(j - p_i), h]",
     .source = {"Raffel et al.", 2020},
     .add = [](auto& attention, const auto& views,
               const AttentionVariant& variant) { add_t5(attention, views, variant); },
     .start = PartStart::kZeros,
     .position = "t5"},
    {.tensor = "kerple",
     .axes = "2 H",
     .formula = "s_ij <- s_ij - r1_h log(1 + r2_h |p_i - j|)",
     .source = {"Chi et al.", 2022},
     .add =
         [](auto& attention, const auto& views, const AttentionVariant&) {
           add_bias(attention, bias::Kerple(views.values, views.gradient));
         },
     .start = PartStart::kOnes,
     .position = "kerple",
     .range = {.least = bias::kKerpleLeast}},
    {.tensor = "kerple_power",
     .axes = "2 H",
     .formula = "s_ij <- s_ij - r1_h |p_i - j|^r2_h",
     .source = {"Chi et al.", 2022},
     .add =
         [](auto& attention, const auto& views, const AttentionVariant&) {
           add_bias(attention, bias::KerplePower(views.values, views.gradient));
         },
     .start = PartStart::kOnes,
     .position = "kerple-power",
     .range = {bias::kKerplePowerLeast, bias::kKerplePowerMost}},
    {.tensor = "shaw_v",
     .axes = "2s+1 Dv",
     .formula = "o_i = sum_j p_ij (v_j + B[r_ij])",
     .source = {"Shaw et al.", 2018},
     .add =
         [](auto& attention, const auto& views, const AttentionVariant& variant) {
           attention.values = values::Shaw(views.values, views.gradient, variant.order);
         },
     .start = PartStart::kNormal,
     .position = "shaw",
     .and_tensor = "shaw_k"},
    {.tensor = "sink",
     .axes = "H",
     .formula = "p_ij = exp(s_ij) / (exp(z_h) + sum_j exp(s_ij))",
     .source = {"Xiao et al.", 2023},
     .add =
         [](auto& attention, const auto& views, const AttentionVariant&) {
           attention.sink = {views.vec(), views.gradient_vec()};
         },
     .start = PartStart::kZeros},
};
static_assert(std::size(kParts) <= kMostAttentionParts);

}  // namespace

std::span<const AttentionPart> attention_parts() { return kParts; }

std::size_t part_number(std::string_view tensor) {
  for (std::size_t n = 0; n < std::size(kParts); ++n) {
    if (!tensor.empty() && kParts[n].tensor == tensor) return n;
  }
  throw Error(ErrorCode::kOptionValue, fmt::format("attention has no tensor named {}", tensor),
              "fovea attention --help lists the tensors of its parts");
}

std::vector<index> part_shape(const AttentionPart& part, const AttentionSizes& sizes, index own) {
  std::vector<index> shape;
  for (const std::string_view text : axis_words(part.axes)) {
    const AxisWord word = axis_word(text);
    shape.push_back(word.size(size_of_letter(word.letter, sizes, own)));
  }
  return shape;
}

template <class T>
Attention<T> make_attention(const AttentionVariant& variant, const PartTensors<T>& tensors,
                            const Mask& mask) {
  Attention<T> attention{
      .score = score_of<T>(variant),
      .mask = mask,
      .norm = norm_of(variant.norm),
      .rotary = {variant.rotary,
                 variant.rotary_base,
                 variant.rotary_first,
                 {variant.rotary_divisors.begin(), variant.rotary_divisors.end()},
                 variant.rotary_amplitude}};
  for (std::size_t n = 0; n < std::size(kParts); ++n) {
    if (!kParts[n].tensor.empty() && !tensors[n].is_given()) continue;
    require_score(variant, kParts[n]);
    kParts[n].add(attention, tensors[n], variant);
  }
  return attention;
}

template Attention<float> make_attention(const AttentionVariant&, const PartTensors<float>&,
                                         const Mask&);
template Attention<double> make_attention(const AttentionVariant&, const PartTensors<double>&,
                                          const Mask&);

}  // namespace fovea
