// SPDX-License-Identifier: Apache-2.0
// Language models that others have trained, read as they are: a GGUF file, or a folder of Hugging
// Face.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/base/fields.h"
#include "fovea/model/language_model.h"
#include "fovea/pretrained/architecture.h"
#include "fovea/pretrained/model_files.h"
#include "fovea/tensor/gguf.h"
#include "fovea/tensor/zip.h"
#include "fovea/text/tokenizer/subwords.h"
#include "fovea/text/tokenizer/wordpiece.h"

namespace fovea {

/// How a pretrained model cuts a text, begins it, ends it and writes the turns of a conversation.
struct PretrainedText {
  std::string architecture = {};                  ///< "llama"
  std::shared_ptr<const Subwords> subwords = {};  ///< its vocabulary
  token begin = kNoToken;          ///< stands before each text; kNoToken: nothing does
  token end = kNoToken;            ///< eos_token, which chat templates write behind an answer
  std::vector<token> ends = {};    ///< each of these ends what it writes; the usual one first
  std::string chat_template = {};  ///< "": none
};

struct PretrainedLanguageModel {
  LanguageModelConfig config;  ///< resolved
  PretrainedText text;
  std::unique_ptr<LanguageModel> model;
};

inline constexpr std::string_view kAdapterHelp =
    "adapters of the model: folders of train lm --lora or of PEFT; polite=0.5: they count half";

struct PretrainedOptions {
  index max_context = 0;
  std::vector<std::string> adapter = {};
  double dropout = 0;  ///< no field: of who trains the model
  /// No field: who does not train all weights asks for them as they lie.
  WeightTypes weights = WeightTypes::kFloat32;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("max_context", max_context,
          "of a model from elsewhere: most tokens that the model sees at once; 0: as many as it "
          "was trained with",
          {.range = ValueRange::from(0, "as many as it was trained with")});
    visit("adapter", adapter, kAdapterHelp, {.shown = "DIR[=X]..."});
  }
};

/// The sizes of a model by the header of a GGUF file; `where` begins each message. Throws
/// kModelDamaged, and kModelWrongKind for what is not known, by its name.
LanguageModelConfig config_of_gguf(const GgufHeader& header, const std::string& where);

/// With the divisors of rotary positions, which may be a tensor of the file.
LanguageModelConfig load_gguf_config(const std::filesystem::path& path);

/// The tokenizer of a GGUF file, and what the file says of texts. Throws as config_of_gguf().
PretrainedText text_of_gguf(const GgufHeader& header, const std::string& where);
/// Reads the header of a file and returns its text_of_gguf(); the tensors are not read.
PretrainedText load_gguf_text(const std::filesystem::path& path);
/// The WordPiece of BERT in the header of such a file, which writes texts in lower case; none in a
/// file with another tokenizer. Throws the same.
std::optional<WordPieceModel> load_gguf_wordpiece(const std::filesystem::path& path);

/// Reads a model; its weights are widened to float32. Throws as these, kOptionValue for a context
/// that is longer than that of the model, and kOutOfMemory before memory is taken.
PretrainedLanguageModel load_gguf(const std::filesystem::path& path,
                                  const PretrainedOptions& options = {});

/// Whether a path is a model folder of Hugging Face: beside its config.json is a tokenizer.json, or
/// it has a model_type.
bool is_hugging_face(const std::filesystem::path& folder);

/// Reads a model of such a folder, in safetensors of one or several files, and its tokenizer.json;
/// weights are widened to float32. Throws as load_gguf().
PretrainedLanguageModel load_hugging_face(const std::filesystem::path& folder,
                                          const PretrainedOptions& options = {});
/// The tokenizer of such a folder and its marks; the tensors are not read.
PretrainedText load_hugging_face_text(const std::filesystem::path& folder);
PretrainedText text_of_files(const ModelFiles& files);
LanguageModelConfig config_of_files(const ModelFiles& files);

// The next three take a GGUF file or such a folder.

bool is_pretrained(const std::filesystem::path& path);
/// What the model is made of, resolved; its tensors are not read.
LanguageModelConfig load_pretrained_config(const std::filesystem::path& path);
PretrainedLanguageModel load_pretrained(const std::filesystem::path& path,
                                        const PretrainedOptions& options = {});
PretrainedText load_pretrained_text(const std::filesystem::path& path);
/// All of a PretrainedText, as the archive that a model keeps that began from this one:
/// read_kept_text() makes it of these bytes, which are called `where` in its errors.
std::string kept_text(const std::filesystem::path& path);
PretrainedText read_kept_text(std::string_view archive, const std::string& where);
/// The files of a folder of Hugging Face in such an archive, by their names; none of a GGUF file.
std::vector<ZipMember> kept_files(std::string_view archive, const std::string& where);
/// The metadata of a GGUF file in it, as gguf_without_tensors() gives them; "" of a folder.
std::string kept_metadata(std::string_view archive, const std::string& where);
/// Whether a path is a folder of Hugging Face whose model neither continues texts nor translates
/// nor has a head (encoder.h): it makes vectors (sentence_model.h).
bool is_encoder(const std::filesystem::path& path);
/// The kind of the tokenizer among these files, as tokenizer.json calls it: "BPE", "WordPiece";
/// without one, of spiece.model "Unigram", of tokenizer.model or vocab.json "BPE", of vocab.txt
/// "WordPiece", "" if there is none. Throws kModelDamaged.
std::string tokenizer_model(const ModelFiles& files);
/// XXH3 of the bytes that say which model it is: the header of a GGUF file, or a folder's
/// config.json.
std::string pretrained_checksum(const std::filesystem::path& path);

namespace detail {

/// Names the file in the errors of `read`.
template <class Read>
auto named(const std::string& where, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(where)) throw;
    throw error.with(error.code(), fmt::format("{}: {}", where, error.what()));
  }
}

struct WeightFile {
  const Architecture& architecture;
  ModelForm form;
  const TensorSource& tensors;
  bool (*ignores)(std::string_view name) = nullptr;
};

/// Takes memory for the model of the configuration and sets its weights.
void make_model(PretrainedLanguageModel& loaded, const WeightFile& file,
                const PretrainedOptions& options);

}  // namespace detail

}  // namespace fovea
