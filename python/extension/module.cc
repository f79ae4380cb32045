// SPDX-License-Identifier: Apache-2.0
// The extension fovea._fovea: a thin layer over the rooms. Users see python/fovea.
#include <nanobind/nanobind.h>

#include "fovea/base/context.h"
#include "fovea/base/version.h"
#include "python/extension/attention.h"
#include "python/extension/classifier.h"
#include "python/extension/encoder.h"
#include "python/extension/errors.h"
#include "python/extension/flex.h"
#include "python/extension/language_model.h"
#include "python/extension/sdpa.h"
#include "python/extension/tagger.h"
#include "python/extension/team.h"
#include "python/extension/traced.h"
#include "python/extension/translator.h"

namespace nb = nanobind;

NB_MODULE(_fovea, m) {
  m.doc() = "The part of fovea that is compiled. Use the package `fovea`.";
  // Objects that autograd still holds when Python ends are no leak of ours.
  nb::set_leak_warnings(false);
  fovea::python::translate_errors();
  m.def("available_cores", &fovea::available_cores, "The cores that this process may run on.");
  m.attr("VERSION") = FOVEA_VERSION;
  fovea::python::bind_team(m);
  fovea::python::bind_traced(m);
  fovea::python::bind_attention(m);
  fovea::python::bind_sdpa(m);
  fovea::python::bind_flex(m);
  fovea::python::bind_language_model(m);
  fovea::python::bind_classifier(m);
  fovea::python::bind_encoder(m);
  fovea::python::bind_tagger(m);
  fovea::python::bind_translator(m);
}
