// SPDX-License-Identifier: Apache-2.0
#include "python/extension/translator.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fovea/base/words.h"
#include "fovea/task/run.h"
#include "fovea/task/translate/line_translator.h"
#include "fovea/task/translate/run.h"
#include "python/extension/model_call.h"
#include "python/extension/option_rows.h"
#include "python/extension/signals.h"

namespace nb = nanobind;

namespace fovea::python {

namespace {

/// A translator in memory. Several threads of Python may use it at once.
class TranslatorModel {
 public:
  TranslatorModel(const std::string& folder, const std::string& precision)
      : precision_(precision_from(precision)), loaded_(load(folder)) {}

  std::vector<std::string> translate(const std::vector<std::string>& lines, const Texts& given,
                                     int threads) const {
    const auto options = options_from(given, TranslationOptions{.search = loaded_.search});
    check_options(options);
    return while_others_run([&] {
      LineTranslator translator(Context(threads).with(precision_), *loaded_.model,
                                loaded_.vocabulary, options, "lines");
      std::vector<std::string> objects;
      constexpr std::size_t kAtOnce = LineTranslator::kLinesAtOnce;
      for (std::size_t begin = 0; begin < lines.size(); begin += kAtOnce) {
        const std::size_t end = std::min(begin + kAtOnce, lines.size());
        for (std::size_t i = begin; i < end; ++i) translator.add({lines[i], i + 1});
        const auto found = translator.translate();
        for (std::size_t i = begin; i < end; ++i) {
          objects.push_back(translation_json(lines[i], found[i - begin], options));
        }
      }
      return objects;
    });
  }

 private:
  static LoadedTranslator load(const std::string& folder) {
    const nb::gil_scoped_release others_run;
    return load_translator(folder);
  }

  Precision precision_;
  LoadedTranslator loaded_;
};

struct TranslatorRunChoices : RunChoices {
  TranslatorRunChoices() {
    presets = [] { return names_in(translator_presets(), "|"); };
  }
};

}  // namespace

void bind_translator(nb::module_& m) {
  nb::class_<TranslatorModel>(m, "TranslatorModel", "A translator in memory.")
      .def(nb::init<const std::string&, const std::string&>(), nb::arg("folder"),
           nb::arg("precision"))
      .def("translate", &TranslatorModel::translate, nb::arg("lines"), nb::arg("options"),
           nb::arg("threads"), "The JSON object of `fovea translate` of each line.");
  m.def("translator_options", &option_rows<TranslatorSettings>,
        "(name, what it must be, what it does) of each option of training a translator.");
  m.def("translator_run_options", &option_rows<TranslatorRunChoices>,
        "The same of how such a training runs.");
  m.def("translation_options", &option_rows<TranslationOptions>, "The same of translating.");
}

}  // namespace fovea::python
