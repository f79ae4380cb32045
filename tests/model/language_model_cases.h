// SPDX-License-Identifier: Apache-2.0
// Language models of every kind of layer, for tests of what they take.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fovea/model/language_model.h"
#include "tests/model/support.h"

namespace fovea {

struct LanguageModelCase {
  std::string name;
  LanguageModelConfig config;
  index sequences = 8, length = 48;
};

inline LanguageModelConfig small_language_model() {
  LanguageModelConfig c;
  c.layers = 3;
  c.heads = 4;
  c.width = 64;
  c.block = 48;
  c.vocabulary = 500;
  return c;
}

inline constexpr const char* kLanguageModelEncoders[] = {"rnn",
                                                         "gru",
                                                         "lstm",
                                                         "sru",
                                                         "lstm:layers=3",
                                                         "conv3",
                                                         "conv3:32,conv3:32,conv1",
                                                         "conv3:32:gated,conv1",
                                                         "lstm:32,ff,lstm:64",
                                                         "conv5:plain:gated",
                                                         "attention",
                                                         "attention:no-output:plain",
                                                         "attention:layers=2:plain",
                                                         "ff",
                                                         "attention-rnn",
                                                         "attention-rnn:heads=4",
                                                         "conv3,attention:window=8,lstm",
                                                         "conv3+lstm",
                                                         "conv3+lstm+gru",
                                                         "conv3+lstm+gru+rnn",
                                                         "ff+ff+ff",
                                                         "conv3:32+conv5:96",
                                                         "conv3:48+conv3:40",
                                                         "conv2:40+conv3:24+conv5:48,conv1",
                                                         "attention+ff+conv3",
                                                         "transformer,attention-rnn+lstm:32,ff",
                                                         "conv3:dilation=8",
                                                         "dwconv4,attention,dwconv7:plain:layers=2",
                                                         "conv5:32:dilation=8:gated,conv1",
                                                         "gru:layers=3:residual",
                                                         "gru:40,conv3:24,conv1",
                                                         "lstm:layers=4",
                                                         "sru:layers=3"};

inline std::vector<LanguageModelCase> language_model_cases() {
  std::vector<LanguageModelCase> all = {{"base", small_language_model()},
                                        {"source", source_config(), 8, 40}};
  const auto add = [&](const std::string& name, auto change) {
    LanguageModelCase c{name, small_language_model()};
    change(c.config);
    all.push_back(c);
  };
  add("relu", [](auto& c) { c.activation = LayerActivation::kRelu; });
  add("swiglu", [](auto& c) { c.activation = LayerActivation::kSwiglu; });
  add("rms", [](auto& c) { c.norm = NormKind::kRms; });
  add("post", [](auto& c) { c.norm_position = NormPosition::kPost; });
  add("sandwich", [](auto& c) { c.norm_position = NormPosition::kSandwich; });
  add("capped", [](auto& c) { c.logit_softcap = 5; });
  add("grouped", [](auto& c) { c.kv_heads = 1; });
  add("narrow heads", [](auto& c) { c.head_dim = 4; });
  add("wide heads", [](auto& c) { c.head_dim = 48; });
  add("ff", [](auto& c) { c.ff = 700; });
  add("dropout", [](auto& c) { c.dropout = 0.1; });
  add("alibi", [](auto& c) { c.position = enum_from_name<PositionKind>("alibi"); });
  add("untied", [](auto& c) { c.tie = false, c.bias = true; });
  add("one layer", [](auto& c) { c.layers = 1; });
  add("deep", [](auto& c) { c.layers = 9, c.width = 32; });
  const auto encoder = [&](const char* layers) {
    add(layers, [=](auto& c) {
      c.kind = LanguageModelKind::kEncoder;
      c.encoder = layers;
      c.position = PositionKind::kNone;
    });
  };
  for (const char* layers : kLanguageModelEncoders) encoder(layers);
  for (LanguageModelCase& c : std::span(all).last(5)) c.config.dropout = 0.1;
  return all;
}

}  // namespace fovea
