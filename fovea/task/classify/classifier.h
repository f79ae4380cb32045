// SPDX-License-Identifier: Apache-2.0
// Trains a text classifier on labelled texts, into a model folder, and loads one from such a
// folder.
//
// A model folder holds config.json (with the labels), tokenizer.txt and model.safetensors, and
// vocab.txt if its tokens are words; a run folder also the files of Trainer. A checkpoint is a
// model folder, too.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/data/frames.h"
#include "fovea/linear/linear_model.h"
#include "fovea/model/classifier.h"
#include "fovea/pretrained/encoder.h"
#include "fovea/task/classify/settings.h"
#include "fovea/task/embeddings.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// config.json: "kind" of a classifier.
inline constexpr std::string_view kClassifierKind = "classifier";

/// A model of numbers works with (number - center) / scale.
struct NumberScale {
  double center = 0;
  double scale = 1;

  double to_model(double number) const { return (number - center) / scale; }
  double from_model(double value) const { return center + scale * value; }

  /// The significant digits with which a number is told: as float32 has them in units of the
  /// scale, 9, and so many more as the number is larger than the scale; at most 17.
  int digits(double number) const;
};

/// The outputs of a classifier, which its configuration lists beside its settings.
struct ClassifierOutputs {
  std::vector<std::string> labels = {};  ///< in the order of the logits; none for regression
  NumberScale numbers = {};              ///< of regression
  VectorCounts vectors = {};             ///< of --embeddings
  FrameScale frames = {};                ///< of input npz
  index label_of_two = 0;  ///< the label's column, from 1, in training texts of two columns (pairs:
                           ///< three); 0: others
  TableForm columns = {};  ///< how the texts to train on were read; format auto: not known
};

struct LoadedClassifier {
  ClassifierSettings settings;
  std::unique_ptr<Tokenizer> tokenizer;  ///< null with input npz, and of an encoder
  std::vector<std::string> labels;       ///< in the order of the logits; none for regression
  NumberScale numbers;     ///< regression: Classifier::predictions are to_model() of the numbers
  FrameScale frames;       ///< input npz: what the model sees is normalised by this
  index label_of_two = 0;  ///< as in ClassifierOutputs
  TableForm columns = {};  ///< the same
  std::unique_ptr<Classifier> model;    ///< null: it is linear
  std::unique_ptr<LinearModel> linear;  ///< null: it is a network
  EncoderText pieces = {};  ///< of a model that is, or began, from elsewhere; it has no tokenizer
  bool is_foreign = false;  ///< a folder of Hugging Face

  /// With every size filled in.
  const ClassifierConfig& config() const { return model ? model->config() : settings.model; }
  /// The number of learned values.
  index parameters() const;
  /// The thresholds for decisive() (linear/decide.h).
  std::span<const float> thresholds() const {
    return linear ? std::span<const float>(linear->weights().thresholds) : std::span<const float>();
  }
  bool reads_frames() const { return settings.text.input == InputKind::kNpz; }
  bool reads_pairs() const { return settings.text.input == InputKind::kPairs; }
  bool reads_pieces() const { return pieces.tokenizer != nullptr; }
};

/// Loads a model: a folder of ours, or one of Hugging Face whose model is a
/// ...ForSequenceClassification (pretrained/encoder.h), of which `foreign` says whether it reads
/// texts or pairs, as it does not do so itself. `adapters`: folders of PEFT (encoder_peft.h); with
/// their head an encoder without one is a classifier, too. Throws kModelMissing if there is none,
/// kModelWrongKind for one of another kind, kModelDamaged if files are damaged or do not belong
/// together, kOutOfMemory, and what EncoderPeft throws.
LoadedClassifier load_classifier(const std::filesystem::path& folder,
                                 InputKind foreign = InputKind::kText,
                                 std::span<const std::string> adapters = {});

/// The tokens of a text; for a sample of numbers, the numbers of its time steps in a FrameSet.
struct TextTokens {
  std::vector<token> ids;  ///< at least one, and at most max_length
  index length = 0;        ///< before they were cut

  bool truncated() const { return length > static_cast<index>(ids.size()); }
};

/// `table`, for texts of which the model asks: they are read as those that it was trained on.
TableOptions table_of_texts(const LoadedClassifier& model, TableOptions table);

/// The ids that such a model knows: those of its tokenizer and, with input pairs, the separator.
index vocabulary_of(const Tokenizer& tokenizer, InputKind input);

/// How the texts of such a model are encoded: tokenizer byte reads any bytes, all others UTF-8.
TextEncoding encoding_of(const ClassifierTextOptions& options);

/// The tokens of a text exactly as in training: in lower case if the tokenizer does that, without
/// marks of begin and end, cut to options.max_length. A text without a token becomes one of
/// padding. With input pairs it is a pair_text(), and the separator, id vocabulary_size() of the
/// tokenizer, stands behind each of its texts; the longer one is cut first. Throws kEncoding, in
/// which `name` names the text.
TextTokens tokens_of_text(const Tokenizer& tokenizer, const ClassifierTextOptions& options,
                          std::string_view text, std::string_view name);

/// The tokens of a text, or a pair_text(), by the tokenizer of an encoder, with the marks around
/// them. Throws kEncoding.
TextTokens tokens_of_text(const EncoderTokenizer& tokenizer, const ClassifierTextOptions& options,
                          std::string_view text, std::string_view name);

/// The time steps `first` to `first + length` of a FrameSet, cut to options.max_length.
TextTokens tokens_of_frames(const ClassifierTextOptions& options, index first, index length);

/// The samples of a file as the model sees them. Throws kInputFormat for other joints or features
/// than those of the model.
FrameSet frames_of(const LoadedClassifier& model, const FrameFile& file);

/// The text of config.json.
std::string config_text(const ClassifierSettings& settings, const ClassifierOutputs& outputs);

struct ClassifierConfigFile {
  ClassifierSettings settings;
  ClassifierOutputs outputs;
};
/// Reads the text that config_text wrote; `name` is the file's name in errors. Throws
/// kModelWrongKind, kModelDamaged.
ClassifierConfigFile classifier_config_from_text(std::string_view text, const std::string& name);

}  // namespace fovea
