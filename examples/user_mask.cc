// SPDX-License-Identifier: Apache-2.0
// A mask of one's own: each query sees the block of eight tokens that it stands in, and the first
// token of all. The second function is optional: it lets whole tiles be skipped.
#include <cstdio>
#include <vector>

#include "fovea/attention/attention.h"

namespace {

using fovea::index;
using fovea::ScoreSite;
using fovea::TileKind;
using fovea::TileSite;

constexpr index kBlock = 8;

bool keep(const ScoreSite& site) {
  return site.j / kBlock == site.position() / kBlock || site.j == 0;
}

TileKind kind(const TileSite& site) {
  const index first = site.sequence.position(site.query) / kBlock * kBlock;
  const index last =
      site.sequence.position(site.query + site.queries - 1) / kBlock * kBlock + kBlock;
  const bool touches = site.key == 0 || (site.key < last && site.key + site.keys > first);
  return touches ? TileKind::kSome : TileKind::kNone;
}

}  // namespace

int main() {
  using namespace fovea;
  const index T = 1000, D = 16;
  std::vector<float> x(T * D), o(x.size()), weights(T * T);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(i % 101);
  const auto qkv = View<const float>::contiguous(x.data(), 1, T, 1, D);
  const Attention<float> attention{.mask = mask::Where(keep, kind, "blocks of 8")};
  attention_forward<float>(Context(), attention, {qkv, qkv, qkv},
                           {.o = View<float>::contiguous(o.data(), 1, T, 1, D),
                            .weights = ScoreView<float>::contiguous(weights.data(), 1, 1, T, T)});

  const AttentionPlan plan = attention_plan<float>(Context(), attention, {qkv, qkv, qkv});
  std::printf("%s: %lld of %lld tiles computed\n", plan.mask.c_str(),
              static_cast<long long>(plan.tiles_kept), static_cast<long long>(plan.tiles));
  index wrong = 0;
  const Sequence whole{.queries = T, .keys = T};
  for (index i = 0; i < T; ++i) {
    for (index j = 0; j < T; ++j) {
      wrong += (weights[static_cast<std::size_t>(i * T + j)] > 0) != keep({whole, 0, i, j});
    }
  }
  return wrong == 0 && plan.tiles_kept < plan.tiles / 2 ? 0 : 1;
}
