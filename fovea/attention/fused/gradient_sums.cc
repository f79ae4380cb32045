// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/gradient_sums.h"

#include <algorithm>
#include <cmath>

#include "fovea/attention/fused/score_tile.h"

namespace fovea::detail {

namespace {

// The gradient of the sink, with the interface of a part.
template <class T>
struct SinkGradient {
  Vec<T> dlogits;

  index gradient_size() const { return dlogits.empty() ? 0 : 1; }
  void store_gradient(const double* sums, index heads) const {
    for (index h = 0; h < heads; ++h) dlogits[h] = static_cast<T>(sums[h]);
  }
};

}  // namespace

template <class T>
GradientSums<T>::GradientSums(const Attention<T>& attention, index heads)
    : attention_(attention),
      heads_(heads),
      size_(gradient_size_of(attention.bias) + gradient_size_of(attention.values) +
            SinkGradient<T>{attention.sink.dlogits}.gradient_size()) {}

template <class T>
index GradientSums<T>::add_tables(index first_head, index last_head, index chunks, index batch) {
  const auto first = static_cast<index>(head_of_.size());
  for (index n = 0; n < chunks; ++n) {
    for (index h = first_head; h < last_head; ++h) head_of_.push_back(h);
  }
  batch_of_.resize(head_of_.size(), batch);
  return first;
}

template <class T>
void GradientSums<T>::allocate(const Context& ctx) {
  const std::size_t sums = head_of_.size() * static_cast<std::size_t>(size_);
  if (sums == 0) return;
  sums_ = allocate_aligned(sums * sizeof(double));
  ctx.run_here([&] { std::fill_n(table(0), sums, 0.0); });
}

namespace {

// Whether the row keeps no key. In such a row o is 0 and lse is the sink's logit, so `above` (sink
// - lse) is 0, or NaN if the logit is -infinity.
template <class T>
bool is_empty_row(const View<const T>& o, const Sequence& sequence, index head, index i,
                  double above) {
  if (above < 0) return false;
  const T* const row = o.row(sequence.batch, sequence.query_row + i, head);
  return std::all_of(row, row + o.width, [](T x) { return widen(x) == 0; });
}

}  // namespace

template <class T>
template <class In>
void GradientSums<T>::set_sink(index number, const AttentionSaved<In>& saved,
                               const Sequence& sequence, const T* delta) const {
  const Sink<T>& sink = attention_.sink;
  if (sink.dlogits.empty()) return;
  const index head = head_of_[static_cast<std::size_t>(number)];
  double sum = 0;
  for (index i = 0; i < sequence.queries; ++i) {
    const index row = sequence.query_row + i;
    auto above = static_cast<double>(sink.logits[head]);
    above -= static_cast<double>(saved.lse.at(sequence.batch, head, row));
    if (!saved.lse_low.empty()) {
      above -= static_cast<double>(saved.lse_low.at(sequence.batch, head, row));
    }
    // The dO of an empty row may be NaN or infinite, and so may delta. Its lse is the sink.
    if (is_empty_row(saved.o, sequence, head, i, above)) {
      if (!saved.d_lse.empty()) {
        sum += static_cast<double>(saved.d_lse.at(sequence.batch, head, row));
      }
      continue;
    }
    sum -= std::exp(above) * static_cast<double>(delta[i]);
  }
  table(number)[size_ - 1] = sum;
}

template <class T>
void GradientSums<T>::store() const {
  index offset = 0;
  for (const auto& part : attention_.bias.parts()) offset = store(*part, offset);
  for (const auto& part : attention_.values.parts()) offset = store(*part, offset);
  store(SinkGradient<T>{attention_.sink.dlogits}, offset);
}

template <class T>
template <class Part>
index GradientSums<T>::store(const Part& part, index offset) const {
  const index size = part.gradient_size();
  if (size == 0) return offset;
  index batches = 1;
  if constexpr (requires { part.sums_by_batch(); }) {
    if (part.sums_by_batch() && !batch_of_.empty()) {
      batches += *std::max_element(batch_of_.begin(), batch_of_.end());
    }
  }
  std::vector<double> total(static_cast<std::size_t>(batches * heads_ * size));
  for (std::size_t n = 0; n < head_of_.size(); ++n) {
    const index row = (batches == 1 ? 0 : batch_of_[n] * heads_) + head_of_[n];
    double* const of_head = total.data() + row * size;
    const double* const sums = table(static_cast<index>(n)) + offset;
    for (index i = 0; i < size; ++i) of_head[i] += sums[i];
  }
  part.store_gradient(total.data(), batches * heads_);
  return offset + size;
}

template class GradientSums<float>;
template class GradientSums<double>;

#define FOVEA_INSTANTIATE(T)                                                                      \
  template void GradientSums<Wide<T>>::set_sink(index, const AttentionSaved<T>&, const Sequence&, \
                                                const Wide<T>*) const;
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
FOVEA_INSTANTIATE(BFloat16)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail
