// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/conformance_cases.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <sstream>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/random.h"
#include "fovea/config/field.h"
#include "fovea/operator/attention_call.h"
#include "fovea/parts/part_table.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

namespace {

/// Settings are those of `fovea attention`: "causal=top-left t5_causal". Tensors besides q, k, v
/// and do are drawn, unless values follow ("key_lengths=0,4"); "keep<3" is drawn below 3. Their
/// axes are those of the operator, unless given in brackets ("bias[1,H,1,S]"). All observers are
/// used, unless "unseen" is among the settings. "v~6" ends in six zeros, "v!6" in six values of NaN
/// and infinity. Sizes replace those of kSizes, or define further axes. A part of the table of
/// parts has the usual rows (for_each_usual_row) without being named here.
struct Row {
  std::string_view name, settings, tensors = {}, sizes = {};
};

constexpr std::string_view kSizes = "B=2 T=5 S=7 H=4 G=2 D=6 Dv=3 buckets=8 N=4 s=2";
constexpr std::string_view kPacked =
    "query_offsets=0,2,2,8,10 key_offsets=0,4,6,12,12 slopes bias keep<3";
constexpr std::string_view kPackedSizes = "B=1 T=10 S=12";
constexpr std::string_view kTiles = "B=1 T=70 S=150 H=2 G=1 D=17 Dv=9";
// s = 150: each distance has a row of Shaw's table. A row that many distances share would sum
// thousands of gradients, which may round by more than the tolerance.
constexpr std::string_view kTilesOfParts = "B=1 T=70 S=150 H=2 G=1 D=17 Dv=9 s=150";
constexpr std::string_view kChunks = "B=1 T=40 S=600 H=1 G=1 D=8 Dv=8";

constexpr Row kRows[] = {
    // Sizes.
    {"plain", ""},
    {"one", "", "", "B=1 T=1 S=1 H=1 G=1 D=1 Dv=1"},
    {"one-key", "", "", "S=1"},
    {"one-query", "causal=bottom-right", "", "T=1"},
    {"one-column", "", "", "D=1 Dv=1"},
    {"one-key-head", "", "", "H=3 G=1"},
    {"as-many-key-heads", "", "", "H=3 G=3"},
    {"values-wider-than-keys", "", "", "D=5 Dv=33"},
    {"keys-wider-than-values", "", "", "D=33 Dv=2"},
    {"more-queries-than-keys", "", "", "T=9 S=2"},
    {"tiles", "", "", kTiles},
    {"chunks", "", "", kChunks},

    // Scores.
    {"scale", "scale=-0.75"},
    {"unscaled", "scale=1"},
    {"softcap", "softcap=1.5"},
    {"log-n", "log_n_scale=4"},
    {"log-n-causal", "log_n_scale=4 softcap=1.5 causal=bottom-right", "slopes"},
    {"log-n-kept", "log_n_scale=4", "keep<3 shaw_k"},
    {"log-n-tiles", "log_n_scale=64 window=40,3", "", kTiles},
    {"cosine", "score=cosine scale=2.5"},
    {"cosine-of-zeros", "score=cosine", "q~36 k~24"},
    {"cosine-tiles", "score=cosine scale=4", "", kTiles},
    {"concat", "score=concat", "score_w"},
    {"concat-scale", "score=concat scale=0.5", "score_w"},
    {"concat-tiles", "score=concat", "score_w", kTiles},
    {"l2", "score=l2"},
    {"l2-scale", "score=l2 scale=0.125"},
    {"l2-tiles", "score=l2", "", kTiles},
    {"additive", "score=additive", "score_v"},
    {"additive-scale", "score=additive scale=-0.5", "score_v"},
    {"additive-tiles", "score=additive", "score_v", kTiles},
    {"rotary-halves", "rotary=halves"},
    {"rotary-interleaved", "rotary=interleaved"},
    {"rotary-tiles", "rotary=halves", "", "B=1 T=70 S=150 H=2 G=1 D=18 Dv=9"},
    {"ties", "", "q~240"},

    // Biases.
    {"bias", "", "bias"},
    {"bias-of-heads", "", "bias[1,H,1,S]"},
    {"bias-of-rows", "", "bias[B,1,T,S]"},
    {"bias-of-keys", "", "bias[1,1,1,S]"},
    {"bias-tiles", "", "bias", kTiles},
    {"slopes", "", "slopes"},
    {"slopes-tiles", "", "slopes", kTiles},
    {"t5", "t5_max_distance=4", "t5"},
    {"t5-causal", "t5_causal t5_max_distance=5", "t5", "buckets=6"},
    {"t5-tiles", "t5_max_distance=100", "t5", "B=1 T=70 S=150 H=2 G=1 buckets=32"},
    {"kerple", "", "kerple"},
    {"kerple-tiles", "window=40,3", "kerple", kTiles},
    {"shaw", "", "shaw_k shaw_v"},
    {"shaw-keys-j-i", "order=j-i", "shaw_k"},
    {"shaw-values-j-i", "order=j-i", "shaw_v"},
    {"shaw-no-distance", "", "shaw_k shaw_v", "s=0"},
    {"shaw-tiles", "window=40,0", "shaw_k shaw_v", "B=1 T=70 S=150 H=1 G=1 D=17 Dv=9 s=30"},
    {"shaw-tiles-j-i", "order=j-i causal=bottom-right", "shaw_k shaw_v",
     "B=1 T=70 S=150 H=2 G=1 s=3"},
    {"all-biases", "softcap=2", "bias slopes t5"},

    // Masks.
    {"causal", "causal=bottom-right"},
    {"causal-empty-rows", "causal=bottom-right", "", "T=7 S=4"},
    {"causal-tiles", "causal=bottom-right", "", kTiles},
    {"causal-chunks", "causal=bottom-right", "", kChunks},
    {"top-left", "causal=top-left"},
    {"top-left-tiles", "causal=top-left", "", "B=1 T=150 S=70 H=2 G=1"},
    {"window", "window=2,1"},
    {"window-open", "window=-1,0"},
    {"window-tiles", "window=20,3", "", kTiles},
    {"window-of-heads", "", "window=0,0,2,-1,-1,1,3,1"},
    {"dilation", "dilation=2"},
    {"dilation-window", "dilation=2 window=1,1"},
    {"dilation-window-of-heads", "dilation=2", "window=0,0,2,-1,-1,1,3,1"},
    {"strided", "strided=3"},
    {"strided-tiles", "strided=30", "", kTiles},
    {"segments", "", "query_segments<2 key_segments<2"},
    {"keep", "", "keep<3"},
    {"keep-of-keys", "", "keep[1,1,1,S]<2"},
    {"drop", "", "drop[B,1,T,S]<2"},
    {"drop-of-heads", "", "drop[1,H,1,S]<3"},
    {"key-lengths", "", "key_lengths=0,4"},
    {"one-key-left", "", "key_lengths=1,7"},
    {"query-lengths", "", "query_lengths=5,3"},
    {"both-lengths", "causal=bottom-right", "query_lengths=4,0 key_lengths=3,7"},
    {"all-masks", "causal=bottom-right window=3,-1 strided=2",
     "keep<4 key_lengths=7,6 query_segments<2 key_segments<2"},

    // Norms, sinks, dropout.
    {"sink", "", "sink"},
    {"sink-empty-rows", "causal=bottom-right", "sink", "T=7 S=4"},
    {"sink-tiles", "causal=bottom-right", "sink", kTiles},
    {"lse-gradient", "", "dlse"},
    {"lse-gradient-empty-rows", "causal=bottom-right", "dlse sink", "T=7 S=4"},
    {"lse-gradient-tiles", "causal=bottom-right dropout=0.1", "dlse slopes shaw_v", kTiles},
    {"sigmoid", "norm=sigmoid"},
    {"sigmoid-tiles", "norm=sigmoid", "", kTiles},
    {"none", "norm=none"},
    {"none-causal", "norm=none causal=bottom-right"},
    {"none-linear", "norm=none unseen", "", kChunks},
    {"none-linear-causal", "norm=none causal=bottom-right unseen", "", "B=1 T=300 S=320 D=4 Dv=4"},
    {"dropout", "dropout=0.3 seed=123456789012"},
    {"dropout-tiles", "dropout=0.1", "", kTiles},

    // Observers of the weights.
    {"observed-rows", "observe=rows=1:4"},
    {"more-than-there-is-of-the-top", "observe=topk=5", "", "S=3"},

    // Packed sequences, also without queries or keys.
    {"packed", "", "query_offsets=0,2,2,8,10 key_offsets=0,4,6,12,12", kPackedSizes},
    {"packed-causal", "causal=bottom-right", kPacked, kPackedSizes},
    {"packed-dropout", "dropout=0.25", kPacked, kPackedSizes},
    {"packed-tiles", "causal=bottom-right", "query_offsets=0,1,66,70 key_offsets=0,9,80,150",
     "B=1 T=70 S=150 H=2 G=1 N=3"},

    // Masked values never reach a result.
    {"poisoned-keys", "", "key_lengths=7,4 k!36 v!18"},
    {"poisoned-queries", "", "query_lengths=5,3 q!48 do!24"},
    {"poisoned-drop", "", "drop[1,1,1,S]=0,0,0,0,0,0,1 k!12 v!6", "B=1"},
    {"poisoned-bias", "", "query_lengths=4 bias!7", "B=1"},

    // Pairs.
    {"slopes-causal", "causal=bottom-right", "slopes"},
    {"slopes-top-left", "causal=top-left", "slopes"},
    {"slopes-dropout", "dropout=0.3", "slopes"},
    {"softcap-bias", "softcap=1.5", "bias"},
    {"softcap-sigmoid", "softcap=1.5 norm=sigmoid"},
    {"t5-key-lengths", "t5_max_distance=4", "t5 key_lengths=3,7"},
    {"t5-top-left", "t5_max_distance=4 causal=top-left", "t5"},
    {"bias-query-lengths", "", "bias[B,1,T,S] query_lengths=5,2"},
    {"bias-dropout-tiles", "dropout=0.2 causal=bottom-right", "bias[1,H,1,S]", kTiles},
    {"cosine-rotary", "score=cosine rotary=halves scale=3"},
    {"cosine-softcap", "score=cosine softcap=1.5 scale=3"},
    {"concat-key-lengths", "score=concat", "score_w key_lengths=7,3"},
    {"l2-rotary", "score=l2 rotary=interleaved"},
    {"l2-slopes-causal", "score=l2 causal=bottom-right", "slopes"},
    {"l2-sigmoid", "score=l2 norm=sigmoid"},
    {"additive-softcap", "score=additive softcap=1.5", "score_v"},
    {"additive-rotary", "score=additive rotary=halves", "score_v"},
    {"additive-bias-dropout", "score=additive dropout=0.3", "score_v bias"},
    {"rotary-top-left", "rotary=interleaved causal=top-left"},
    {"rotary-dropout", "rotary=halves dropout=0.3"},
    {"sink-dropout", "dropout=0.3", "sink"},
    {"sink-key-lengths", "", "sink key_lengths=0,4"},
    {"sigmoid-slopes", "norm=sigmoid", "slopes"},
    {"sigmoid-causal", "norm=sigmoid causal=bottom-right"},
    {"none-dropout", "norm=none dropout=0.3"},
    {"segments-window", "window=3,-1", "query_segments<2 key_segments<2"},
    {"strided-query-lengths", "strided=3", "query_lengths=5,3"},
    {"everything", "causal=bottom-right window=5,-1 softcap=3 dropout=0.2 rotary=halves",
     "bias slopes t5 sink keep<8 key_lengths=7,6"},
};

template <class Each>
void for_each_word(std::string_view text, const Each& each) {
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) each(word);
}

