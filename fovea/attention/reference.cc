// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fovea/attention/bfloat16.h"
#include "fovea/attention/call.h"
#include "fovea/attention/checks.h"
#include "fovea/attention/reference_score.h"
#include "fovea/base/interruption.h"

namespace fovea::detail {

namespace {

constexpr double kNoKey = -std::numeric_limits<double>::infinity();

// One query row of one head: its scores before and after each bias part, weights and dropout.
template <class T>
struct Row {
  std::vector<bool> kept;              // [S']
  std::vector<std::vector<T>> scores;  // [parts + 1][S'], scores[n] is what part n reads
  std::vector<T> weights;              // [S'], before dropout
  std::vector<T> keep_scale;           // [S'], 0 where dropped
  T lse;
  T sink_weight = 0;
};

template <class T>
T dot(const T* a, const T* b, index n) {
  T sum = 0;
  for (index i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <class T>
struct Call {
  const Attention<T>& attention;
  const std::vector<Sequence> sequences;
  const RotatedRows<T> rotated;
  const AttentionInputs<T>& in;  // rotated
  T scale;
  bool has_score;  // else the first part of the bias makes it
  DropoutRule dropout;
  Factors factors;

  Call(const Attention<T>& a, const AttentionInputs<T>& i, Factors f)
      : attention(a),
        sequences(make_sequences(a, i)),
        rotated(a.rotary, sequences, i, f),
        in(rotated.in()),
        scale(static_cast<T>(scale_of(a.score, i.q.width))),
        has_score(!makes_score(a.bias)),
        dropout(dropout_rule(a.dropout)),
        factors(f) {}

  // A weight or the gradient of a score, as the products read it.
  T operand(T x) const { return as_factor(x, factors); }

  const T* q(const Sequence& s, index h, index i) const {
    return in.q.row(s.batch, s.query_row + i, h);
  }
  const T* k(const Sequence& s, index h, index j) const {
    return in.k.row(s.batch, s.key_row + j, group_of(h, in.q.heads, in.k.heads));
  }
  const T* v(const Sequence& s, index h, index j) const {
    return in.v.row(s.batch, s.key_row + j, group_of(h, in.q.heads, in.k.heads));
  }

  ScoreRows<T> rows(const ScoreSite& site) const {
    return {{q(site.sequence, site.head, site.i), in.q.width},
            {k(site.sequence, site.head, site.j), in.k.width},
            scale};
  }
  // The rows that the parts of the bias see.
  SeenRows<T> seen(const ScoreSite& site) const {
    if (attention.bias.empty()) return {};
    return seen_rows(attention.score, site.head, rows(site));
  }

  template <class F>
  void for_each_value(const ScoreSite& site, F&& f) const;
  Row<T> row(const Sequence& sequence, index h, index i) const;
  void normalise(Row<T>& row, index h) const;
  // Without softmax, whose weight is 0 there anyway: the weight of a score of -infinity is 0, and a
  // constant.
  bool is_masked_by_score(T score) const {
    return !needs_lse(attention.norm) && score == static_cast<T>(kNoKey);
  }
};

template <class T>
Row<T> Call<T>::row(const Sequence& sequence, index h, index i) const {
  const auto& parts = attention.bias.parts();
  const auto S = static_cast<std::size_t>(sequence.keys);
  Row<T> row{std::vector<bool>(S),
             std::vector(parts.size() + 1, std::vector<T>(S)),
             std::vector<T>(S),
             std::vector<T>(S, T{1}),
             T{0},
             T{0}};
  const DropoutStream stream = dropout_stream(attention.dropout, sequence, h);
  for (index j = 0; j < sequence.keys; ++j) {
    const ScoreSite site{sequence, h, i, j};
    const auto at = static_cast<std::size_t>(j);
    row.kept[at] = attention.mask.keeps(site);
    if (!row.kept[at]) continue;  // a masked score is not computed
    T score = has_score ? reference_score(attention.score, h, rows(site)) : T{0};
    row.scores[0][at] = score;
    const SeenRows<T> seen = this->seen(site);
    for (std::size_t n = 0; n < parts.size(); ++n) {
      score = parts[n]->apply_one(site, seen.in_place_of(rows(site)), score);
      row.scores[n + 1][at] = score;
    }
    if (dropout.active()) {
      const bool dropped = drops(dropout, stream, i, j);
      row.keep_scale[at] = dropped ? T{0} : static_cast<T>(dropout.keep_scale);
    }
  }
  normalise(row, h);
  return row;
}

// The sink counts as one more score, whose weight is not returned.
template <class T>
void softmax(Row<T>& row, T sink) {
  const std::vector<T>& scores = row.scores.back();
  T largest = sink;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    // Not std::max, which ignores a NaN.
    if (row.kept[j] && !(scores[j] <= largest)) largest = scores[j];
  }
  row.lse = static_cast<T>(kNoKey);
  if (largest == static_cast<T>(kNoKey)) return;
  row.sink_weight = std::exp(sink - largest);
  T sum = row.sink_weight;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (!row.kept[j]) continue;
    row.weights[j] = std::exp(scores[j] - largest);
    sum += row.weights[j];
  }
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (row.kept[j]) row.weights[j] /= sum;
  }
  row.sink_weight /= sum;
  row.lse = largest + std::log(sum);
}

template <class T>
void Call<T>::normalise(Row<T>& row, index h) const {
  const RowNorm<T> norm = row_norm_of(attention, h);
  if (needs_lse(attention.norm)) return softmax(row, norm.sink);
  for (std::size_t j = 0; j < row.weights.size(); ++j) {
    if (row.kept[j]) row.weights[j] = norm.weight(row.scores.back()[j], T{0}, T{1});
  }
}

template <class T>
void clear(const AttentionOutputs<T>& out) {
  fill(out.o, T{0});
  fill(out.lse, static_cast<T>(kNoKey));
  fill(out.lse_low, T{0});
  fill(out.weights, T{0});
}

template <class T>
void observe_row(const Attention<T>& attention, const Row<T>& row, const ScoreSite& site) {
  const Observe<T>& observers = attention.observe;
  if (observers.empty()) return;
  std::vector<T> scores = row.scores.back();
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (!row.kept[j]) scores[j] = static_cast<T>(kNoKey);
  }
  const auto S = static_cast<index>(scores.size());
  for (const auto& observer : observers.parts()) {
    observer->row({site.sequence,
                   site.head,
                   site.i,
                   {scores.data(), S},
                   {row.weights.data(), S},
                   row.lse,
                   &attention.dropout});
  }
}

