// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/embeddings.h"

#include <algorithm>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"

namespace fovea {

namespace {

double share(index part, index all) {
  return all > 0 ? 100 * static_cast<double>(part) / static_cast<double>(all) : 0;
}

}  // namespace

WordVectors vectors_of_tokens(const Tokenizer& tokenizer, const std::string& file, index width) {
  std::vector<std::string> words(static_cast<std::size_t>(tokenizer.vocabulary_size()));
  for (std::size_t id = 0; id < words.size(); ++id) {
    const auto at = static_cast<token>(id);
    if (tokenizer.occurs_in_learned_text(at)) tokenizer.append_bytes(words[id], at);
  }
  return read_word_vectors(file, words, width);
}

VectorCounts count_vectors(const Tokenizer& tokenizer, const WordVectors& vectors) {
  VectorCounts counts{.exact = vectors.count(VectorMatch::kExact),
                      .lower = vectors.count(VectorMatch::kLower)};
  for (token id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.occurs_in_learned_text(id)) ++counts.words;
  }
  return counts;
}

std::string vectors_line(const VectorCounts& counts, const std::string& file) {
  const index found = counts.exact + counts.lower;
  return fmt::format(
      "words with a vector of {}: {} of {} ({:.1f} %), {} as spelled and {} in other case",
      name_of_input(file), found, counts.words, share(found, counts.words), counts.exact,
      counts.lower);
}

void start_with_vectors(std::span<Parameter* const> parameters, std::string_view name,
                        const WordVectors& vectors) {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const Parameter* p) { return p->name == name; });
  check(found != parameters.end(), "the model has no parameter '{}'", name);
  Parameter& table = **found;
  const Rows<float> rows = table.value.rows<float>();
  const auto count = static_cast<index>(vectors.match.size());
  // The separator of pairs, behind the words, has no vector.
  check((rows.rows == count || rows.rows == count + 1) && rows.columns == vectors.width,
        "vectors [{}, {}] for a table {}", vectors.match.size(), vectors.width,
        table.value.describe());
  for (index id = 0; id < count; ++id) {
    if (vectors.match[static_cast<std::size_t>(id)] == VectorMatch::kNone) continue;
    std::copy_n(vectors.rows.data() + id * vectors.width, vectors.width, rows[id]);
  }
  ++table.version;
}

}  // namespace fovea
