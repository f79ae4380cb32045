// SPDX-License-Identifier: Apache-2.0
#include "python/extension/classifier.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/explain/shown.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/text_predictor.h"
#include "fovea/task/explain.h"
#include "python/extension/arrays.h"
#include "python/extension/model_call.h"
#include "python/extension/option_rows.h"
#include "python/extension/signals.h"

namespace nb = nanobind;

namespace fovea::python {

namespace {

using Values = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// A classifier in memory. Several threads of Python may use it at once.
class ClassifierModel {
 public:
  ClassifierModel(const std::string& folder, const std::string& precision,
                  const std::vector<std::string>& adapters)
      : precision_(precision_from(precision)), loaded_(load(folder, adapters)) {
    if (!loaded_.reads_frames() && !loaded_.reads_pairs()) return;
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: the model reads {}", folder,
                            loaded_.reads_pairs() ? "pairs of texts" : "arrays of numbers"),
                fmt::format("use the command: fovea {} DIR FILE",
                            loaded_.reads_pairs() ? "pairs" : "classify"));
  }

  nb::object predict(const std::vector<std::string>& texts, int threads) const {
    return array_of(while_others_run(
        [&] { return TextPredictor(context_with(threads), loaded_).predict_all(texts); }));
  }

  std::vector<std::vector<index>> choose(const Values& values, const Texts& options) const {
    const auto choice = options_from<PredictionChoice>(options);
    check_options(choice);
    std::vector<std::vector<index>> chosen;
    for (std::size_t i = 0; i < values.shape(0); ++i) {
      chosen.push_back(chosen_labels(answers(), row(values, i), choice));
    }
    return chosen;
  }

  std::vector<double> numbers(const Values& values) const {
    std::vector<double> numbers;
    for (std::size_t i = 0; i < values.shape(0); ++i) {
      numbers.push_back(std::stod(number_text(row(values, i)[0], loaded_.numbers)));
    }
    return numbers;
  }

  std::string explain(const std::string& text, const Texts& options, int threads) const {
    const auto wanted = options_from<ExplainOptions>(options);
    const auto view = options_from<ExplainView>(options);
    return while_others_run([&] {
      const Explanation explanation = explain_text(context_with(threads), loaded_, text, wanted);
      check_view(view, explanation);
      std::string json;
      write_json(explanation, view, [&](std::string_view piece) {
        json += piece;
        return true;
      });
      return json;
    });
  }

  const std::vector<std::string>& labels() const { return loaded_.labels; }
  std::string task() const { return std::string(to_string(loaded_.config().task)); }

 private:
  static LoadedClassifier load(const std::string& folder,
                               const std::vector<std::string>& adapters) {
    const nb::gil_scoped_release others_run;
    return load_classifier(folder, InputKind::kText, adapters);
  }

  static Vec<const float> row(const Values& values, std::size_t i) {
    const auto classes = static_cast<index>(values.shape(1));
    return {values.data() + static_cast<index>(i) * classes, classes};
  }

  ClassifierAnswers answers() const {
    return {loaded_.config().task, loaded_.labels, loaded_.numbers, loaded_.thresholds()};
  }
  Context context_with(int threads) const { return Context(threads).with(precision_); }

  Precision precision_;
  LoadedClassifier loaded_;
};

}  // namespace

void bind_classifier(nb::module_& m) {
  nb::class_<ClassifierModel>(m, "ClassifierModel", "A classifier in memory.")
      .def(nb::init<const std::string&, const std::string&, const std::vector<std::string>&>(),
           nb::arg("folder"), nb::arg("precision"), nb::arg("adapters"))
      .def("predict", &ClassifierModel::predict, nb::arg("texts"), nb::arg("threads"),
           "[texts, classes]: probabilities, or numbers in the unit of the model.")
      .def("choose", &ClassifierModel::choose, nb::arg("values"), nb::arg("options"),
           "The labels of each text, the likeliest first, by their number.")
      .def("numbers", &ClassifierModel::numbers, nb::arg("values"), "The number of each text.")
      .def("explain", &ClassifierModel::explain, nb::arg("text"), nb::arg("options"),
           nb::arg("threads"), "The JSON object of `fovea explain`.")
      .def("labels", &ClassifierModel::labels, "The labels in the order of the outputs.")
      .def("task", &ClassifierModel::task, "binary, single-label, multi-label or regression.");
  m.def("classifier_options", &option_rows<ClassifierSettings>,
        "(name, what it must be, what it does) of each option of training a classifier.");
  m.def("table_options", &option_rows<TableOptions>, "The same of files of labelled texts.");
}

}  // namespace fovea::python
