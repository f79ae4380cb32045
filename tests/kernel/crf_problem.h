// SPDX-License-Identifier: Apache-2.0
// Random problems of a CRF, and all of their paths one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fovea/kernel/crf.h"
#include "tests/kernel/support.h"

namespace fovea {

/// Scores, which paths are allowed, and a batch with tags that are.
template <class T>
struct CrfProblem {
  Matrix<T> transitions, start, end, emissions;
  std::vector<std::uint8_t> may_follow = {}, may_start = {}, may_end = {};
  std::vector<std::int32_t> offsets = {}, tags = {};

  index K() const { return transitions.columns(); }
  CrfScores<T> scores() const {
    return {transitions.view(), start.vec(), end.vec(), {may_follow, may_start, may_end}};
  }
  CrfRows<T> rows() const { return {emissions.view(), offsets}; }
  index sequences() const { return std::ssize(offsets) - 1; }

  template <class U>
  CrfProblem<U> as() const {
    return {Matrix<U>(transitions),
            Matrix<U>(start),
            Matrix<U>(end),
            Matrix<U>(emissions),
            may_follow,
            may_start,
            may_end,
            offsets,
            tags};
  }
  bool follows(index a, index b) const {
    return may_follow.empty() || may_follow[static_cast<std::size_t>(a * K() + b)] != 0;
  }
  static bool allowed(const std::vector<std::uint8_t>& flags, index k) {
    return flags.empty() || flags[static_cast<std::size_t>(k)] != 0;
  }
  bool is_path(const std::vector<std::int32_t>& path) const {
    for (std::size_t n = 1; n < path.size(); ++n) {
      if (!follows(path[n - 1], path[n])) return false;
    }
    return path.empty() || (allowed(may_start, path.front()) && allowed(may_end, path.back()));
  }
  /// s(y) as crf.h sums it.
  double score(index s, const std::vector<std::int32_t>& path) const {
    double sum = path.empty() ? 0 : double{start.at(0, path[0])};
    for (std::size_t n = 0; n < path.size(); ++n) {
      if (n > 0) sum += double{transitions.at(path[n - 1], path[n])};
      sum += double{
          emissions.at(offsets[static_cast<std::size_t>(s)] + static_cast<index>(n), path[n])};
    }
    return path.empty() ? 0 : sum + double{end.at(0, path.back())};
  }
  index length(index s) const {
    return offsets[static_cast<std::size_t>(s + 1)] - offsets[static_cast<std::size_t>(s)];
  }
  /// All allowed paths of sequence s, best first, in the order of crf.h.
  std::vector<CrfPath> all_paths(index s) const {
    std::vector<CrfPath> paths;
    std::vector<std::int32_t> path(static_cast<std::size_t>(length(s)));
    const auto last_tag = static_cast<std::int32_t>(K() - 1);
    for (;;) {
      if (is_path(path)) paths.push_back({score(s, path), path});
      auto digit = path.rbegin();
      while (digit != path.rend() && *digit == last_tag) *digit++ = 0;
      if (digit == path.rend()) break;
      ++*digit;
    }
    std::sort(paths.begin(), paths.end(), [](const CrfPath& a, const CrfPath& b) {
      if (a.score != b.score) return a.score > b.score;
      return std::lexicographical_compare(a.tags.rbegin(), a.tags.rend(), b.tags.rbegin(),
                                          b.tags.rend());
    });
    return paths;
  }
};

/// Which part of all transitions, first and last tags is forbidden.
struct CrfShape {
  index tags = 5;
  std::vector<std::int32_t> lengths = {3, 0, 6, 1, 5, 2};
  double deviation = 1;
  double forbidden = 0;
};

/// Tags of a random walk over what is allowed. Some tag may always start, end and follow itself.
template <class T>
CrfProblem<T> random_crf(std::uint64_t seed, const CrfShape& shape) {
  Random r(seed, RandomUse::kTest);
  const index K = shape.tags;
  std::vector<std::int32_t> offsets{0};
  for (const std::int32_t length : shape.lengths) offsets.push_back(offsets.back() + length);
  CrfProblem<T> p{Matrix<T>::random(r, K, K, shape.deviation),
                  Matrix<T>::random(r, 1, K, shape.deviation),
                  Matrix<T>::random(r, 1, K, shape.deviation),
                  Matrix<T>::random(r, offsets.back(), K, shape.deviation)};
  p.offsets = offsets;
  const auto pick = [&] {
    return std::min<index>(K - 1, static_cast<index>(r.uniform(0, 1) * static_cast<double>(K)));
  };
  if (shape.forbidden > 0) {
    const auto flags = [&](index n) {
      std::vector<std::uint8_t> result;
      for (index i = 0; i < n; ++i) result.push_back(r.uniform(0, 1) >= shape.forbidden);
      return result;
    };
    p.may_follow = flags(K * K);
    p.may_start = flags(K);
    p.may_end = flags(K);
    const auto safe = static_cast<std::size_t>(pick());
    p.may_follow[safe * static_cast<std::size_t>(K) + safe] = 1;
    p.may_start[safe] = p.may_end[safe] = 1;
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      std::vector<std::int32_t> path(static_cast<std::size_t>(offsets[s + 1] - offsets[s]));
      for (int attempt = 0; attempt < 200; ++attempt) {
        for (auto& tag : path) tag = static_cast<std::int32_t>(pick());
        if (p.is_path(path)) break;
        std::fill(path.begin(), path.end(), static_cast<std::int32_t>(safe));
      }
      p.tags.insert(p.tags.end(), path.begin(), path.end());
    }
  } else {
    for (index n = 0; n < offsets.back(); ++n) p.tags.push_back(static_cast<std::int32_t>(pick()));
  }
  return p;
}

}  // namespace fovea
