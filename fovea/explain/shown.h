// SPDX-License-Identifier: Apache-2.0
// An explanation as it is shown: in a terminal, as a page for a browser, as the JSON object of
// `fovea explain --json`. A terminal shows what the model says of a text, its heads, a heat map
// with the saliency; for a sample of numbers it has maps over time and over joints.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/explain/explanation.h"
#include "fovea/report/attention_page.h"
#include "fovea/report/terminal.h"

namespace fovea {

/// The view of an explanation: which layer and head are shown.
struct ExplainView {
  index layer = 0;
  index head = 0;
  std::string tokens = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("layer", layer,
          "show this layer of attention, from 1; 0: the last; with joints, the last over time and "
          "the last over joints; translators: the one that translate --alignments reads");
    visit("head", head, "show this head of --layer, from 1; 0: the mean of its heads");
    visit(
        "tokens", tokens,
        "of a text that is wider than the terminal, show tokens A to B; empty: the first, or of a "
        "language model the last; translators: columns of the map",
        {.shown = "A-B"});
  }
};

/// Throws kOptionValue for a layer, a head or tokens that the explanation does not have.
void check_view(const ExplainView& view, const Explanation& explanation);

/// The text, its lines at most `columns` wide (at least 60; words that are longer stand out).
std::string explanation_text(const Explanation& explanation, const ExplainView& view,
                             const Terminal& terminal, index columns);

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

/// The page: every layer and head, the saliency and the prediction. `model` names the model on the
/// page.
AttentionPage page_of(const Explanation& explanation, std::string_view model,
                      PageLanguage language);

/// Writes the JSON object in one line with its end, in pieces: the weights of all heads may be
/// large. It has the layers and heads of the view, or all. Once `write` returns false, nothing
/// more.
void write_json(const Explanation& explanation, const ExplainView& view,
                const std::function<bool(std::string_view)>& write);

/// Tokens, of which one may be a byte that is no text.
Json json_of_tokens(const std::vector<std::string>& tokens);

/// [rows, columns]
template <class T>
Json json_of_matrix(const T* values, std::size_t rows, std::size_t columns) {
  Json::Array array;
  for (std::size_t r = 0; r < rows; ++r) {
    array.emplace_back(Json::Array(values + r * columns, values + (r + 1) * columns));
  }
  return Json(std::move(array));
}

}  // namespace fovea
