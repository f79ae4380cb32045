// SPDX-License-Identifier: Apache-2.0
#include "python/extension/language_model.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/task/language_model/evaluate.h"
#include "fovea/task/language_model/generate.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/task/report/evaluation.h"
#include "fovea/task/run.h"
#include "fovea/task/task_table.h"
#include "fovea/train/options.h"
#include "python/extension/arrays.h"
#include "python/extension/model_call.h"
#include "python/extension/option_rows.h"
#include "python/extension/signals.h"

namespace nb = nanobind;

namespace fovea::python {

namespace {

SamplingOptions sampling_from(const Texts& given) {
  const auto options = options_from<SamplingOptions>(given);
  check_options(options);
  return options;
}

/// A model in memory. Several threads of Python may use it at once.
class Model {
 public:
  Model(const std::string& folder, const std::string& precision, index max_context,
        std::vector<std::string> adapters)
      : precision_(precision_from(precision)),
        loaded_(load(folder, {.max_context = max_context, .adapter = std::move(adapters)})),
        checksum_(config_checksum(folder)) {}

  const LoadedLanguageModel& loaded() const { return loaded_; }
  Context context_with(int threads) const { return Context(threads).with(precision_); }

  index generate(const std::string& prompt, const Texts& options, int threads,
                 const std::function<bool(nb::bytes)>& write) const {
    const SamplingOptions sampling = sampling_from(options);
    const Context context = context_with(threads);
    const nb::gil_scoped_release others_run;
    require_generation_memory(context, loaded_, prompt, sampling);
    return generate_text(context, loaded_, prompt, sampling, [&](std::string_view text) {
      const nb::gil_scoped_acquire python;
      return write(nb::bytes(text.data(), text.size()));
    });
  }

  std::string evaluate(const std::vector<std::string>& files, const Texts& given,
                       int threads) const {
    const auto options = options_from<TextEvaluation>(given);
    return while_others_run([&] {
      const TextScore score = evaluate_text(context_with(threads), loaded_, files, options);
      return evaluation_of(json_of(score), checksum_).line();
    });
  }

  std::vector<token> encode(const std::string& text) const {
    return loaded_.tokenizer->encode(text);
  }

  nb::bytes decode(const std::vector<token>& ids) const {
    const std::string text = text_of_tokens(*loaded_.tokenizer, ids);
    return nb::bytes(text.data(), text.size());
  }

  nb::object logits(const std::vector<token>& ids, int threads) const {
    return array_of(
        while_others_run([&] { return logits_of(context_with(threads), *loaded_.model, ids); }));
  }

  NamedArrays weights() const {
    NamedArrays arrays;
    for (const Parameter* const parameter : loaded_.model->parameters()) {
      arrays[parameter->name.c_str()] = array_of(parameter->value);
    }
    return arrays;
  }

  std::string config() const { return config_text(loaded_.settings); }

 private:
  static LoadedLanguageModel load(const std::string& folder, const PretrainedOptions& options) {
    const nb::gil_scoped_release others_run;
    return load_language_model(folder, options);
  }

  Precision precision_;
  LoadedLanguageModel loaded_;
  std::string checksum_;  // of its config.json
};

/// A conversation with a model, which must outlive it. Threads that speak at once wait for each
/// other.
class Chat {
 public:
  Chat(const Model& model, const std::string& system, const Texts& options, int threads)
      : context_(model.context_with(threads)),
        conversation_(context_, model.loaded(), system, sampling_from(options)) {}

  index answer(const std::string& message, const std::function<bool(nb::bytes)>& write) {
    const nb::gil_scoped_release others_run;
    const std::lock_guard lock(mutex_);
    return conversation_.answer(message, [&](std::string_view text) {
      const nb::gil_scoped_acquire python;
      return write(nb::bytes(text.data(), text.size()));
    });
  }

 private:
  const Context context_;
  Conversation conversation_;
  std::mutex mutex_;
};

struct LanguageModelRun : RunChoices {
  LanguageModelRun() {
    presets = [] { return names_in(language_model_presets(), "|"); };
  }
};

}  // namespace

void bind_language_model(nb::module_& m) {
  nb::class_<Model>(m, "Model", "A language model in memory.")
      .def(nb::init<const std::string&, const std::string&, index, std::vector<std::string>>(),
           nb::arg("folder"), nb::arg("precision"), nb::arg("max_context"), nb::arg("adapters"))
      .def("generate", &Model::generate, nb::arg("prompt"), nb::arg("options"), nb::arg("threads"),
           nb::arg("write"), "Passes the continuation in whole characters to `write`.")
      .def("evaluate", &Model::evaluate, nb::arg("files"), nb::arg("options"), nb::arg("threads"),
           "The JSON object of `fovea eval`.")
      .def("encode", &Model::encode, nb::arg("text"), "The tokens of a text.")
      .def("decode", &Model::decode, nb::arg("ids"), "The text of tokens, in UTF-8.")
      .def("logits", &Model::logits, nb::arg("ids"), nb::arg("threads"), "[N, V].")
      .def("weights", &Model::weights, "Each parameter by name.")
      .def("config", &Model::config, "The text of config.json.");
  nb::class_<Chat>(m, "Chat", "A conversation.")
      .def(nb::init<const Model&, const std::string&, const Texts&, int>(), nb::keep_alive<1, 2>(),
           nb::arg("model"), nb::arg("system"), nb::arg("options"), nb::arg("threads"))
      .def("answer", &Chat::answer, nb::arg("message"), nb::arg("write"),
           "Passes the answer in whole characters to `write`.");
  m.def("sampling_options", &option_rows<SamplingOptions>,
        "(name, what it must be, what it does) of each option of generating.");
  m.def("training_options", &option_rows<LanguageModelSettings>,
        "The same of training a language model.");
  m.def("run_options", &option_rows<LanguageModelRun>, "The same of how a training runs.");
}

}  // namespace fovea::python
