// SPDX-License-Identifier: Apache-2.0
// Vectors of many texts: fast, and with the same bits however they come.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/fields.h"
#include "fovea/base/view.h"
#include "fovea/pretrained/sentence_model.h"
#include "fovea/task/length_batches.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

/// How the rows of a text become its vector.
enum class EmbedPooling : std::uint8_t {
  kModel,  ///< as the model says
  kMean,
  kCls,  ///< the first row
  kMax,
};

inline constexpr EnumName<EmbedPooling> kEmbedPoolingNames[] = {{EmbedPooling::kModel, "model"},
                                                                {EmbedPooling::kMean, "mean"},
                                                                {EmbedPooling::kCls, "cls"},
                                                                {EmbedPooling::kMax, "max"}};
inline std::span<const EnumName<EmbedPooling>> enum_names(EmbedPooling) {
  return kEmbedPoolingNames;
}

struct EmbedOptions {
  EmbedPooling pooling = EmbedPooling::kModel;
  bool normalize = false;
  std::string prompt;
  index truncate_dim = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("pooling", pooling,
          "how the rows of a text become one vector: the mean, the row of the first mark, or the "
          "maximum of each column; model: as the model says");
    visit("normalize", normalize,
          "divide each vector by its length, or do not; not said: as the model says");
    visit("prompt", prompt,
          "put this text before each text; not said: the model's own, if it has one",
          {.shown = "TEXT"});
    visit("truncate_dim", truncate_dim, "keep the first N columns; 0: all",
          {.range = ValueRange::in(0, INT32_MAX, "all"), .shown = "N"});
  }
};

/// How a model's rows become a vector: its settings, changed by what was said.
struct EmbedRules {
  PoolingKind pooling = PoolingKind::kMean;
  bool normalizes = false;        ///< vectors, before columns are left out
  bool normalizes_again = false;  ///< behind that
  std::string prompt;
  index columns = 0;

  /// Equal if and only if the rules give equal vectors.
  std::string text() const;
};

/// `said` are the names of the options that were set. Throws kOptionValue.
EmbedRules embed_rules(const SentenceModel& model, const EmbedOptions& options,
                       std::span<const std::string> said);

/// Cuts texts into batches of about the same length and gives each thread batches of its own. No
/// bit of a vector depends on the other texts, their order or the number of threads. Belongs to one
/// thread; the memory of one call is kept for the next.
class Embedder {
 public:
  /// How many texts or bytes of text are well read before they are embedded.
  static constexpr std::size_t kTextsAtOnce = 4096, kBytesAtOnce = std::size_t{4} << 20;

  /// `model` must outlive it. Throws kOutOfMemory if there is no room for batches.
  Embedder(const Context& context, const SentenceModel& model, EmbedRules rules);
  /// The precision of the products.
  Precision precision() const { return context_.precision(); }

  const EmbedRules& rules() const { return rules_; }

  /// [texts, rules().columns], valid until the next call. Throws kModelDamaged for a vector that is
  /// not finite; kOutOfMemory, as for a text of a length that nobody foresaw.
  Rows<const float> embed(std::span<const std::string_view> texts);
  /// The vectors of any number of texts. `done` is called with the number of those that are
  /// embedded.
  Tensor embed_all(
      std::span<const std::string> texts, const std::function<void(index)>& done = [](index) {});

  /// How many of all texts so far were longer than the model's longest, and truncated.
  index truncated() const { return truncated_; }
  index texts() const { return texts_; }
  index tokens() const { return tokens_; }
  /// The seconds of all calls so far, without reading the texts into tokens.
  double model_seconds() const { return tapes_.seconds(); }

 private:
  // Throws kOutOfMemory if there is no room for texts of so many tokens.
  void require_memory_for(index longest);
  void embed_batch(Tape& tape, std::span<const index> batch);
  void finish(Vec<const float> pooled, Vec<float> to) const;

  const Context context_;
  const SentenceModel& model_;
  const EmbedRules rules_;
  BatchTapes tapes_;
  std::vector<MarkedTokens> read_;
  std::vector<float> values_;
  index truncated_ = 0, texts_ = 0, tokens_ = 0, planned_ = 0;
};

struct CorpusVectors {
  Tensor vectors;                    ///< [lines, columns], each of length 1
  bool made = false;                 ///< and not read from the file
  std::vector<std::string> notes{};  ///< why the file could not be written
};

/// The vectors of the lines of `file`: from FILE.vectors.safetensors, if that was made of the same
/// lines by the same model and rules, else made, and written there. `done` is called with the
/// number of lines that are embedded. Throws kOutputExists for such a file that fovea has not
/// written, kOutOfMemory, and what Embedder::embed throws.
CorpusVectors corpus_vectors(Embedder& embedder, const SentenceModel& model,
                             const std::string& file, std::span<const std::string> lines,
                             const std::function<void(index)>& done);

struct Hit {
  index row = 0;
  float score = 0;  ///< the cosine
};

/// For each query the rows with the highest cosines, best first, equal ones in their order.
std::vector<std::vector<Hit>> nearest(const Context& context, const CorpusVectors& corpus,
                                      Rows<const float> queries, index top);

/// The cosine of two vectors; 0 if one is 0.
double cosine(Vec<const float> a, Vec<const float> b);

}  // namespace fovea