index number_of(std::string_view text) {
  index number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  check(error == std::errc() && stopped == end, "conformance: {} is no number", text);
  return number;
}

/// The sizes of a case, by letter.
class Sizes {
 public:
  explicit Sizes(std::string_view row) {
    for (const std::string_view text : {kSizes, row}) {
      for_each_word(text, [&](std::string_view word) {
        const std::size_t equals = word.find('=');
        sizes_[std::string(word.substr(0, equals))] = number_of(word.substr(equals + 1));
      });
    }
  }

  /// The shape for "B H|1 2D", or "B,1,T,S".
  Shape shape_of(std::string_view axes) const {
    std::string words(axes);
    std::replace(words.begin(), words.end(), ',', ' ');
    std::vector<index> sizes;
    for_each_word(words, [&](std::string_view word) { sizes.push_back(size_of(word)); });
    return Shape(sizes);
  }

 private:
  index size_of(std::string_view word) const {
    const AxisWord axis = axis_word(word);
    return axis.size(axis.letter.empty() ? 0 : sizes_.at(std::string(axis.letter)));
  }

  std::map<std::string, index> sizes_;
};

const TensorSpec& spec_of(std::string_view name) {
  const auto specs = attention_tensor_specs();
  const TensorSpec* spec = find_named(specs, name);
  check(spec != nullptr, "conformance: attention knows no tensor {}", name);
  return *spec;
}