// Calls f with v_j, and with the vector that each value part adds to it.
template <class T>
template <class F>
void Call<T>::for_each_value(const ScoreSite& site, F&& f) const {
  f(v(site.sequence, site.head, site.j));
  if (attention.values.empty()) return;
  std::vector<T> vector(static_cast<std::size_t>(in.v.width));
  for (const auto& part : attention.values.parts()) {
    part->vector(site, {vector.data(), in.v.width});
    f(vector.data());
  }
}

struct RowSite {
  const Sequence& sequence;
  index h, i;
};

// One list of sums for each: the bias parts, the value parts, the sink, the score.
using Sums = std::vector<std::vector<double>>;

// Undoes the parts of the bias, last to first, then the score: adds to the gradients of its rows,
// given that of the final score.
template <class T>
void pull_score(const Call<T>& call, const ScoreSite& site, const Row<T>& row, T ds,
                const ScoreGradients<T>& gradients, Sums& sums) {
  const auto& parts = call.attention.bias.parts();
  const ScoreRows<T> rows = call.rows(site);
  const SeenRows<T> seen = call.seen(site);
  SeenRows<T> dseen{std::vector<T>(seen.q.size()), std::vector<T>(seen.k.size())};
  for (std::size_t n = parts.size(); n-- > 0;) {
    ScoreGradients<T> to = dseen.in_place_of(gradients);
    const index batch = parts[n]->sums_by_batch() ? site.sequence.batch : 0;
    const index of_head = batch * call.in.q.heads + site.head;
    to.parameters = sums[n].data() + of_head * parts[n]->gradient_size();
    const T score = row.scores[n][static_cast<std::size_t>(site.j)];
    ds = parts[n]->pull_one(site, seen.in_place_of(rows), score, ds, to);
  }
  const Score<T>& score = call.attention.score;
  if (!parts.empty()) pull_seen_rows(score, site.head, rows, dseen, gradients);
  if (call.has_score) pull_reference_score(score, site.head, rows, call.operand(ds), gradients);
}

