// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/plot_style.h"

#include <algorithm>

namespace fovea {

namespace {

// Colours differ in lightness as well as in hue, so that they can be told apart in grey print and
// with common colour blindness.
constexpr std::string_view kRules = R"(.curve{fill:none;stroke-linejoin:round;stroke-linecap:round}
.faint{stroke-width:1;stroke-opacity:.38}
.thin{stroke-width:1;stroke-opacity:.45}
.bar{stroke-width:1.2;stroke-opacity:.7}
.dashed{stroke-width:1.8;stroke-dasharray:5 4;stroke-linecap:butt}
.dotted{stroke-width:2.2;stroke-dasharray:1 4}
.solid{stroke-width:2.6}
.band{stroke-width:0;fill-opacity:.16}
.resumed{stroke:#8c959f;stroke-dasharray:2 3}
.blue{stroke:#1f6fc4}
.orange{stroke:#d9570a}
.i0{stroke:#5e2a84}
.i1{stroke:#3b5fb0}
.i2{stroke:#17808c}
.i3{stroke:#2a9d4f}
.i4{stroke:#8f9a10}
.i5{stroke:#d9570a}
.r0{stroke:#1f6fc4}
.r1{stroke:#d9570a}
.r2{stroke:#8250df}
.r3{stroke:#1a7f37}
.r4{stroke:#bf3989}
.r5{stroke:#0f7b8a}
.r6{stroke:#8a5a00}
.r7{stroke:#57606a}
.band.blue,.band.r0{fill:#1f6fc4}
.band.orange,.band.r1{fill:#d9570a}
.band.r2{fill:#8250df}
.band.r3{fill:#1a7f37}
.band.r4{fill:#bf3989}
.band.r5{fill:#0f7b8a}
.band.r6{fill:#8a5a00}
.band.r7{fill:#57606a}
.dot{fill:#fff;stroke-width:1.8}
.ring{fill:none;stroke:#1f2328;stroke-width:1.6}
.leader{stroke:#1f2328;stroke-width:1;stroke-opacity:.6}
.mark{fill:#1f2328}
)";
constexpr std::string_view kDarkRules = R"(.faint{stroke-opacity:.5}
.blue{stroke:#58a6ff}
.orange{stroke:#ff9248}
.i0{stroke:#b98ae0}
.i1{stroke:#7f9ff0}
.i2{stroke:#4fc3cf}
.i3{stroke:#5fd08f}
.i4{stroke:#c8d84a}
.i5{stroke:#ff9248}
.r0{stroke:#58a6ff}
.r1{stroke:#ff9248}
.r2{stroke:#bc8cff}
.r3{stroke:#4ac26b}
.r4{stroke:#f778ba}
.r5{stroke:#39c5cf}
.r6{stroke:#d4a72c}
.r7{stroke:#9198a1}
.band{fill-opacity:.22}
.band.blue,.band.r0{fill:#58a6ff}
.band.orange,.band.r1{fill:#ff9248}
.band.r2{fill:#bc8cff}
.band.r3{fill:#4ac26b}
.band.r4{fill:#f778ba}
.band.r5{fill:#39c5cf}
.band.r6{fill:#d4a72c}
.band.r7{fill:#9198a1}
.resumed{stroke:#6e7681}
.dot{fill:#0d1117}
.ring{stroke:#f0f6fc}
.leader{stroke:#f0f6fc}
.mark{fill:#f0f6fc}
)";

}  // namespace

std::string_view class_of(Ink ink) {
  constexpr std::string_view kNames[] = {"blue", "orange", "i0", "i1", "i2", "i3", "i4", "i5",
                                         "r0",   "r1",     "r2", "r3", "r4", "r5", "r6", "r7"};
  return kNames[static_cast<std::size_t>(ink)];
}

std::string_view class_of(Stroke stroke) {
  constexpr std::string_view kNames[] = {"faint", "thin", "dashed", "dotted", "solid"};
  return kNames[static_cast<std::size_t>(stroke)];
}

Ink ink_of_run(std::size_t n) {
  return static_cast<Ink>(static_cast<std::size_t>(Ink::kRun0) + n % kRunInks);
}

Stroke stroke_of_run(std::size_t n) {
  constexpr Stroke kStrokes[] = {Stroke::kSolid, Stroke::kDashed, Stroke::kDotted};
  return kStrokes[std::min<std::size_t>(n / kRunInks, 2)];
}

std::string_view plot_rules() { return kRules; }
std::string_view plot_dark_rules() { return kDarkRules; }

}  // namespace fovea
