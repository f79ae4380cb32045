// SPDX-License-Identifier: Apache-2.0
// How curves look: colours and strokes, as CSS classes.
#pragma once

#include <cstddef>
#include <string_view>

namespace fovea {

/// kShade0 to kShade5 are for what has an order, such as layers; kRun0 to kRun7 for what has none,
/// such as runs side by side.
enum class Ink {
  kBlue,
  kOrange,
  kShade0,
  kShade1,
  kShade2,
  kShade3,
  kShade4,
  kShade5,
  kRun0,
  kRun1,
  kRun2,
  kRun3,
  kRun4,
  kRun5,
  kRun6,
  kRun7,
};
inline constexpr int kShades = 6, kRunInks = 8;

/// How a curve is drawn. The strokes can be told apart without colour.
enum class Stroke {
  kFaint,   ///< thin and pale, for noisy data; it does not affect the range of the y axis
  kThin,    ///< one of many, such as a head of a layer; not in the legend, its name is a tooltip
  kDashed,  ///< likewise:
  kDotted,
  kSolid,  ///< bold, with a dot at each point; a tooltip gives its values
};

std::string_view class_of(Ink ink);
std::string_view class_of(Stroke stroke);

/// The colour of run n, and beyond the eighth run another stroke.
Ink ink_of_run(std::size_t n);
Stroke stroke_of_run(std::size_t n);

/// The CSS of these classes, a rule a line: on a light ground, and what changes on a dark one.
std::string_view plot_rules();
std::string_view plot_dark_rules();

}  // namespace fovea