// Gradients of one query row.
template <class T>
void row_backward(const Call<T>& call, const RowSite& site, const AttentionSaved<T>& saved,
                  const AttentionGradients<T>& gradients, Sums& sums) {
  const auto& [sequence, h, i] = site;
  const T* d_o = saved.d_o.row(sequence.batch, sequence.query_row + i, h);
  const T* saved_o = saved.o.row(sequence.batch, sequence.query_row + i, h);
  const Row<T> row = call.row(sequence, h, i);
  const auto& parts = call.attention.bias.parts();
  const auto& values = call.attention.values.parts();
  const index g = group_of(h, call.in.q.heads, call.in.k.heads);
  const index D = call.in.q.width, Dv = call.in.v.width;
  // Gradients that are not asked for are added to a row that is not read.
  std::vector<T> unwanted(static_cast<std::size_t>(std::max(D, Dv)));
  const index batch = sequence.batch;
  const auto row_of = [&](const View<T>& view, index l, index head) {
    return view.empty() ? unwanted.data() : view.row(batch, l, head);
  };
  T* dq = row_of(gradients.dq, sequence.query_row + i, h);
  const index weights = score_gradient_size(call.attention.score);
  double* dweights = weights == 0 ? nullptr : sums.back().data() + h * weights;
  std::vector<T> dp(row.weights.size());
  const T d_lse = saved.d_lse.empty() ? T{0} : saved.d_lse.at(batch, h, sequence.query_row + i);
  const T delta = dot(d_o, saved_o, Dv) - d_lse;
  const RowNorm<T> norm = row_norm_of(call.attention, h);
  const bool any = std::find(row.kept.begin(), row.kept.end(), true) != row.kept.end();
  if (const Sink<T>& sink = call.attention.sink; !sink.dlogits.empty()) {
    // The sink has value 0. If no key is kept, o is 0 for any sink, and lse is the sink.
    sums[parts.size() + values.size()][static_cast<std::size_t>(h)] -=
        static_cast<double>(any ? row.sink_weight * delta : -row.sink_weight * d_lse);
  }
  for (index j = 0; j < sequence.keys; ++j) {
    const auto at = static_cast<std::size_t>(j);
    if (!row.kept[at]) continue;
    call.for_each_value({sequence, h, i, j}, [&](const T* value) {
      dp[at] += row.keep_scale[at] * dot(d_o, value, Dv);
    });
  }
  for (index j = 0; j < sequence.keys; ++j) {
    const auto at = static_cast<std::size_t>(j);
    if (!row.kept[at] || call.is_masked_by_score(row.scores.back()[at])) continue;
    const ScoreSite score_site{sequence, h, i, j};
    const index key_row = sequence.key_row + j;
    T* dk = row_of(gradients.dk, key_row, g);
    T* dv = row_of(gradients.dv, key_row, g);
    pull_score(call, score_site, row, norm.dscore(row.weights[at], dp[at], delta),
               {{dq, D}, {dk, D}, dweights}, sums);
    const T weight = call.operand(row.weights[at] * row.keep_scale[at]);
    std::vector<T> dvalue(d_o, d_o + Dv);
    for (T& x : dvalue) x *= weight;
    for (index c = 0; c < Dv; ++c) dv[c] += dvalue[static_cast<std::size_t>(c)];
    for (std::size_t n = 0; n < values.size(); ++n) {
      double* sums_of_head = sums[parts.size() + n].data() + h * values[n]->gradient_size();
      values[n]->add_parameters(score_site, {dvalue.data(), Dv}, sums_of_head);
    }
  }
}

}  // namespace

