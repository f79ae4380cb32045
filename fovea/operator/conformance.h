// SPDX-License-Identifier: Apache-2.0
// Compares the fused operator on this machine with the expected results of a conformance kit.
#pragma once

#include <filesystem>
#include <string>

#include "fovea/base/context.h"
#include "fovea/operator/conformance_kit.h"

namespace fovea {

struct KitResult {
  std::string name;
  AttentionPrecision precision = AttentionPrecision::kFloat32;
  bool passed = false;
  double error = 0;
  double tolerance = 0;
  std::string tensor = {};
  std::string place = {};
  std::string problem = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("name", name, "the case");
    visit("precision", precision, "in which it was computed");
    visit("passed", passed, "whether every value is near enough");
    visit("error", error, "the largest");
    visit("tolerance", tolerance, "the largest that passes");
    visit("tensor", tensor, "where the largest error is");
    visit("place", place, "in it");
    visit("problem", problem, "why not all could be compared");
  }
};

/// Runs a case on the current instruction set, in float32 or float64, and compares every expected
/// tensor. If the operator rejects the call or does not compute a tensor, the case has not passed.
/// Throws what open_kit_file does.
KitResult check_kit_case(const Context& context, const std::filesystem::path& folder,
                         const KitCase& one, AttentionPrecision precision);

}  // namespace fovea