DType dtype_of(TensorValues values) {
  if (values == TensorValues::kReal) return DType::kFloat32;
  return values == TensorValues::kInt32 ? DType::kInt32 : DType::kUInt8;
}

TensorRecipe recipe_of(std::string_view word, const Sizes& sizes) {
  constexpr std::string_view kMarks = "[=<~!";
  const std::string_view name = word.substr(0, word.find_first_of(kMarks));
  const TensorSpec& spec = spec_of(name);
  TensorRecipe recipe{.name = std::string(name), .dtype = dtype_of(spec.values)};
  std::string_view axes = spec.axes, rest = word.substr(name.size());
  if (!rest.empty() && rest[0] == '[') {
    axes = rest.substr(1, rest.find(']') - 1);
    rest.remove_prefix(axes.size() + 2);
  }
  recipe.shape = sizes.shape_of(axes);
  if (rest.empty()) return recipe;
  const char mark = rest[0];
  rest.remove_prefix(1);
  if (mark == '=') recipe.values = parse_numbers(rest, ',');
  if (mark == '<') recipe.below = number_of(rest);
  if (mark == '~') recipe.zeros = number_of(rest);
  if (mark == '!') recipe.poison = number_of(rest);
  return recipe;
}

std::vector<TensorRecipe> recipes_of(const Row& row) {
  const Sizes sizes(row.sizes);
  std::vector<TensorRecipe> recipes;
  for (const char* const name : {"q", "k", "v", "do"}) recipes.push_back(recipe_of(name, sizes));
  for_each_word(row.tensors, [&](std::string_view word) {
    TensorRecipe recipe = recipe_of(word, sizes);
    const auto same = std::find_if(recipes.begin(), recipes.end(), [&](const TensorRecipe& other) {
      return other.name == recipe.name;
    });
    if (same == recipes.end()) {
      recipes.push_back(std::move(recipe));
    } else {
      *same = std::move(recipe);
    }
  });
  return recipes;
}