template <class T>
void reference_forward(const Attention<T>& attention, const AttentionInputs<T>& in,
                       const AttentionOutputs<T>& out, Factors factors) {
  start_call(attention);
  clear(out);
  for (const auto& observer : attention.observe.parts()) observer->clear();
  const Call<T> call(attention, in, factors);
  for (const Sequence& sequence : call.sequences) {
    for (index h = 0; h < in.q.heads; ++h) {
      for (index i = 0; i < sequence.queries; ++i) {
        stop_if_interrupted();
        const Row<T> row = call.row(sequence, h, i);
        const index query_row = sequence.query_row + i;
        if (!out.lse.empty()) out.lse.at(sequence.batch, h, query_row) = row.lse;
        observe_row(attention, row, {sequence, h, i, 0});
        for (index j = 0; j < sequence.keys; ++j) {
          const auto at = static_cast<std::size_t>(j);
          if (!row.kept[at]) continue;
          if (!out.weights.empty()) {
            out.weights.at(sequence.batch, h, query_row, sequence.key_row + j) = row.weights[at];
          }
          const T weight = call.operand(row.weights[at] * row.keep_scale[at]);
          T* o = out.o.row(sequence.batch, query_row, h);
          call.for_each_value({sequence, h, i, j}, [&](const T* value) {
            for (index c = 0; c < in.v.width; ++c) o[c] += weight * value[c];
          });
        }
      }
    }
  }
}

template <class T>
void reference_backward(const Attention<T>& attention, const AttentionInputs<T>& in,
                        const AttentionSaved<T>& saved, const AttentionGradients<T>& gradients,
                        Factors factors) {
  start_call(attention);
  fill(gradients.dq, T{0});
  fill(gradients.dk, T{0});
  fill(gradients.dv, T{0});
  for (const auto& part : attention.bias.parts()) part->start_gradient(Context(1));
  const Call<T> call(attention, in, factors);
  const index H = in.q.heads;
  Sums sums;
  const auto heads_of = [&](const BiasPart<T>& part) {
    return part.sums_by_batch() ? in.q.batch * H : H;
  };
  for (const auto& part : attention.bias.parts()) {
    sums.emplace_back(static_cast<std::size_t>(part->gradient_size() * heads_of(*part)));
  }
  for (const auto& part : attention.values.parts()) {
    sums.emplace_back(static_cast<std::size_t>(part->gradient_size() * H));
  }
  sums.emplace_back(static_cast<std::size_t>(H));
  sums.emplace_back(static_cast<std::size_t>(score_gradient_size(attention.score) * H));
  for (const Sequence& sequence : call.sequences) {
    for (index h = 0; h < in.q.heads; ++h) {
      for (index i = 0; i < sequence.queries; ++i) {
        stop_if_interrupted();
        row_backward<T>(call, {sequence, h, i}, saved, gradients, sums);
      }
    }
  }
  rotate_back(attention.rotary, call.sequences, gradients.dq, gradients.dk, factors);
  auto next = sums.begin();
  const auto store = [&](const auto& part, index heads) {
    if (part.gradient_size() > 0) part.store_gradient(next->data(), heads);
    ++next;
  };
  for (const auto& part : attention.bias.parts()) store(*part, heads_of(*part));
  for (const auto& part : attention.values.parts()) store(*part, H);
  const Vec<T> dsink = attention.sink.dlogits;
  for (index h = 0; h < dsink.size; ++h) {
    dsink[h] = static_cast<T>((*next)[static_cast<std::size_t>(h)]);
  }
  store_score_gradient(attention.score, sums.back());
}

