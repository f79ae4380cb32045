// SPDX-License-Identifier: Apache-2.0
// An explanation of a sample of numbers for a terminal.
#pragma once

#include <string>

#include "fovea/explain/text.h"
#include "fovea/report/terminal.h"

namespace fovea {

/// Which sample is explained, and what is shown of it. Samples, time steps and joints count from 0,
/// as the arrays do.
struct SampleView {
  index sample = 0;
  index joint = -1;
  index time = -1;
  std::string steps = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("sample", sample, "which sample of the file, from 0");
    visit("joint", joint,
          "show attention over time of this joint, from 0; -1: the mean of all joints");
    visit("time", time,
          "show attention over the joints of this time step, from 0; -1: the mean of all time "
          "steps");
    visit("steps", steps,
          "of a sample that is wider than the terminal, show time steps A to B, from 0; empty: the "
          "first",
          {.shown = "A-B"});
  }
};

/// Throws kOptionValue for a layer, a head, a joint or time steps that the explanation does not
/// have, and for --tokens.
void check_view(const ExplainView& view, const SampleView& sample, const Explanation& explanation);

/// The text, its lines at most `columns` wide (at least 60).
std::string sample_text(const Explanation& explanation, const ExplainView& view,
                        const SampleView& sample, const Terminal& terminal, index columns);

}  // namespace fovea
