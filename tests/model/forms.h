// SPDX-License-Identifier: Apache-2.0
// Models of every form.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/model/support.h"

namespace fovea {

// Every choice that a configuration offers appears in one of these, or in forms_of_attention().
inline std::vector<LanguageModelConfig> forms_of_blocks() {
  std::vector<LanguageModelConfig> all(4, small_config());
  all[1].position = PositionKind::kSinusoidal;
  all[1].norm = NormKind::kRms;
  all[1].activation = LayerActivation::kSilu;
  all[1].kv_heads = 1;
  all[1].tie = false;
  all[2].position = enum_from_name<PositionKind>("alibi");
  all[2].norm_position = NormPosition::kPost;
  all[2].ln_variant = LayerNormVariant::kUnbiased;
  all[2].bias = true;
  all[2].activation = LayerActivation::kGeluTanh;
  all[2].head_dim = 3;
  all[3].position = PositionKind::kNone;
  all[3].bias = true;
  all[3].tie = false;
  all[3].activation = LayerActivation::kRelu;
  all.push_back(small_config());
  all[4].activation = LayerActivation::kSwiglu;
  all[4].ff = 12;
  all.push_back(small_config());
  all[5].activation = LayerActivation::kGeglu;
  all[5].bias = true;
  return all;
}

inline std::vector<LanguageModelConfig> forms_of_attention() {
  std::vector<LanguageModelConfig> all;
  const auto add = [&](void (*change)(LanguageModelConfig&)) {
    change(all.emplace_back(small_config()));
  };
  add([](LanguageModelConfig& c) {
    c.position = enum_from_name<PositionKind>("t5");
    c.t5_buckets = 4;
    c.t5_max_distance = 6;
    c.log_n_scale = true;
    c.sink = true;
  });
  add([](LanguageModelConfig& c) {
    c.position = enum_from_name<PositionKind>("shaw");
    c.shaw_clip = 2;
    c.softcap = 3;
  });
  add([](LanguageModelConfig& c) {
    c.position = PositionKind::kRotary;
    c.rope_base = 100;
    c.kv_heads = 1;
    c.window = "2";
  });
  add([](LanguageModelConfig& c) {
    c.position = PositionKind::kRotary;
    c.score = AttentionScoreKind::kCosine;
    c.attention_norm = AttentionNormKind::kSigmoid;
  });
  add([](LanguageModelConfig& c) {
    c.position = enum_from_name<PositionKind>("alibi");
    c.score = AttentionScoreKind::kAdditive;
    c.sink = true;
    c.window = "3";
  });
  add([](LanguageModelConfig& c) { c.score = AttentionScoreKind::kConcat; });
  add([](LanguageModelConfig& c) {
    c.score = AttentionScoreKind::kL2;
    c.attention_norm = AttentionNormKind::kNone;
  });
  add([](LanguageModelConfig& c) {
    c.position_join = PositionJoin::kConcatenate;
    c.position_max = 20;
    c.qk_norm = true;
    c.kv_heads = 1;
  });
  add([](LanguageModelConfig& c) {
    c.position = PositionKind::kSinusoidal;
    c.position_join = PositionJoin::kConcatenate;
    c.sinusoid = SinusoidOrder::kCosSin;
  });
  add([](LanguageModelConfig& c) {
    c.position = PositionKind::kRotary;
    c.qk_norm = true;
    c.softcap = 5;
  });
  add([](LanguageModelConfig& c) {  // as Gemma
    c.position = PositionKind::kRotary;
    c.rope_base = 1000;
    c.rope_local_base = 10;
    c.window = "2,0";
    c.layers = 2;
    c.score_scale = 0.7;
    c.softcap = 2;
    c.logit_softcap = 0.5;
    c.norm = NormKind::kRms;
    c.norm_position = NormPosition::kSandwich;
    c.norm_epsilon = 0.01;  // else the norms are too curved for finite differences
    c.activation = LayerActivation::kGegluTanh;
    c.embedding_scale = 3;
  });
  return all;
}

// Models that are no Transformer. Their blocks are longer than any text here, for what carries a
// state never moves a window.
inline std::vector<LanguageModelConfig> forms_of_encoders() {
  std::vector<LanguageModelConfig> all;
  const auto add = [&](LanguageModelKind kind) -> LanguageModelConfig& {
    LanguageModelConfig& c = all.emplace_back(small_config());
    c.kind = kind;
    c.position = PositionKind::kNone;
    c.block = 64;
    return c;
  };
  for (const auto kind : {LanguageModelKind::kRnn, LanguageModelKind::kGru,
                          LanguageModelKind::kLstm, LanguageModelKind::kSru}) {
    add(kind);
  }
  add(LanguageModelKind::kAttentionRnn).heads = 1;
  auto& heads = add(LanguageModelKind::kAttentionRnn);
  heads.window = "3";
  heads.tie = false;
  heads.bias = true;
  add(LanguageModelKind::kAttentionRnn).compat = "sum-weights,history-only";
  auto& past = add(LanguageModelKind::kAttentionRnn);
  past.compat = "history-only";
  past.window = "2";
  for (const char* layers :
       {"conv3:activation=gelu,attention:heads=2:window=4,lstm",
        "conv2:gated:dilation=2,gru:residual,ff:ff=6",
        "conv3:activation=silu+sru+attention:plain:position=alibi,transformer:layers=2",
        "attention-rnn:heads=2:window=2,conv1:plain", "dwconv4,attention,dwconv2:plain",
        "attention:no-output:scale=1:plain,attention:no-output:heads=2",
        "attention:dilation=2:window=2,transformer:strided=3", "transformer:dilation=3"}) {
    add(LanguageModelKind::kEncoder).encoder = layers;
  }
  auto& wide = add(LanguageModelKind::kEncoder);
  wide.encoder = "lstm:6:layers=2,conv3:10";
  wide.tie = false;
  wide.init = InitScheme::kSource;
  auto& sandwich = add(LanguageModelKind::kEncoder);
  sandwich.encoder = "conv2,attention:heads=2:window=4,ff";
  sandwich.norm_position = NormPosition::kSandwich;
  sandwich.norm_epsilon = 0.01;
  sandwich.logit_softcap = 2;
  auto& learned = add(LanguageModelKind::kGru);
  learned.position = PositionKind::kLearned;
  return all;
}

inline std::vector<LanguageModelConfig> forms() {
  std::vector<LanguageModelConfig> all = forms_of_blocks();
  for (const LanguageModelConfig& c : forms_of_attention()) all.push_back(c);
  for (const LanguageModelConfig& c : forms_of_encoders()) all.push_back(c);
  // And every position that none of them has.
  for (const auto& [position, name] : enum_names(PositionKind{})) {
    const auto has = [&](const LanguageModelConfig& c) { return c.position == position; };
    if (std::any_of(all.begin(), all.end(), has)) continue;
    all.emplace_back(small_config()).position = position;
  }
  for (auto& c : all) c.dropout = 0.1;
  return all;
}

}  // namespace fovea
