// SPDX-License-Identifier: Apache-2.0
#include "python/extension/encoder.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "fovea/models.h"
#include "fovea/pretrained/sentence_model.h"
#include "fovea/task/embed/embedder.h"
#include "fovea/task/embed/sentence_encoder.h"
#include "python/extension/arrays.h"
#include "python/extension/model_call.h"
#include "python/extension/option_rows.h"
#include "python/extension/signals.h"

namespace nb = nanobind;

namespace fovea::python {

namespace {

/// An encoder in memory. Several threads of Python may use it at once.
class EncoderModel {
 public:
  EncoderModel(const std::string& folder, const std::string& precision,
               const std::vector<std::string>& adapters)
      : precision_(precision_from(precision)), loaded_(load(folder, adapters)) {}

  nb::object embed(const std::vector<std::string>& texts, const Texts& options, int threads) const {
    const EmbedRules rules = rules_of(options);
    return array_of(while_others_run([&] { return vectors_of(texts, rules, threads); }));
  }

  std::vector<double> similar(const std::vector<std::string>& first,
                              const std::vector<std::string>& second, const Texts& options,
                              int threads) const {
    const EmbedRules rules = rules_of(options);
    return while_others_run([&] {
      const Tensor a = vectors_of(first, rules, threads), b = vectors_of(second, rules, threads);
      const auto row = [](const Tensor& of, index n) {
        const auto rows = of.rows<float>();
        return Vec<const float>(rows[n], rows.columns);
      };
      std::vector<double> cosines;
      for (index n = 0; n < std::ssize(first); ++n) cosines.push_back(cosine(row(a, n), row(b, n)));
      return cosines;
    });
  }

  index width() const { return loaded_.width(); }

 private:
  static SentenceModel load(const std::string& folder, const std::vector<std::string>& adapters) {
    const nb::gil_scoped_release others_run;
    return load_embedder(folder, adapters);
  }

  EmbedRules rules_of(const Texts& options) const {
    std::vector<std::string> said;
    for (const auto& [name, value] : options) said.push_back(name);
    return embed_rules(loaded_, options_from<EmbedOptions>(options), said);
  }

  Tensor vectors_of(const std::vector<std::string>& texts, const EmbedRules& rules,
                    int threads) const {
    return Embedder(Context(threads).with(precision_), loaded_, rules).embed_all(texts);
  }

  Precision precision_;
  SentenceModel loaded_;
};

// The name of its class in Python.
std::string kind_of_model(const std::string& path, const std::vector<std::string>& adapters) {
  switch (models::kind_of(path, adapters)) {
    case models::Kind::kLanguageModel:
      return "LanguageModel";
    case models::Kind::kEncoder:
      return "Encoder";
    case models::Kind::kClassifier:
      return "Classifier";
    case models::Kind::kTagger:
      return "Tagger";
    case models::Kind::kTranslator:
      return "Translator";
  }
  return {};
}

}  // namespace

void bind_encoder(nb::module_& m) {
  nb::class_<EncoderModel>(m, "EncoderModel", "An encoder in memory.")
      .def(nb::init<const std::string&, const std::string&, const std::vector<std::string>&>(),
           nb::arg("folder"), nb::arg("precision"), nb::arg("adapters"))
      .def("embed", &EncoderModel::embed, nb::arg("texts"), nb::arg("options"), nb::arg("threads"),
           "[texts, columns].")
      .def("similar", &EncoderModel::similar, nb::arg("first"), nb::arg("second"),
           nb::arg("options"), nb::arg("threads"), "The cosine of each pair.")
      .def("width", &EncoderModel::width, "The columns of a vector.");
  m.def("kind_of_model", &kind_of_model, nb::arg("path"), nb::arg("adapters"),
        "The class of a model, by the content of its folder or file, and of its adapters.");
  m.def("embed_options", &option_rows<EmbedOptions>,
        "(name, what it must be, what it does) of each option of embedding.");
}

}  // namespace fovea::python
