// SPDX-License-Identifier: Apache-2.0
// E13: what a token costs in a layer, forward and backward, by the length of its sequence.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "experiments/experiment.h"
#include "fovea/attention/mask/band.h"
#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/file.h"
#include "fovea/base/random.h"
#include "fovea/nn/encoder_layers.h"
#include "fovea/report/plot.h"

namespace fovea {

namespace {

constexpr index kWidth = 128, kHeads = 4, kWindow = 64;
constexpr index kTokens = 8192;  // of a call, however long its sequences are
constexpr std::array<index, 8> kLengths = {32, 64, 128, 256, 512, 1024, 2048, 4096};

std::unique_ptr<EncoderLayer> attention(index window, const ParameterScope& scope) {
  MultiHeadAttentionOptions o;
  o.width = kWidth;
  o.heads = kHeads;
  o.mask = mask::Causal();
  o.window = window;
  return attention_layer(o, {}, scope);
}

std::unique_ptr<EncoderLayer> recurrent(RecurrentKind kind, const ParameterScope& scope) {
  return recurrent_layer({.kind = kind, .in = kWidth, .hidden = kWidth}, {}, scope);
}

struct SpeedLayer {
  std::string_view name;
  std::unique_ptr<EncoderLayer> (*make)(const ParameterScope& scope);
  Ink ink;
  Stroke stroke = Stroke::kSolid;
};

constexpr std::array kLayers = {
    SpeedLayer{"lstm", [](const ParameterScope& s) { return recurrent(RecurrentKind::kLstm, s); },
               Ink::kOrange},
    SpeedLayer{"sru", [](const ParameterScope& s) { return recurrent(RecurrentKind::kSru, s); },
               Ink::kOrange, Stroke::kDashed},
    SpeedLayer{"convolution",
               [](const ParameterScope& s) {
                 return convolution_layer(
                     {.in = kWidth, .out = kWidth, .width = 3, .padding = Padding::kCausal}, {}, s);
               },
               Ink::kShade3},
    SpeedLayer{"attention", [](const ParameterScope& s) { return attention(0, s); }, Ink::kBlue},
    SpeedLayer{"attention of a window of 64",
               [](const ParameterScope& s) { return attention(kWindow, s); }, Ink::kBlue,
               Stroke::kDashed},
};

// A layer with sequences of one length, ready to be timed.
class Timed {
 public:
  Timed(const Context& context, const SpeedLayer& kind, index length)
      : set_({.seed = 1}), layer_(kind.make(ParameterScope(set_))), tape_(context) {
    for (index n = 0; n <= kTokens; n += length) offsets_.push_back(static_cast<std::int32_t>(n));
    Random random(1, RandomUse::kBatches);
    for (index n = 0; n < kTokens * kWidth; ++n) {
      x_.push_back(static_cast<float>(random.uniform(-1, 1)));
    }
  }

  // Seconds of a forward and a backward, of all weights and of x.
  double run() {
    for (Parameter* p : set_.parameters()) {
      p->clear_gradient();
      ++p->version;  // as after an update: packed copies are made anew
    }
    const double began = monotonic_seconds();
    tape_.reset();
    const Vec<const std::int32_t> offsets(offsets_.data(), static_cast<index>(offsets_.size()));
    const PackedRows rows = lay_out_rows(tape_, kTokens, offsets, {});
    const Variable x = tape_.input(Rows<const float>(x_.data(), kTokens, kWidth));
    tape_.backward(sum(tape_, layer_->forward(tape_, x, {rows})));
    return monotonic_seconds() - began;
  }

 private:
  ParameterSet set_;
  std::unique_ptr<EncoderLayer> layer_;
  Tape tape_;
  std::vector<std::int32_t> offsets_;
  std::vector<float> x_;
};

// Nanoseconds for a token of each layer: the median of rounds, in each of which they take turns.
std::array<double, kLayers.size()> time_of(const Context& context, index length, index rounds) {
  std::vector<std::unique_ptr<Timed>> layers;
  for (const SpeedLayer& kind : kLayers) {
    layers.push_back(std::make_unique<Timed>(context, kind, length));
    layers.back()->run();  // the first call touches new memory
  }
  std::vector<std::vector<double>> seconds(kLayers.size());
  for (index round = 0; round < rounds; ++round) {
    for (std::size_t n = 0; n < layers.size(); ++n) seconds[n].push_back(layers[n]->run());
  }
  std::array<double, kLayers.size()> result{};
  for (std::size_t n = 0; n < layers.size(); ++n) {
    result[n] = median(seconds[n]) * 1e9 / static_cast<double>(kTokens);
  }
  return result;
}

}  // namespace

void reproduce_speed(const Context& context, const ReproduceOptions& options,
                     const ReproduceObserver& observer) {
  create_folders(options.output);
  const index rounds = std::max<index>(1, std::lround(options.share * 9));
  Plot plot{.title = "E13: time for a token, forward and backward, width 128",
            .x_label = "log2 of the tokens of a sequence",
            .y_label = "nanoseconds for a token",
            .begins_at_zero = false};
  for (const SpeedLayer& kind : kLayers) {
    plot.curves.push_back({.name = std::string(kind.name), .ink = kind.ink, .stroke = kind.stroke});
  }
  for (const index length : kLengths) {
    if (observer.stop && observer.stop()) throw ReproduceStopped();
    if (observer.begins) observer.begins(fmt::format("E13: sequences of {} tokens", length));
    const auto times = time_of(context, length, rounds);
    for (std::size_t n = 0; n < times.size(); ++n) {
      plot.curves[n].points.push_back({std::log2(static_cast<double>(length)), times[n]});
      observer.measured({.experiment = "E13",
                         .variant = fmt::format("{}, {} tokens", kLayers[n].name, length),
                         .metric = "nanoseconds_per_token",
                         .ours = times[n]});
    }
  }
  write_file_atomically(options.output / "E13.svg", draw_svg(plot));
}

}  // namespace fovea
