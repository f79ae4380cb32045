// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/recurrent.h"

#include <array>
#include <string>

#include "fovea/kernel/sru.h"

namespace fovea {

RecurrentLayers::RecurrentLayers(const RecurrentLayersOptions& options, const ParameterScope& scope)
    : options_(options) {
  const auto& o = options_;
  check(o.in > 0 && o.hidden > 0 && o.layers > 0,
        "recurrent layers: sizes must be positive; in is {}, hidden {}, layers {}", o.in, o.hidden,
        o.layers);
  if (!(o.dropout >= 0 && o.dropout < 1)) {
    fail(ErrorCode::kOptionValue, "recurrent layers: dropout must be in [0, 1); it is {}",
         o.dropout);
  }
  for (index layer = 0; layer < o.layers; ++layer) {
    const index in = layer == 0 ? o.in : out();
    const std::string suffix = "_l" + std::to_string(layer);
    weights_.push_back(add_direction(in, suffix, scope));
    if (o.bidirectional) weights_.push_back(add_direction(in, suffix + "_reverse", scope));
  }
}

RecurrentLayers::Direction RecurrentLayers::add_direction(index in, const std::string& suffix,
                                                          const ParameterScope& scope) const {
  const index H = options_.hidden, blocks = input_blocks(options_.kind, in, H);
  const bool is_sru = options_.kind == RecurrentKind::kSru;
  const Init usual = linear_uniform_init(H);
  const Init weight = options_.weight.value_or(usual);
  const Init bias = options_.weight ? Init::zeros() : usual;
  Direction d{.weight_ih = &scope.add("weight_ih" + suffix, {blocks * H, in}, weight),
              .weight_hh = &scope.add("weight_hh" + suffix, {is_sru ? 2 : blocks * H, H}, weight)};
  if (options_.bias == Biases::kNone) return d;
  d.bias = &scope.add("bias" + suffix, {(is_sru ? 2 : blocks) * H}, bias, Decay::kNo);
  if (options_.kind == RecurrentKind::kLstm && !scope.shapes_only()) open_forget_gates(*d.bias);
  if (options_.kind == RecurrentKind::kGru) {
    d.bias_hn = &scope.add("bias_hn" + suffix, {H}, bias, Decay::kNo);
  }
  return d;
}

// Jozefowicz, Zaremba, Sutskever 2015, "An empirical exploration of recurrent network
// architectures": a cell whose forget gates start open keeps what it holds, and its gradient.
void RecurrentLayers::open_forget_gates(Parameter& bias) const {
  if (options_.forget_bias == 0) return;
  const index H = options_.hidden;
  with_type(bias.value.dtype(), [&]<class T>(std::type_identity<T>) {
    const Vec<T> all = bias.value.vec<T>();
    for (index h = H; h < 2 * H; ++h) all[h] += static_cast<T>(options_.forget_bias);
  });
}

Variable RecurrentLayers::run(Tape& tape, Variable x, index layer, const PackedRows& rows,
                              RecurrentState* state) const {
  std::array<RecurrentWeights, 2> weights;
  const auto count = static_cast<std::size_t>(directions());
  for (std::size_t d = 0; d < count; ++d) {
    const Direction& w = weights_[static_cast<std::size_t>(layer) * count + d];
    weights[d] = {tape.parameter(*w.weight_ih), tape.parameter(*w.weight_hh),
                  parameter_or_none(tape, w.bias), parameter_or_none(tape, w.bias_hn)};
  }
  return recurrent(tape, x, std::span(weights).first(count), rows,
                   {.kind = options_.kind, .state = state});
}

Variable RecurrentLayers::forward(Tape& tape, Variable x, const PackedRows& rows,
                                  const DropoutKey& key) const {
  for (index layer = 0; layer < options_.layers; ++layer) {
    if (layer > 0) {
      const DropoutKey mask{key.seed, key.step, key.layer + static_cast<std::uint32_t>(layer) - 1};
      x = dropout(tape, x, {options_.dropout, mask}, rows);
    }
    x = run(tape, x, layer, rows, nullptr);
  }
  return x;
}

Variable RecurrentLayers::forward(Tape& tape, Variable x, std::vector<RecurrentState>& states,
                                  const PackedRows& rows) const {
  states.resize(static_cast<std::size_t>(options_.layers));
  for (index layer = 0; layer < options_.layers; ++layer) {
    x = run(tape, x, layer, rows, &states[static_cast<std::size_t>(layer)]);
  }
  return x;
}

}  // namespace fovea
