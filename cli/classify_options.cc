// SPDX-License-Identifier: Apache-2.0
#include "cli/classify_options.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/field_options.h"
#include "fovea/base/words.h"
#include "fovea/config/flags.h"
#include "fovea/model/layer_table.h"

namespace fovea::cli {

namespace {

std::vector<Field> settable_fields(TrainClassifyOptions& options) {
  return settable(fields_of(options));
}

// The default of --pooling is not that of a TextCNN.
void take_pooling(ClassifierConfig& model, const std::vector<std::string>& set) {
  if (model.encoder.empty() || model.pooling == PoolingKind::kMax ||
      !parse_encoder(model.encoder).back()[0].kind->is_last) {
    return;
  }
  if (std::find(set.begin(), set.end(), "model.pooling") != set.end()) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--pooling {}: textcnn in --encoder takes the maximum over time",
                            to_string(model.pooling)),
                "leave --pooling out, or take another --encoder, such as conv3");
  }
  model.pooling = PoolingKind::kMax;
}

// Cross-validation measures a linear model, so no text has to be held back.
void take_model(ClassifierSettings& settings, const std::vector<std::string>& set) {
  choose_model(settings);
  const bool split = std::find(set.begin(), set.end(), "text.valid_fraction") != set.end();
  const bool may_be_linear = settings.model.kind == ClassifierModel::kLinear ||
                             settings.model.kind == ClassifierModel::kAuto;
  if (may_be_linear && !split) settings.text.valid_fraction = 0;
}

}  // namespace

std::vector<OptionSpec> train_classify_options(InputKind input) {
  TrainClassifyOptions defaults{.settings = ClassifierSettings(input), .run = {}};
  std::vector<Field> fields = settable_fields(defaults);
  const bool pairs = input == InputKind::kPairs;
  std::erase_if(fields, [&](const Field& field) {
    const FieldNeeds& needs = field.traits.needs;
    // Pairs have no linear models, and so no choice of one.
    if (needs.fields == "model" || field.name == "model.model") return pairs;
    if (needs.fields != "input") return pairs && field.name == "text.input";
    return pairs ? !has_word(needs.values, '|', "pairs") : needs.values == "pairs";
  });
  return training_options(fields);
}

RunOptions classify_run_options(const Arguments& arguments) {
  TrainClassifyOptions options;
  read_settings(settable_fields(options), arguments);
  return options.run;
}

ClassifierSettings classify_defaults(const Arguments& arguments, InputKind input) {
  TrainClassifyOptions options{.settings = ClassifierSettings(input), .run = {}};
  read_settings(settable_fields(options), arguments);
  return ClassifierSettings(options.settings.text.input);
}

std::vector<std::string> defaults_of_npz() {
  TrainClassifyOptions texts, numbers{.settings = ClassifierSettings(InputKind::kNpz), .run = {}};
  const std::vector<Flag> usual = flags_of(settable_fields(texts)),
                          other = flags_of(settable_fields(numbers));
  std::vector<std::string> changed;
  for (std::size_t n = 0; n < usual.size(); ++n) {
    if (usual[n].name == "input" || usual[n].default_text == other[n].default_text) continue;
    changed.push_back(fmt::format("--{} {}", other[n].name, other[n].default_text));
  }
  return changed;
}

ClassifierSettings classify_settings(ClassifierSettings begin, const Arguments& arguments) {
  TrainClassifyOptions options{.settings = std::move(begin), .run = {}};
  const std::vector<std::string> set = read_settings(settable_fields(options), arguments);
  take_pooling(options.settings.model, set);
  let_min_lr_follow(options.settings.recipe, set, arguments.has("resume"));
  const bool sized = std::find(set.begin(), set.end(), "model.width") != set.end();
  if (!options.settings.text.embeddings.empty() && !sized && !arguments.has("resume")) {
    options.settings.model.width = 0;  // that of the vectors
  }
  if (!arguments.has("resume")) take_model(options.settings, set);
  return options.settings;
}

}  // namespace fovea::cli
