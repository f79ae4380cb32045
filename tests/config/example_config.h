// SPDX-License-Identifier: Apache-2.0
// A configuration with a field of every type, and a nested one, for the tests of this room.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/base/types.h"

namespace fovea {

enum class Curve { kCosine, kInverseSqrt };
inline constexpr EnumName<Curve> kCurveNames[] = {{Curve::kCosine, "cosine"},
                                                  {Curve::kInverseSqrt, "inverse-sqrt"}};
inline std::span<const EnumName<Curve>> enum_names(Curve) { return kCurveNames; }

struct ExampleModel {
  int layers = 4;
  index head_dim = 64;
  bool bias = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("layers", layers, "number of layers");
    visit("head_dim", head_dim, "width of a head");
    visit("bias", bias, "add biases");
  }
  friend bool operator==(const ExampleModel&, const ExampleModel&) = default;
};

struct ExampleConfig {
  ExampleModel model;
  std::uint64_t seed = 1;
  float dropout = 0.1f;
  double lr = 1e-3;
  std::string stop_after = "10e";
  std::vector<std::string> train;
  Curve curve = Curve::kCosine;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("model", model, "what is trained");
    visit("seed", seed, "names the random numbers");
    visit("dropout", dropout, "probability of dropping");
    visit("lr", lr, "learning rate");
    visit("stop_after", stop_after, "when to stop");
    visit("train", train, "files to train on");
    visit("curve", curve, "how the learning rate falls");
  }
  friend bool operator==(const ExampleConfig&, const ExampleConfig&) = default;
};

inline ExampleConfig unusual_config() {
  return {.model = {.layers = -2, .head_dim = index{1} << 62, .bias = true},
          .seed = 0xffffffffffffffffu,
          .dropout = 0.3f,
          .lr = 1.0 / 3,
          .stop_after = "a\"b\\c\n\t\x01\u4e2d",
          .train = {"a b", "", "c,d"},
          .curve = Curve::kInverseSqrt};
}

}  // namespace fovea
