// SPDX-License-Identifier: Apache-2.0
// A page that shows attention weights: layers, heads, a heat map, lines between tokens.
// Its HTML: what can be read without its scripts, and what they fill.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/report/html.h"
#include "fovea/report/weight_code.h"

namespace fovea {

/// The weights of the heads of one layer.
struct AttentionMap {
  std::string name = {};  ///< such as "layer 1"
  index heads = 0;
  /// Numbers of texts of the page: what the rows and the columns are. The sizes are theirs.
  std::size_t query_text = 0, key_text = 0;
  /// [heads, queries, keys], before dropout, finite. Exactly 0 says that the key is masked.
  std::vector<float> weights = {};
  /// Means over the queries, one for each head. If empty, the page computes them from `weights`;
  /// give them if the page shows only some of the queries.
  std::vector<float> entropy = {};   ///< in nats
  std::vector<float> distance = {};  ///< sum of w |p - j|
  std::vector<float> largest = {};   ///< the weight of strongest_cell() (no mean)
  /// Whether keys and queries lie in the same sequence, so that a distance means something.
  bool has_distances = true;
  /// The name of this map among several of a layer, such as "joint 3". The first represents the
  /// layer: its statistics are those of all its maps, so give them.
  std::string part = {};
  bool is_of_layer_before = false;  ///< whether this is another map of the layer before it
  /// The name of a row and of a column, in the language, if they are not just query and key.
  std::string rows_are = {}, columns_are = {};
};

/// The tokens of one sequence, in order, as a reader should see them (any bytes are safe).
struct PageText {
  std::string name;  ///< such as "text", or "source"
  std::vector<std::string> tokens = {};
  /// The position of each token; empty: 0, 1, 2 ... Give it if they count from 1, or if rows are
  /// left out.
  std::vector<index> positions = {};
};

/// A number for each token, shown beside the tokens as a strip.
struct TokenValues {
  std::string name;    ///< such as "gradient x input"
  std::string source;  ///< where it comes from, such as "Shrikumar et al. 2016, arXiv:1605.01713"
  std::size_t text = 0;
  std::vector<float> values = {};  ///< finite; negative ones get another colour
};

/// A number for each pair of tokens of two texts, shown as a table.
struct PairValues {
  std::string name, source;  ///< as in TokenValues
  std::string rows_are, columns_are;
  std::size_t row_text = 0, column_text = 0;
  std::vector<float> values = {};  ///< [rows, columns], finite
};

struct LabelProbability {
  std::string label;
  double probability = 0;
};

/// A label for each token, shown beside the tokens, such as the tags of words.
struct TokenLabels {
  std::string name = {};  ///< of one among several
  std::size_t text = 0;
  std::vector<std::string> labels = {};    ///< any bytes are safe; empty: the tokens themselves
  std::vector<double> probabilities = {};  ///< of these
};

struct AttentionPage {
  PageLanguage language = PageLanguage::kEnglish;
  std::string title;
  /// The name of a map, in the language, such as "Sequence"; empty: "Layer".
  std::string maps_are = {};
  bool rows_sum_to_one = true;  ///< whether the weights of a query add up to 1
  bool has_entropies = true;    ///< whether they come from a softmax
  std::vector<std::pair<std::string, std::string>> facts = {};  ///< name and value, in the language
  std::vector<PageText> texts = {};
  std::vector<AttentionMap> maps = {};  ///< none: the page shows saliency alone
  std::size_t first_map = 0;            ///< the number of the one that is shown first
  bool is_of_numbers = false;           ///< whether tokens are time steps and joints
  std::vector<TokenValues> saliency = {};
  std::vector<PairValues> tables = {};
  std::vector<LabelProbability> prediction = {};  ///< most probable first
  std::vector<TokenLabels> labels = {};
  /// Lines of the plan's tiles, as picture_of_tiles() makes them: '.' '#' '/'.
  std::vector<std::string> tiles = {};
  /// Plain sentences in the language, shown above the map: what is left out, which rows are shown.
  std::vector<std::string> notes = {};
};

/// Bytes of a page: below the first if 4 decimals of a weight are few enough for that, else below
/// the second, each with up to 6 decimals that fit. Above the second, a page keeps only the
/// strongest weights of each row, and says so.
struct PageLimits {
  std::size_t fine = 1'000'000, most = 8'000'000;
};

/// One HTML file. If the largest weight is 10 or more, its first digits count instead of decimals.
/// (Weights that do not fit into `most` with one weight a row make a larger page.)
///
/// Throws Error(kShape) that names what has a size that does not agree, or a number that is not
/// finite.
std::string draw_attention_page(const AttentionPage& page, const PageLimits& limits = {});

std::string attention_body(const AttentionPage& page, const WeightDigits& digits,
                           const PageLimits& limits);

}  // namespace fovea
