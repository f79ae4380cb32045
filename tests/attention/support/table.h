// SPDX-License-Identifier: Apache-2.0
// Every mask, bias, value part, norm and score there is, a row each: the tests that loop over the
// table look at it. Biases of the table of parts are rows by themselves; a new mask, norm or score
// gets its row here.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tests/attention/support/call.h"
#include "tests/attention/support/part_tensors.h"
#include "tests/attention/support/relative_values.h"

namespace fovea::testing {

/// What the rows of the table need: the numbers of masks for `batch` rows (up to 3), 2 heads and
/// `most` queries and keys.
struct TableData {
  static constexpr index kMost = 90;
  index batch, most;
  index queries = most;
  std::vector<std::int32_t> lengths, query_segments, key_segments, ids;
  std::vector<std::int32_t> windows = {17, 3, -1, 40};
  std::vector<std::uint8_t> dense;

  explicit TableData(index B = 3, index L = kMost)
      : batch(B), most(L), lengths({static_cast<std::int32_t>(L), 40, 0}) {
    lengths.resize(static_cast<std::size_t>(B));
    Random random(5, RandomUse::kTest);
    for (index n = 0; n < B * 2 * L * L; ++n) dense.push_back(random.below(3) > 0 ? 255 : 0);
    for (index n = 0; n < B * L; ++n) {
      const auto place = static_cast<std::int32_t>(n % L), row = static_cast<std::int32_t>(n / L);
      query_segments.push_back(place / 25 - row);
      key_segments.push_back(place / (31 + row) - row);
      ids.push_back(place % 7 == 3 || (place >= 40 && place < 70) ? 0 : place + 1);
    }
  }
  Rows<const std::int32_t> numbers(const std::vector<std::int32_t>& of) const {
    return {of.data(), batch, most};
  }
  Rows<const std::int32_t> segments_of_queries() const {
    return {query_segments.data(), batch, queries, most};
  }
  ScoreView<const std::uint8_t> matrix() const {
    return ScoreView<const std::uint8_t>::contiguous(dense.data(), batch, 2, queries, most);
  }
};

struct MaskRow {
  const char* name;
  Mask (*make)(const TableData&);
};

inline const std::vector<MaskRow>& mask_table() {
  static const std::vector<MaskRow> rows = {
      {"all", [](const TableData&) { return mask::All(); }},
      {"causal", [](const TableData&) { return Mask(mask::Causal()); }},
      {"causal(top-left)", [](const TableData&) { return Mask(mask::Causal(Align::kTopLeft)); }},
      {"window", [](const TableData&) { return Mask(mask::Window(17, 3)); }},
      {"head_windows",
       [](const TableData& d) {
         return Mask(mask::HeadWindows(Rows<const std::int32_t>(d.windows.data(), 2, 2)));
       }},
      {"dilated", [](const TableData&) { return Mask(mask::Dilated(5)); }},
      {"dilated, bounded", [](const TableData&) { return mask::dilated(3, 4, 2); }},
      {"strided", [](const TableData&) { return Mask(mask::Strided(9)); }},
      {"segments",
       [](const TableData& d) {
         return Mask(mask::Segments(d.segments_of_queries(), d.numbers(d.key_segments)));
       }},
      {"not_padding", [](const TableData& d) { return Mask(mask::NotPadding(d.numbers(d.ids))); }},
      {"key_lengths",
       [](const TableData& d) { return Mask(mask::KeyLengths(view_of(d.lengths))); }},
      {"query_lengths",
       [](const TableData& d) {
         static const std::vector<std::int32_t> few = {0, 1, 0};
         const std::vector<std::int32_t>& lengths = d.queries < d.most ? few : d.lengths;
         return Mask(mask::QueryLengths({lengths.data(), d.batch}));
       }},
      {"keep", [](const TableData& d) { return Mask(mask::Keep(d.matrix())); }},
      {"drop", [](const TableData& d) { return Mask(mask::Drop(d.matrix())); }},
      {"where",
       [](const TableData&) {
         return Mask(mask::Where([](const ScoreSite& site) { return (site.i + site.j) % 3 != 0; }));
       }},
  };
  return rows;
}

/// Parameters of biases for 2 heads, `queries` queries, `most` keys and rows of `width` values, and
/// of value parts for kDv columns, and their gradients.
template <class V>
struct PartData {
  static constexpr index kDv = 3, kClip = 2, kShaw = 11, kWidth = 4;
  index most = TableData::kMost;
  index width = kWidth;
  index queries = most;
  std::array<V, 2> learned = {V{2.5}, V{0.125}}, dlearned = {};
  std::vector<V> table = normals<V>(77, (2 * kClip + 1) * kDv), dtable = table;
  std::vector<V> w = {}, dw = {};  // of the score concat, or v of additive
  std::vector<V> sink = {V{1.5}, V{-0.5}}, dsink = {V{0}, V{0}};
  std::vector<std::int32_t> log_n_windows = {60, 3, kOpen, 9};
  std::vector<V> shaw_v = normals<V>(81, kShaw*kDv), dshaw_v = shaw_v;
  std::vector<PartTensor<V>> biases = drawn();  ///< of the table of parts