#define FOVEA_INSTANTIATE(T)                                                               \
  template void reference_forward(const Attention<T>&, const AttentionInputs<T>&,          \
                                  const AttentionOutputs<T>&, Factors);                    \
  template void reference_backward(const Attention<T>&, const AttentionInputs<T>&,         \
                                   const AttentionSaved<T>&, const AttentionGradients<T>&, \
                                   Factors);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail

namespace fovea {

template <class T>
void attention_reference_forward(const Attention<T>& attention, const AttentionInputs<T>& in,
                                 const AttentionOutputs<T>& out) {
  detail::check_attention(attention, in);
  detail::check_outputs(attention, in, out);
  detail::check_overlap(attention, in, out);
  detail::reference_forward(attention, in, out, detail::Factors::kExact);
}

void attention_reference_forward(const Attention<float>& attention,
                                 const AttentionInputs<BFloat16>& in,
                                 const AttentionOutputs<BFloat16>& out) {
  detail::check_attention(attention, in);
  detail::check_outputs(attention, in, out);
  detail::check_overlap(attention, in, out);
  const Context ctx(1);
  Scratch scratch;
  detail::Converted q(ctx, in.q, scratch), k(ctx, in.k, scratch), v(ctx, in.v, scratch);
  detail::Converted o(out.o, scratch);
  const AttentionInputs<float> wide{q.view(), k.view(), v.view()};
  detail::reference_forward<float>(attention, wide, {o.view(), out.lse, out.lse_low, out.weights},
                                   detail::Factors::kBFloat16);
  o.round_into(ctx, out.o);
}

template <class T>
void attention_reference_backward(const Attention<T>& attention, const AttentionInputs<T>& in,
                                  const AttentionSaved<T>& saved,
                                  const AttentionGradients<T>& gradients) {
  detail::check_attention(attention, in);
  detail::check_gradients(attention, in, saved, gradients);
  detail::check_overlap(attention, in, saved, gradients);
  detail::reference_backward(attention, in, saved, gradients, detail::Factors::kExact);
}

void attention_reference_backward(const Attention<float>& attention,
                                  const AttentionInputs<BFloat16>& in,
                                  const AttentionSaved<BFloat16>& saved,
                                  const AttentionGradients<BFloat16>& gradients) {
  detail::check_attention(attention, in);
  detail::check_gradients(attention, in, saved, gradients);
  detail::check_overlap(attention, in, saved, gradients);
  const Context ctx(1);
  Scratch scratch;
  detail::Converted q(ctx, in.q, scratch), k(ctx, in.k, scratch), v(ctx, in.v, scratch);
  detail::Converted o(ctx, saved.o, scratch), d_o(ctx, saved.d_o, scratch);
  detail::ConvertedGradient dq(gradients.dq, scratch), dk(gradients.dk, scratch),
      dv(gradients.dv, scratch);
  const AttentionInputs<float> wide{q.view(), k.view(), v.view()};
  detail::reference_backward<float>(attention, wide,
                                    {o.view(), saved.lse, d_o.view(), saved.lse_low, saved.d_lse},
                                    {dq.view(), dk.view(), dv.view()}, detail::Factors::kBFloat16);
  dq.store(ctx);
  dk.store(ctx);
  dv.store(ctx);
}

template void attention_reference_forward(const Attention<float>&, const AttentionInputs<float>&,
                                          const AttentionOutputs<float>&);
template void attention_reference_forward(const Attention<double>&, const AttentionInputs<double>&,
                                          const AttentionOutputs<double>&);
template void attention_reference_backward(const Attention<float>&, const AttentionInputs<float>&,
                                           const AttentionSaved<float>&,
                                           const AttentionGradients<float>&);
template void attention_reference_backward(const Attention<double>&, const AttentionInputs<double>&,
                                           const AttentionSaved<double>&,
                                           const AttentionGradients<double>&);

}  // namespace fovea
