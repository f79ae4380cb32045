// SPDX-License-Identifier: Apache-2.0
// E8: taggers that differ in what reads the words, each with a softmax and a CRF, beside a linear
// CRF, on the sentences of one task.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/experiment.h"
#include "fovea/base/context.h"
#include "fovea/task/tag/settings.h"

namespace fovea {

/// A model of the table.
struct TagModel {
  std::string_view name;     ///< attention-shaw
  std::string_view encoder;  ///< none: linear features alone
  std::string_view position = "none";
  bool linear = false;  ///< hashed features add to the scores of tags
  TagHead head = TagHead::kCrf;

  /// attention-shaw-crf
  std::string variant() const;
};

/// Two layers of a Transformer with sinusoidal positions, with Shaw's and with T5's relative ones,
/// behind a convolution and behind a BiLSTM; a BiLSTM alone, with linear features, and with these
/// behind a convolution: each with both heads. Then the linear CRF.
std::vector<TagModel> tag_models();

/// A task, and the sentences to learn it from.
struct TagExperiment {
  std::string name;  ///< of the task: ner, segment, joint
  TagTask task = TagTask::kTag;
  bool joint = false;
  std::filesystem::path train, test;
  std::filesystem::path valid = {};  ///< none: a tenth of the sentences to train on
  index epochs = 1;
};

/// The settings of a run; options.share is the part of the epochs.
TaggerSettings tag_settings(const TagExperiment& experiment, const TagModel& model, index seed,
                            double share);

/// Runs all models of tag_models() whose run `options.only` names, with one seed after another, in
/// folders of options.output named E8-TASK-VARIANT-seedN, and draws a picture of each task. A
/// finished run is not repeated. Throws ReproduceStopped.
void run_tags(const Context& context, const ReproduceOptions& options,
              const ReproduceObserver& observer, const std::vector<TagExperiment>& experiments);

}  // namespace fovea