  std::vector<PartTensor<V>> drawn() const {
    std::vector<PartTensor<V>> all;
    for (const std::size_t n : bias_rows()) {
      all.push_back(drawn_part<V>(n, {1, queries, most, 2, 1, width, kDv}));
    }
    return all;
  }
  PartTensor<V>& of(std::string_view tensor) {
    return *std::find_if(biases.begin(), biases.end(),
                         [&](auto& one) { return one.part().tensor == tensor; });
  }
  std::vector<double> gradients() const {
    std::vector<double> all(dlearned.begin(), dlearned.end());
    const auto append = [&](const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
    append(dtable);
    append(dsink);
    append(dw);
    append(dshaw_v);
    for (const PartTensor<V>& bias : biases) append(bias.dx);
    return all;
  }
  Rows<const V> rows(std::string_view tensor) {
    const PartTensor<V>& one = of(tensor);
    return part_views<V>(one.shape, one.x.data(), nullptr).values;
  }
  Rows<V> gradient_rows(std::string_view tensor) {
    PartTensor<V>& one = of(tensor);
    return part_views<V>(one.shape, nullptr, one.dx.data()).gradient;
  }
  Bias<V> t5_causal() {
    return bias::T5<V>(rows("t5"), gradient_rows("t5"), {bias::T5Direction::kCausal, 50});
  }
  Bias<V> log_n_scale() const {
    const mask::HeadWindows windows(Rows<const std::int32_t>(log_n_windows.data(), 2, 2));
    return bias::LogNScale<V>(20, mask::Causal() & windows);
  }
  Bias<V> shaw_keys(ShawOrder order) {
    return bias::Shaw<V>(rows("shaw_k"), gradient_rows("shaw_k"), order);
  }
  /// One row for all heads and queries.
  Bias<V> shared_bias() {
    PartTensor<V>& one = of("bias");
    return bias::Dense<V>(ScoreView<const V>::contiguous(one.x.data(), 1, 1, 1, most),
                          ScoreView<V>::contiguous(one.dx.data(), 1, 1, 1, most));
  }
};

template <class V>
struct BiasRow {
  std::string name;
  std::function<Bias<V>(PartData<V>&)> make;
  double ulps = 0;  ///< by how much a tile may differ from the definition
  double size = 0;  ///< of the terms of a value, if they may cancel
};

/// Biases that the table of parts does not make by itself.
template <class V>
std::vector<BiasRow<V>> other_biases() {
  return {
      {"none", [](PartData<V>&) { return Bias<V>(); }},
      {"alibi, slopes fixed",
       [](PartData<V>& d) {
         return Bias<V>(bias::Alibi<V>({d.of("slopes").x.data(), 2}));
       }},
      {"lambda",
       [](PartData<V>&) {
         return Bias<V>(bias::of<V>([](auto s, const ScoreSite&) { return 3 * tanh(s / 3); }));
       }},
      {"lambda that learns",
       [](PartData<V>& d) {
         return Bias<V>(bias::of(bias::Learned<V, 2>{d.learned, d.dlearned},
                                 [](auto s, const ScoreSite& site, const auto& a) {
                                   return a[0] * tanh(s / a[0]) -
                                          a[1] * std::abs(site.position() - site.j);
                                 }));
       }},
      {"traced lambda",
       [](PartData<V>&) { return Bias<V>(bias::of<V>([](auto s) { return 3 * tanh(s / 3); })); },
       8},
      {"traced lambda that learns",
       [](PartData<V>& d) {
         return Bias<V>(bias::of(bias::Learned<V, 2>{d.learned, d.dlearned},
                                 [](auto s, const Place auto& at, const auto& a) {
                                   return a[0] * tanh(s / a[0]) - a[1] * abs(at.position() - at.j);
                                 }));
       },
       16, 8},
      {"softcap", [](PartData<V>&) { return Bias<V>(bias::Softcap<V>(2)); }, 8},
      {"t5, causal", [](PartData<V>& d) { return d.t5_causal(); }},
      {"log_n_scale", [](PartData<V>& d) { return d.log_n_scale(); }},
      {"shaw, j-i", [](PartData<V>& d) { return d.shaw_keys(ShawOrder::kKeyMinusQuery); }, 8, 8},
      {"bias, shared", [](PartData<V>& d) { return d.shared_bias(); }},
  };
}

/// First none, last the bias that takes longest.
template <class V>
const std::vector<BiasRow<V>>& bias_table() {
  static const std::vector<BiasRow<V>> rows = [] {
    std::vector<BiasRow<V>> all = other_biases<V>();
    for (std::size_t n = 0; n < bias_rows().size(); ++n) {
      const AttentionPart& part = attention_parts()[bias_rows()[n]];
      // Of a product with a row the terms may cancel.
      const double bound = part.axes.find('D') != std::string_view::npos ? 8 : 0;
      all.insert(all.end() - 1,
                 {std::string(part.tensor), [n](PartData<V>& d) { return bias_of(d.biases[n]); },
                  bound, bound});
    }
    return all;
  }();
  return rows;
}

template <class V>
struct ValueRow {
  const char* name;
  Values<V> (*make)(PartData<V>&);
};

template <class V>
const std::vector<ValueRow<V>>& value_table() {
  static const std::vector<ValueRow<V>> rows = {
      {"none", [](PartData<V>&) { return Values<V>(); }},
      {"relative",
       [](PartData<V>& d) {
         return Values<V>(RelativeValues<V>(PartData<V>::kClip, d.table, d.dtable));
       }},
      {"shaw",
       [](PartData<V>& d) {
         return Values<V>(values::Shaw<V>({d.shaw_v.data(), d.kShaw, d.kDv},
                                          {d.dshaw_v.data(), d.kShaw, d.kDv}));
       }},
  };
  return rows;
}

template <class V>
struct NormRow {
  const char* name;
  void (*set)(Attention<V>&, PartData<V>&);
};

template <class V>
const std::vector<NormRow<V>>& norm_table() {
  static const std::vector<NormRow<V>> rows = {
      {"softmax", [](Attention<V>&, PartData<V>&) {}},
      {"softmax with a sink",
       [](Attention<V>& attention, PartData<V>& d) {
         attention.sink = {{d.sink.data(), 2}, {d.dsink.data(), 2}};
       }},
      {"sigmoid", [](Attention<V>& a, PartData<V>&) { a.norm = norm::Sigmoid(); }},
      {"none", [](Attention<V>& a, PartData<V>&) { a.norm = norm::None(); }},
  };
  return rows;
}

/// Scores of rows of D values, D even.
template <class V>
struct ScoreRow {
  const char* name;
  void (*set)(Attention<V>&, PartData<V>&, index D);
};

template <class V>
const std::vector<ScoreRow<V>>& score_table() {
  static const std::vector<ScoreRow<V>> rows = {
      {"dot", [](Attention<V>&, PartData<V>&, index) {}},
      {"cosine",
       [](Attention<V>& attention, PartData<V>&, index) { attention.score = score::Cosine{3}; }},
      {"concat",
       [](Attention<V>& attention, PartData<V>& d, index D) {
         d.w = normals<V>(78, 2 * 2 * D);
         d.dw.assign(d.w.size(), V{0});
         attention.score = score::Concat<V>{{d.w.data(), 2, 2 * D}, {d.dw.data(), 2, 2 * D}};
       }},
      {"l2", [](Attention<V>& attention, PartData<V>&, index) { attention.score = score::L2(); }},
      {"additive",
       [](Attention<V>& attention, PartData<V>& d, index D) {
         d.w = normals<V>(78, 2 * D);
         d.dw.assign(d.w.size(), V{0});
         attention.score = score::Additive<V>{{d.w.data(), 2, D}, {d.dw.data(), 2, D}};
       }},
      {"rotary",
       [](Attention<V>& attention, PartData<V>&, index) {
         attention.rotary = {RotaryPairs::kInterleaved, 100};
       }},
      {"l2 with rotary",
       [](Attention<V>& attention, PartData<V>&, index) {
         attention.score = score::L2{0.25};
         attention.rotary = {RotaryPairs::kHalves, 100};
       }},
      {"cosine with rotary",
       [](Attention<V>& attention, PartData<V>&, index) {
         attention.score = score::Cosine{3};
         attention.rotary = {RotaryPairs::kHalves, 100};
       }},
  };
  return rows;
}

}  // namespace fovea::testing
