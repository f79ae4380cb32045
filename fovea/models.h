// SPDX-License-Identifier: Apache-2.0
// Trained models in a program. A model is a folder of `fovea train`, a folder of Hugging Face, or a
// GGUF file; what it is follows from its content.
//
// An object is a handle: a copy is the same model in memory. Any number of threads may call the
// const functions of a model at once, and each result has the bits that it has alone, whatever else
// is computed and however many threads there are. Functions throw fovea::Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/types.h"
#include "fovea/task/decode/beam_search.h"
#include "fovea/task/decode/sampling.h"
#include "fovea/tensor/tensor.h"
#include "fovea/text/vocabulary.h"

namespace fovea::models {

enum class Kind : std::uint8_t { kLanguageModel, kEncoder, kClassifier, kTagger, kTranslator };

/// Reads the configuration of a model alone; with folders of adapters, as LoadOptions has them, an
/// encoder is what the head is of that one of them holds. Throws kModelMissing, kModelDamaged,
/// kModelWrongKind.
Kind kind_of(const std::filesystem::path& model, const std::vector<std::string>& adapters = {});

struct LoadOptions {
  Context context = Context();  ///< the threads and the precision of all calls
  index max_context = 0;  ///< of a pretrained language model: most tokens that it sees at once; 0:
                          ///< as many as it was trained with
  /// Folders of adapters: of a language model those of `train lm --lora` or of PEFT, of an encoder
  /// and a model on one those of PEFT; "polite=0.5" counts half. A translator takes none: kUsage.
  std::vector<std::string> adapters = {};
};

// All constructors throw kModelMissing, kModelDamaged, kOutOfMemory, and kModelWrongKind for a
// model of another kind, or one that asks for what fovea does not know.

/// Takes the next piece of a text, in whole characters; returns whether to go on.
using OnText = std::function<bool(std::string_view)>;

class Chat;

/// Continues texts, and answers messages. Its weights stay in the types in which they lie.
class LanguageModel {
 public:
  explicit LanguageModel(const std::filesystem::path& model, const LoadOptions& options = {});

  /// The tokens of a text, without the mark with which some models begin one. Throws kEncoding.
  std::vector<token> encode(std::string_view text) const;
  /// The text of tokens; bytes that are no UTF-8 become U+FFFD. Throws kShape.
  std::string decode(std::span<const token> ids) const;

  /// [N, vocabulary]: the logits of the token that follows each of N tokens, which the model sees
  /// at once. Throws kShape.
  Tensor logits(std::span<const token> ids) const;

  /// How the model goes on after `prompt`; `on_text` has each piece as it is made. The text depends
  /// on the model, the prompt and the options alone. Throws kOptionValue, kEncoding,
  /// kInputTooSmall.
  std::string generate(std::string_view prompt, const SamplingOptions& options = {},
                       const OnText& on_text = {}) const;

  /// A conversation; `system`: what the model is told first, "": its own. Throws kModelWrongKind
  /// for a model without a template that is known.
  Chat chat(std::string system = {}, const SamplingOptions& options = {}) const;

 private:
  struct Loaded;
  friend class Chat;
  std::shared_ptr<const Loaded> loaded_;
};

/// A conversation, which remembers its turns. When they no longer fit into the context, the oldest
/// question is forgotten with its answer. Belongs to one thread.
class Chat {
 public:
  ~Chat();
  Chat(Chat&&) noexcept;
  Chat& operator=(Chat&&) noexcept;

  /// Throws kEncoding, and kInputFormat for a message that is longer than the context.
  std::string answer(std::string_view message, const OnText& on_text = {});

 private:
  friend class LanguageModel;
  struct Turns;
  explicit Chat(std::unique_ptr<Turns> turns);
  std::unique_ptr<Turns> turns_;
};

/// Makes vectors of texts.
class Encoder {
 public:
  explicit Encoder(const std::filesystem::path& model, const LoadOptions& options = {});

  index width() const;  ///< of a vector
  /// [texts, width]: pooled and normalized as the model says.
  Tensor embed(const std::vector<std::string>& texts) const;
  /// The cosine of the vector of `text` and that of each of the others.
  std::vector<double> similarity(const std::string& text,
                                 const std::vector<std::string>& others) const;

 private:
  struct Loaded;
  std::shared_ptr<const Loaded> loaded_;
};

/// What a classifier says of a text.
struct Classified {
  /// The likeliest; of a model of --multi-label all that are likely enough, the likeliest first. Of
  /// regression none.
  std::vector<std::string> labels;
  /// The probability of each of Classifier::labels(); of regression the numbers.
  std::vector<double> values;
};

/// Says what class, labels or number a text has. A pair of texts is one text, with a tab between.
class Classifier {
 public:
  explicit Classifier(const std::filesystem::path& model, const LoadOptions& options = {});

  const std::vector<std::string>& labels() const;
  /// Throws kEncoding.
  std::vector<Classified> classify(const std::vector<std::string>& texts) const;

 private:
  struct Loaded;
  std::shared_ptr<const Loaded> loaded_;
};

/// A sentence that was tagged.
struct Tagged {
  std::vector<std::string> words;
  std::vector<std::vector<std::string>> tags;  ///< [tag columns][words]
};

/// Tags words, or finds the words of a text.
class Tagger {
 public:
  explicit Tagger(const std::filesystem::path& model, const LoadOptions& options = {});

  /// Whether it is a segmenter.
  bool segments() const;
  std::vector<std::string> columns() const;  ///< the names of the tag columns
  /// A segmenter finds the words of a text, and their tags if it has learned any. For others,
  /// punctuation is cut off words.
  std::vector<Tagged> tag(const std::vector<std::string>& texts) const;
  /// The same of sentences whose words are known. Throws kModelWrongKind for a segmenter.
  std::vector<Tagged> tag_words(std::vector<std::vector<std::string>> sentences) const;

 private:
  struct Loaded;
  std::shared_ptr<const Loaded> loaded_;
};

/// Translates lines.
class Translator {
 public:
  explicit Translator(const std::filesystem::path& model, const LoadOptions& options = {});

  /// The best translation of each line, by the search that the model's folder asks for: that of
  /// SearchOptions, of a model from elsewhere its own. Throws as the other one does.
  std::vector<std::string> translate(const std::vector<std::string>& lines) const;
  /// `search.nbest` is not read. Throws kOptionValue, kEncoding, and kInputFormat for a line that
  /// is too long.
  std::vector<std::string> translate(const std::vector<std::string>& lines,
                                     const SearchOptions& search) const;

 private:
  struct Loaded;
  std::shared_ptr<const Loaded> loaded_;
};

using Model = std::variant<LanguageModel, Encoder, Classifier, Tagger, Translator>;
/// The model at this path, of whatever kind it is.
Model load(const std::filesystem::path& model, const LoadOptions& options = {});

}  // namespace fovea::models