AttentionSettings settings_of(const Row& row) {
  AttentionSettings settings;
  std::vector<Field> fields = fields_of(settings);
  bool seen = true;
  for_each_word(row.settings, [&](std::string_view word) {
    if (word == "unseen") {
      seen = false;
      return;
    }
    const std::string name(word.substr(0, word.find('=')));
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& known) { return known.name == name; });
    check(field != fields.end(), "conformance: attention knows no setting {}", name);
    const bool said = name.size() == word.size();
    set_from_text(*field, said ? "true" : std::string(word.substr(name.size() + 1)), name);
  });
  settings.backward = true;
  if (seen && settings.observe.empty()) {
    const bool softmax = settings.norm == AttentionNormKind::kSoftmax;
    settings.observe = std::string(softmax ? "entropy,distance," : "") +
                       "max,topk=3,column_mass,weights,dropout_keep";
  }
  return settings;
}

template <class T>
void fill(Vec<T> values, const TensorRecipe& recipe, Random random) {
  for (index n = 0; n < values.size; ++n) {
    const std::uint64_t word = random.next_u32();
    if (!recipe.values.empty()) {
      values[n] = static_cast<T>(recipe.values[static_cast<std::size_t>(n)]);
    } else if (recipe.below > 0) {
      values[n] = static_cast<T>(word * static_cast<std::uint64_t>(recipe.below) >> 32);
    } else {
      values[n] = static_cast<T>((static_cast<double>(word >> 8) - 0x1p23) * 0x1p-22);
    }
  }
}

void spoil(Vec<float> values, const TensorRecipe& recipe) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kPoison[] = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity};
  std::fill_n(values.data + values.size - recipe.zeros, recipe.zeros, 0.0F);
  for (index n = 0; n < recipe.poison; ++n) {
    values[values.size - recipe.poison + n] = kPoison[n % 3];
  }
}

// The rows that every part is tested with.
template <class Each>
void for_each_usual_row(const AttentionPart& part, const Each& each) {
  std::string name(part.tensor);
  std::replace(name.begin(), name.end(), '_', '-');
  each(Row{name, "", part.tensor});
  each(Row{name + "-causal", "causal=bottom-right", part.tensor});
  each(Row{name + "-tiles", "", part.tensor, kTilesOfParts});
}

}  // namespace

std::vector<ConformanceCase> conformance_cases() {
  std::vector<ConformanceCase> cases;
  const auto add = [&](const Row& row) {
    cases.push_back({std::string(row.name), settings_of(row), recipes_of(row)});
  };
  for (const Row& row : kRows) add(row);
  for (const AttentionPart& part : attention_parts()) {
    if (part.tensor.empty() || part.score) continue;
    for_each_usual_row(part, [&](const Row& row) {
      if (find_named(kRows, row.name) == nullptr) add(row);
    });
  }
  return cases;
}

Tensor make_tensor(const TensorRecipe& recipe, std::string_view case_name) {
  Tensor tensor(recipe.shape, recipe.dtype);
  const index given = static_cast<index>(recipe.values.size());
  check(given == 0 || given == tensor.size(), "conformance: {} of {} has {} values; got {}",
        recipe.name, case_name, tensor.size(), given);
  check(recipe.zeros <= tensor.size() && recipe.poison <= tensor.size(),
        "conformance: {} of {} has only {} values", recipe.name, case_name, tensor.size());
  const Random random(crc32(case_name), RandomUse::kTest, crc32(recipe.name));
  switch (recipe.dtype) {
    case DType::kFloat32:
      fill(tensor.vec<float>(), recipe, random);
      spoil(tensor.vec<float>(), recipe);
      return tensor;
    case DType::kInt32:
      fill(tensor.vec<std::int32_t>(), recipe, random);
      return tensor;
    case DType::kUInt8:
      fill(tensor.vec<std::uint8_t>(), recipe, random);
      return tensor;
    default:
      fail(ErrorCode::kInternal, "conformance: no recipe makes {}", to_string(recipe.dtype));
  }
}

}  // namespace fovea
