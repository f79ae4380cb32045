// SPDX-License-Identifier: Apache-2.0
// The table of tasks, as the command has it: what eval, explain and inspect do with a model of each
// kind.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/options.h"
#include "cli/output.h"
#include "fovea/base/context.h"
#include "fovea/base/error.h"
#include "fovea/config/field.h"
#include "fovea/config/json.h"
#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/explain/explanation.h"
#include "fovea/explain/shown.h"
#include "fovea/model/language_model.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/encoder_peft.h"
#include "fovea/task/task_table.h"
#include "fovea/train/model_folder.h"

namespace fovea::cli {

/// The model's answer that is to be explained, and the part of it that is shown.
struct ExplainRequest {
  ExplainOptions options;
  ExplainView view;
  SampleView sample;
  std::vector<std::string> adapters = {};  ///< --adapter
};

/// The options of `fovea explain` that only models of numbers have.
inline const std::vector<std::string_view> kOfNumbers = {"sample", "joint", "time", "steps"};
/// The text that is to be explained, without the newline at its end. Throws kUsage if there is
/// none.
std::string explained_text(const Arguments& arguments);
/// Two texts as a pair_text(). Throws kUsage unless there are two.
std::string explained_pair(const Arguments& arguments);

/// A setting as the run began with it, and as it is now.
struct SettingLine {
  std::string name, began, now;
};

/// The description of a model by `fovea inspect`, by its config.json.
struct ModelDescription {
  std::string targets = {};     ///< what a training counts: "target tokens"
  std::string stop_after = {};  ///< the length of the training
  std::vector<SettingLine> settings = {};
  Json settings_now = {};
  /// The names of the tensors that were learned, if the model was solved, without updates.
  std::vector<std::string_view> solved = {};
  std::string outputs = {};          ///< labels or tags, as lines
  Json::Object output_members = {};  ///< the same, as members of the object
};

/// The files config.json of a model folder and of its checkpoints, the newest last.
struct ConfigFiles {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> checkpoints;

  /// The result of `read(text, name)` of the file of the folder: the settings as the run began.
  template <class Read>
  auto began(const Read& read) const {
    return read_one(folder, read);
  }
  /// The result for the newest checkpoint whose file can be read, or else for the folder.
  template <class Read>
  auto now(const Read& read) const {
    for (auto checkpoint = checkpoints.rbegin(); checkpoint != checkpoints.rend(); ++checkpoint) {
      try {
        return read_one(*checkpoint, read);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kOutOfMemory) throw;
        if (std::filesystem::exists(*checkpoint)) warn(error.what());
      }
    }
    return began(read);
  }

 private:
  template <class Read>
  static auto read_one(const std::filesystem::path& where, const Read& read) {
    return read(read_model_file(where, "config.json"), (where / "config.json").string());
  }
};

/// The part of a description that is the same for models of all kinds.
template <class Settings>
ModelDescription described(Settings began, Settings now) {
  ModelDescription description{.stop_after = now.recipe.stop_after, .settings_now = json_of(now)};
  const std::vector<Field> before = fields_of(began), after = fields_of(now);
  for (std::size_t i = 0; i < before.size(); ++i) {
    description.settings.push_back(
        {std::string(before[i].name), value_text(before[i]), value_text(after[i])});
  }
  return description;
}

/// A kind of model.
struct TaskCommands {
  ModelKind kind;
  std::string_view called;  ///< "a classifier"
  /// The options of eval that only such models have; null: none.
  std::vector<OptionSpec> (*eval_options)();
  /// Prints the scores. Returns the exit status.
  int (*eval)(const Arguments& arguments);
  Explanation (*explain)(const Context& context, const std::filesystem::path& folder,
                         const Arguments& arguments, const ExplainRequest& request);
  ModelDescription (*describe)(const ConfigFiles& configs);
};

/// Throws kUsage if an option of `eval` was given that is of some models, but none of these.
void require_own_options(const std::vector<OptionSpec>& own, const Arguments& arguments,
                         std::string_view what);
/// A score of the texts that a model learned says little of others. Each file of `trained` that is
/// among the `tested` is named once. The lines.
std::vector<std::string> warn_of_trained_files(const std::vector<std::string>& trained,
                                               const std::vector<std::string>& tested);

/// Whether the arguments of `eval` name files of translations instead of a model. Their scores are
/// printed; returns the exit status.
bool asks_for_translations(const Arguments& arguments);
int eval_translations(const Arguments& arguments);

/// Throws kUsage if one of the options that were said has no effect on such a classifier. `command`
/// begins the message.
void require_effect(std::string_view command, const std::vector<std::string>& said,
                    const LoadedClassifier& model);
/// Warns that `truncated` of `all` texts (or samples) were longer than the model's --max-length.
void warn_of_truncated(const LoadedClassifier& model, index truncated, index all);

/// Throws kUsage for a column of tagged sentences that was said (a field's name) of a format that
/// none of the files has.
void require_column_effect(std::string_view command, std::span<const std::string> said,
                           std::span<const std::string> files, const TaggedOptions& table);

/// For `train lm` and `bench step`: a model that is no Transformer has no positions, one layer and,
/// if it is an attention RNN, one head, unless `set`, the names of the fields that were given, has
/// them. A field that means nothing to the model keeps its default: throws kOptionValue if it was
/// given another value.
void take_usual_sizes(LanguageModelConfig& model, const std::vector<std::string>& set);

// The rows, one in each file NAME_task.cc.
extern const TaskCommands kLanguageModelCommands, kClassifierCommands, kTaggerCommands,
    kTranslatorCommands, kSentenceEncoderCommands;

inline std::span<const TaskCommands> task_commands() {
  static const std::array<TaskCommands, 5> rows = {kLanguageModelCommands, kClassifierCommands,
                                                   kTaggerCommands, kTranslatorCommands,
                                                   kSentenceEncoderCommands};
  return rows;
}

/// The row of the model in this folder, which with adapters may be of another kind. Throws as
/// kind_of_model().
inline const TaskCommands& commands_of_model(const std::filesystem::path& folder,
                                             std::span<const std::string> adapters = {}) {
  const ModelKind kind = kind_of_model(folder, adapters);
  const auto rows = task_commands();
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const TaskCommands& row) { return row.kind == kind; });
}

}  // namespace fovea::cli
