// SPDX-License-Identifier: Apache-2.0
// Something of one's own to be seen of the weights: the key that each query looks at most. Nothing
// of size T x S is stored for it. Entropy, a ready-made observer, runs beside it.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "fovea/attention/attention.h"

namespace {

using fovea::index;

class Favourite final : public fovea::Observer<float> {
 public:
  explicit Favourite(std::vector<index>& keys) : keys_(keys) {}
  void row(const fovea::ObservedRow<float>& row) const override {
    const auto most = std::max_element(row.weights.begin(), row.weights.end());
    keys_[static_cast<std::size_t>(row.i)] = most - row.weights.begin();
  }
  void clear() const override { std::fill(keys_.begin(), keys_.end(), index{-1}); }
  std::string name() const override { return "favourite"; }

 private:
  std::vector<index>& keys_;
};

}  // namespace

int main() {
  const index T = 200, D = 8;
  std::vector<float> x(T * D), o(x.size()), entropy(T);
  for (index i = 0; i < T; ++i) x[static_cast<std::size_t>(i * D + i % D)] = 30;
  std::vector<index> keys(T);
  const auto qkv = fovea::View<const float>::contiguous(x.data(), 1, T, 1, D);
  const fovea::Attention<float> attention{
      .mask = fovea::mask::Window(D - 1, 0),
      .observe = Favourite(keys) + fovea::observe::Entropy<float>(
                                       fovea::RowView<float>::contiguous(entropy.data(), 1, 1, T))};
  fovea::attention_forward<float>(fovea::Context(), attention, {qkv, qkv, qkv},
                                  {.o = fovea::View<float>::contiguous(o.data(), 1, T, 1, D)});
  // Of any D keys in a row each points elsewhere: a query finds itself.
  index wrong = 0;
  for (index i = 0; i < T; ++i) wrong += keys[static_cast<std::size_t>(i)] != i;
  std::printf("%lld of %lld queries look elsewhere; entropy of the last: %.2g nats\n",
              static_cast<long long>(wrong), static_cast<long long>(T),
              static_cast<double>(entropy.back()));
  return wrong == 0 && entropy.back() < 1e-3f ? 0 : 1;
}
