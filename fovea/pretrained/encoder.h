// SPDX-License-Identifier: Apache-2.0
// Encoders as transformers has saved them: a folder with a config.json, the weights and a
// tokenizer. One with a head says what labels a text has, or each of its words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fovea/model/bert.h"
#include "fovea/pretrained/encoder_tokenizer.h"

namespace fovea {

/// What the outputs of a head mean.
enum class EncoderProblem : std::uint8_t {
  kOneLabel,   ///< one of several: softmax
  kAnyLabels,  ///< each a question of its own: sigmoid
  kNumber,     ///< one output, which is the number
};

struct LoadedEncoder {
  Bert model;
  std::unique_ptr<const EncoderTokenizer> tokenizer;
  index max_length;  ///< tokens of a text, its marks among them
  /// Of a head.
  EncoderProblem problem = EncoderProblem::kOneLabel;
  std::vector<std::string> labels{};  ///< in the order of the outputs; none with kNumber
};

/// The head of the model in a folder of Hugging Face, by the `architectures` of its config.json:
/// "...ForSequenceClassification" reads texts, "...ForTokenClassification" tokens.
BertHead encoder_head(const std::filesystem::path& folder);

/// A head that is given to the model of a folder, in the place of its own if it has one.
struct GivenHead {
  index outputs = 0;
  std::set<std::string, std::less<>> parameters = {};  ///< that come with it, as ours are called
};

/// A folder, of which all but the values of the weights has been read.
class EncoderFolder {
 public:
  /// With kNone a head is left out, if there is one; else the folder must have that head, unless
  /// one is `given`. Labels of that are those of the folder, if they are as many, or else
  /// "LABEL_0" and so on. Throws kModelMissing; kModelDamaged, as for a tensor that is missing or
  /// has another shape; kModelWrongKind for another architecture or head, for a setting that fovea
  /// does not know, which it names; and kOutOfMemory if there is no room for the weights.
  EncoderFolder(const std::filesystem::path& folder, BertHead head,
                const GivenHead* given = nullptr);
  ~EncoderFolder();

  BertConfig config;
  EncoderText text{};
  EncoderProblem problem = EncoderProblem::kOneLabel;
  std::vector<std::string> labels{};  ///< of a head, in the order of the outputs

  /// Sets the parameters, which are called as those of BertLayers, but those of a given head.
  /// Throws kModelDamaged, and kModelWrongKind for a tensor that fovea does not know.
  void read(std::span<Parameter* const> parameters) const;

  class Weights;

 private:
  std::unique_ptr<Weights> weights_;
  std::set<std::string, std::less<>> given_ = {};  // parameters
};

/// Reads a folder with its weights. Throws as EncoderFolder.
LoadedEncoder load_encoder(const std::filesystem::path& folder, BertHead head);

/// An encoder to begin a training from.
struct EncoderBase {
  BertConfig layers;  ///< without a head; with what training drops
  EncoderText text;
  std::vector<std::string> labels{};  ///< of a head that is left out
};

/// Reads all but the weights of a folder. `head`: that which the training gives it. Throws as
/// EncoderFolder.
EncoderBase encoder_to_begin(const std::filesystem::path& folder, BertHead head);
/// Sets those of the parameters that the folder has. A layer over the first row that it does not
/// have, and a head, stay as they are.
void begin_from_encoder(const std::filesystem::path& folder,
                        std::span<Parameter* const> parameters);

}  // namespace fovea
