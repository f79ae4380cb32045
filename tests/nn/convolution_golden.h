// SPDX-License-Identifier: Apache-2.0
// Outputs and gradients of convolutions: made by make_convolution_golden.py, with PyTorch's Conv1d
// in float64.
#pragma once

#include <vector>

#include "fovea/nn/convolution.h"

namespace fovea::golden {

/// Of one result: its norm, its product with golden_values(100 + its number), its largest element.
struct Numbers {
  double norm, projection, largest;
};

template <class Options>
struct Form {
  const char* name;
  Options options;
  double plain_largest;  ///< of PyTorch in float32: the largest relative error of any result
  std::vector<Numbers> results;  ///< the output, and gradients: of x, then of each parameter
};

inline const std::vector<Form<ConvolutionLayerOptions>> kConvolutions = {
    {"Same",
     {.in = 4, .out = 3, .width = 3, .padding = Padding::kSame, .dilation = 1, .gated = false},
     1.06e-07,
     {{2.141605053908018, 0.1814397354137327, 0.965},
      {1.5776249360143402, 0.3398385873715597, 0.562},
      {1.7522573216739628, -0.46573247340347734, 0.707},
      {1.6428174718774682, -1.1247030049562454, 1.3}}},
    {"SameEven",
     {.in = 3, .out = 5, .width = 4, .padding = Padding::kSame, .dilation = 1, .gated = false},
     4.86e-08,
     {{2.490815896050688, -0.7057801612791081, 0.939},
      {1.9130420746677035, 0.374900972492469, 0.679},
      {2.1735371856099, 0.9026992911440175, 0.613},
      {1.5505621584774614, -1.1474809348583221, 1.12}}},
    {"SameDilated",
     {.in = 5, .out = 2, .width = 4, .padding = Padding::kSame, .dilation = 3, .gated = false},
     5.28e-08,
     {{1.328050712482668, -0.5773777720060025, 0.491},
      {0.9711958153075767, -0.23049596075543377, 0.381},
      {1.0596178004238082, 0.18079615085298428, 0.564},
      {1.57690734910234, -0.9533803015947342, 1.21}}},
    {"Causal",
     {.in = 4, .out = 3, .width = 3, .padding = Padding::kCausal, .dilation = 1, .gated = false},
     1.06e-07,
     {{2.046023837784798, 0.15153602516329556, 0.965},
      {1.6103194116368915, -0.6134778989908227, 0.562},
      {1.6394035456492526, 0.529511602848288, 0.707},
      {1.6428174718774682, -1.1247030049562454, 1.3}}},
    {"CausalDilated",
     {.in = 3, .out = 4, .width = 3, .padding = Padding::kCausal, .dilation = 2, .gated = false},
     5.90e-08,
     {{1.6306822807165102, 0.06722215876288828, 0.505},
      {1.5658606898989866, -0.022812541803432396, 0.733},
      {1.312529076161916, 0.17323069465055596, 0.665},
      {2.818563793591401, -1.4897021055221558, 2.67}}},
    {"Point",
     {.in = 4, .out = 6, .width = 1, .padding = Padding::kSame, .dilation = 1, .gated = false},
     6.64e-08,
     {{1.8095526912156037, 0.6809952526054985, 0.661},
      {1.5575330837292798, 0.14112660084902018, 0.449},
      {1.7783177797722258, 0.0006127281994849909, 0.783},
      {3.008522905948505, -2.0992318391799927, 1.87}}},
    {"GatedSame",
     {.in = 4, .out = 3, .width = 5, .padding = Padding::kSame, .dilation = 1, .gated = true},
     1.39e-07,
     {{1.2372011124474576, 0.11981846418471793, 0.476},
      {0.9704171813813125, 0.36346727174810756, 0.492},
      {0.9973681461107077, -0.23363607605891396, 0.358},
      {0.8427396990319344, -0.5738561481930698, 0.569}}},
    {"GatedCausal",
     {.in = 3, .out = 4, .width = 2, .padding = Padding::kCausal, .dilation = 1, .gated = true},
     8.60e-08,
     {{0.9392334515808141, 0.15288999240926723, 0.345},
      {0.793733047540645, 0.15670160557793011, 0.255},
      {0.707123466043195, 0.15713618797633375, 0.351},
      {1.37033239539516, -0.7212701629942648, 1.3}}},
};

inline const std::vector<Form<TextCnnOptions>> kTextCnns = {
    {"WholeWindows",
     {.in = 4, .out = 3, .widths = {1, 2, 5}, .whole = true},
     4.41e-08,
     {{2.4099915976114707, 0.3051821382050548, 1.12},
      {1.092984339988021, 0.24506003140595567, 0.377},
      {0.6090870771269319, 0.6295290429388842, 0.367},
      {1.256759427816293, -0.8338117897510529, 1.04},
      {0.0, 0.0, 0},
      {0.0, 0.0, 0},
      {1.007548570970747, 0.27942736506338406, 0.338},
      {0.6383072164943052, -0.1476050317287445, 0.483}}},
    {"PaddedWindows",
     {.in = 4, .out = 3, .widths = {1, 2, 5}, .whole = false},
     4.41e-08,
     {{2.428839720087735, 0.31419034005921276, 1.12},
      {1.036331909388102, 0.29267797408283514, 0.377},
      {0.6090870771269319, 0.6295290429388842, 0.367},
      {1.256759427816293, -0.8338117897510529, 1.04},
      {0.0, 0.0, 0},
      {0.0, 0.0, 0},
      {1.021315824308507, 0.2856308175378217, 0.338},
      {0.6383072164943052, -0.1476050317287445, 0.483}}},
};
}  // namespace fovea::golden
