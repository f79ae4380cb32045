// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bias/distance.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "fovea/attention/relative/by_distance.h"
#include "fovea/base/check.h"
#include "fovea/base/memory.h"

namespace fovea {

namespace {

// Every step-th of the slopes for `power` heads.
template <class T>
void append_slopes(std::vector<T>& slopes, index power, index step, index count) {
  for (index h = 0; count > 0; h += step, --count) {
    slopes.push_back(
        static_cast<T>(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(power))));
  }
}

}  // namespace

template <class T>
std::vector<T> alibi_slopes(index heads) {
  check(heads > 0, Hint{"ask for the slopes of at least one head"},
        "alibi: there must be a head; got {}", heads);
  index power = 1;
  while (power * 2 <= heads) power *= 2;
  std::vector<T> slopes;
  append_slopes(slopes, power, 1, power);
  append_slopes(slopes, 2 * power, 2, heads - power);
  return slopes;
}

template std::vector<float> alibi_slopes(index);
template std::vector<double> alibi_slopes(index);

}  // namespace fovea

namespace fovea::bias {

namespace {

template <class T>
T distance(const ScoreSite& site) {
  return static_cast<T>(std::abs(site.position() - site.j));
}

}  // namespace

template <class T>
T Alibi<T>::value(const ScoreSite& site, T score) const {
  return score - slopes_[site.head] * distance<T>(site);
}

template <class T>
void Alibi<T>::add_parameters(const ScoreSite& site, T, T dscore, double* sums) const {
  sums[0] -= static_cast<double>(dscore) * static_cast<double>(distance<T>(site));
}

template <class T>
void Alibi<T>::store_gradient(const double* sums, index heads) const {
  for (index h = 0; h < heads && h < dslopes_.size; ++h) dslopes_[h] = static_cast<T>(sums[h]);
}

template <class T>
void Alibi<T>::apply(const TileSite& site, const TileRows<T>&, const ScoreTile<T>& tile) const {
  const auto [first, count] = detail::distances_of(site);
  Scratch scratch;
  T* const values = scratch.allocate<T>(count);
  for (index n = 0; n < count; ++n) {
    values[n] = -(slopes_[site.head] * static_cast<T>(std::abs(first + n)));
  }
  detail::add_by_distance(site, values, tile);
}

template <class T>
void Alibi<T>::pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                    const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const {
  if (dslopes_.empty()) return;
  if (dscores.lanes == TileLanes::kQueries) {
    return BiasPart<T>::pull(site, rows, scores, dscores, gradients);
  }
  const auto [first, count] = detail::distances_of(site);
  Scratch scratch;
  double* const sums = scratch.allocate<double>(count);
  detail::sum_by_distance(site, dscores, sums);
  double total = 0;
  for (index n = 0; n < count; ++n) total += sums[n] * static_cast<double>(std::abs(first + n));
  gradients.parameters[0] -= total;
}

template <class T>
void Alibi<T>::name_parameters(OverlapCheck& memory) const {
  memory.read("slopes", slopes_);
}

template <class T>
void Alibi<T>::name_gradients(OverlapCheck& memory) const {
  memory.write("the gradient of slopes", dslopes_);
}

template <class T>
void Alibi<T>::check_shape(const AttentionSizes& sizes) const {
  const index H = sizes.H;
  constexpr Hint kOneForEachHead{
      "give a slope for each head: alibi_slopes(H) are those of the paper"};
  constexpr Hint kNoData{"give the memory of the slopes, or an empty view"};
  check(slopes_.size == H, kOneForEachHead, "attention: slopes must be [H={}]; they are [{}]", H,
        slopes_.size);
  check(dslopes_.empty() || dslopes_.size == H, kOneForEachHead,
        "attention: dslopes must be [H={}] or empty; they are [{}]", H, dslopes_.size);
  check(slopes_.empty() || slopes_.data != nullptr, kNoData,
        "attention: slopes have a size but no data");
  check(dslopes_.empty() || dslopes_.data != nullptr, kNoData,
        "attention: dslopes have a size but no data");
}

template class Alibi<float>;
template class Alibi<double>;

namespace {

double size_of(index distance) { return static_cast<double>(std::abs(distance)); }
double size_of(const ScoreSite& site) { return size_of(site.j - site.position()); }

}  // namespace

template <class T>
T KerpleForm<T>::value(const ScoreSite& site, T score) const {
  return score - static_cast<T>(term(numbers(site.head), size_of(site)));
}

template <class T>
void KerpleForm<T>::add_parameters(const ScoreSite& site, T, T dscore, double* sums) const {
  const auto [dr1, dr2] = slopes(numbers(site.head), size_of(site));
  sums[0] -= static_cast<double>(dscore) * dr1;
  sums[1] -= static_cast<double>(dscore) * dr2;
}

template <class T>
void KerpleForm<T>::store_gradient(const double* sums, index heads) const {
  for (index n = 0; n < dr_.rows; ++n) {
    for (index h = 0; h < heads; ++h) dr_[n][h] = static_cast<T>(sums[h * dr_.rows + n]);
  }
}

template <class T>
void KerpleForm<T>::apply(const TileSite& site, const TileRows<T>&,
                          const ScoreTile<T>& tile) const {
  const auto [first, count] = detail::distances_of(site);
  const Numbers of = numbers(site.head);
  Scratch scratch;
  T* const values = scratch.allocate<T>(count);
  for (index n = 0; n < count; ++n) values[n] = -static_cast<T>(term(of, size_of(first + n)));
  detail::add_by_distance(site, values, tile);
}

template <class T>
void KerpleForm<T>::pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                         const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const {
  if (gradient_size() == 0) return;
  if (dscores.lanes == TileLanes::kQueries) {
    return BiasPart<T>::pull(site, rows, scores, dscores, gradients);
  }
  const auto [first, count] = detail::distances_of(site);
  const Numbers of = numbers(site.head);
  Scratch scratch;
  double* const sums = scratch.allocate<double>(count);
  detail::sum_by_distance(site, dscores, sums);
  for (index n = 0; n < count; ++n) {
    const auto [dr1, dr2] = slopes(of, size_of(first + n));
    gradients.parameters[0] -= sums[n] * dr1;
    gradients.parameters[1] -= sums[n] * dr2;
  }
}

template <class T>
void KerpleForm<T>::name_parameters(OverlapCheck& memory) const {
  memory.read(names_.r, r_);
}

template <class T>
void KerpleForm<T>::name_gradients(OverlapCheck& memory) const {
  memory.write(names_.dr, dr_);
}

template <class T>
void KerpleForm<T>::check_shape(const AttentionSizes& sizes) const {
  const index H = sizes.H;
  check(r_.rows == 2 && r_.columns == H,
        "attention: {} must be [2, H={}], r1 and r2; it is [{}, {}]", names_.r, H, r_.rows,
        r_.columns);
  check(H == 0 || r_.data != nullptr, "attention: {} has a shape but no data", names_.r);
  check(dr_.data == nullptr || (dr_.rows == 2 && dr_.columns == H),
        "attention: d{} must be [2, H={}] or empty; it is [{}, {}]", names_.r, H, dr_.rows,
        dr_.columns);
}

// In this order, for NaN must stay NaN.
template <class T>
auto Kerple<T>::counted(double r1, double r2) const -> Numbers {
  return {std::max(r1, kKerpleLeast), std::max(r2, kKerpleLeast)};
}

template <class T>
double Kerple<T>::term(const Numbers& of, double distance) const {
  return of.r1 * std::log1p(of.r2 * distance);
}

template <class T>
auto Kerple<T>::slopes(const Numbers& of, double distance) const -> Numbers {
  return {std::log1p(of.r2 * distance), of.r1 * distance / (1 + of.r2 * distance)};
}

template class KerpleForm<float>;
template class KerpleForm<double>;
template class Kerple<float>;
template class Kerple<double>;

// In this order, for NaN must stay NaN.
template <class T>
auto KerplePower<T>::counted(double r1, double r2) const -> Numbers {
  return {std::max(r1, kKerplePowerLeast),
          std::min(std::max(r2, kKerplePowerLeast), kKerplePowerMost)};
}

template <class T>
double KerplePower<T>::term(const Numbers& of, double distance) const {
  return of.r1 * std::pow(distance, of.r2);
}

template <class T>
auto KerplePower<T>::slopes(const Numbers& of, double distance) const -> Numbers {
  const double power = std::pow(distance, of.r2);
  return {power, distance == 0 ? 0 : of.r1 * power * std::log(distance)};
}

template class KerplePower<float>;
template class KerplePower<double>;

namespace {

index buckets_each_way(index buckets, const T5Options& options) {
  return options.direction == T5Direction::kBidirectional ? buckets / 2 : buckets;
}

// The logarithm as a float: rounded once, whatever the C library's own logarithm of floats does.
float log_of(double x) { return static_cast<float>(std::log(x)); }

// The bucket of a distance n >= 0 among `buckets` of one direction.
index bucket_one_way(index n, index buckets, index max_distance) {
  const index exact = buckets / 2;
  if (n < exact) return n;
  const float ratio = static_cast<float>(n) / static_cast<float>(exact);
  const float last = log_of(static_cast<double>(max_distance) / static_cast<double>(exact));
  const float step =
      log_of(static_cast<double>(ratio)) / last * static_cast<float>(buckets - exact);
  return std::min(buckets - 1, exact + static_cast<index>(step));
}

// The shortest distance of each bucket; for an empty bucket, that of the next one.
std::vector<index> first_distances(index buckets, index max_distance) {
  std::vector<index> first;
  for (index bucket = 0; bucket < buckets; ++bucket) {
    index low = 0, high = max_distance;  // which is in the last bucket
    while (low < high) {
      const index middle = low + (high - low) / 2;
      if (bucket_one_way(middle, buckets, max_distance) < bucket) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    first.push_back(low);
  }
  return first;
}

void check_buckets(index buckets, const T5Options& options) {
  const index least = options.direction == T5Direction::kCausal ? 2 : 4;
  check(buckets >= least, "t5: there must be at least {} buckets; there are {}", least, buckets);
  const index exact = buckets_each_way(buckets, options) / 2;
  if (options.max_distance > exact) return;
  fail(ErrorCode::kOptionValue,
       "t5: max_distance must be above {}, for so many distances have a bucket each; it is {}",
       exact, options.max_distance);
}

}  // namespace

index t5_bucket(index distance, index buckets, const T5Options& options) {
  check_buckets(buckets, options);
  const index each = buckets_each_way(buckets, options);
  const bool ahead = distance > 0;
  if (options.direction == T5Direction::kCausal) {
    return bucket_one_way(ahead ? 0 : -distance, each, options.max_distance);
  }
  const index n = std::abs(distance);
  return (ahead ? each : 0) + bucket_one_way(n, each, options.max_distance);
}

template <class T>
T5<T>::T5(Rows<const T> table, Rows<T> dtable, const T5Options& options)
    : table_(table), dtable_(dtable), options_(options) {
  check_buckets(table.rows, options);
  first_ = first_distances(buckets_each_way(table.rows, options), options.max_distance);
}

template <class T>
T T5<T>::value(const ScoreSite& site, T score) const {
  return score + table_[bucket(site)][site.head];
}

template <class T>
void T5<T>::add_parameters(const ScoreSite& site, T, T dscore, double* sums) const {
  sums[bucket(site)] += static_cast<double>(dscore);
}

template <class T>
void T5<T>::store_gradient(const double* sums, index heads) const {
  for (index b = 0; b < dtable_.rows; ++b) {
    for (index h = 0; h < heads; ++h) dtable_[b][h] = static_cast<T>(sums[h * dtable_.rows + b]);
  }
}

// Calls f(bucket, begin, end) for each run of a tile's distances in one bucket, as slots.
template <class T>
template <class F>
void T5<T>::for_each_run(const detail::TileDistances& distances, F&& f) const {
  const index end = distances.first + distances.count;
  for (index now = distances.first; now < end;) {
    const index bucket = t5_bucket(now, table_.rows, options_);
    const index next = std::min(end, end_of_run(now));
    f(bucket, now - distances.first, next - distances.first);
    now = next;
  }
}

// The first distance beyond `distance` that is in another bucket, or that is 1.
template <class T>
index T5<T>::end_of_run(index distance) const {
  constexpr index kNone = std::numeric_limits<index>::max();
  if (distance > 0 && options_.direction == T5Direction::kCausal) return kNone;
  // Longer distances have later buckets: behind the query, a run ends with its shortest.
  const auto longer = std::upper_bound(first_.begin(), first_.end(), std::abs(distance));
  if (distance <= 0) return 1 - *(longer - 1);
  return longer == first_.end() ? kNone : *longer;
}

template <class T>
void T5<T>::apply(const TileSite& site, const TileRows<T>&, const ScoreTile<T>& tile) const {
  const detail::TileDistances distances = detail::distances_of(site);
  Scratch scratch;
  T* const values = scratch.allocate<T>(distances.count);
  for_each_run(distances, [&](index bucket, index begin, index end) {
    std::fill(values + begin, values + end, table_[bucket][site.head]);
  });
  detail::add_by_distance(site, values, tile);
}

template <class T>
void T5<T>::pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                 const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const {
  if (gradient_size() == 0) return;
  if (dscores.lanes == TileLanes::kQueries) {
    return BiasPart<T>::pull(site, rows, scores, dscores, gradients);
  }
  const detail::TileDistances distances = detail::distances_of(site);
  Scratch scratch;
  double* const sums = scratch.allocate<double>(distances.count);
  detail::sum_by_distance(site, dscores, sums);
  for_each_run(distances, [&](index bucket, index begin, index end) {
    gradients.parameters[bucket] =
        std::accumulate(sums + begin, sums + end, gradients.parameters[bucket]);
  });
}

template <class T>
void T5<T>::name_parameters(OverlapCheck& memory) const {
  memory.read("the table of t5", table_);
}

template <class T>
void T5<T>::name_gradients(OverlapCheck& memory) const {
  memory.write("the gradient of t5", dtable_);
}

template <class T>
void T5<T>::check_shape(const AttentionSizes& sizes) const {
  const index H = sizes.H;
  check(table_.columns == H, "attention: the table of t5 must be [buckets, H={}]; it is [{}, {}]",
        H, table_.rows, table_.columns);
  check(H == 0 || table_.data != nullptr, "attention: the table of t5 has a shape but no data");
  check(dtable_.data == nullptr || (dtable_.rows == table_.rows && dtable_.columns == H),
        "attention: dtable of t5 must be [{}, H={}] or empty; it is [{}, {}]", table_.rows, H,
        dtable_.rows, dtable_.columns);
}

template <class T>
std::string T5<T>::name() const {
  return options_.direction == T5Direction::kCausal ? "t5(causal)" : "t5";
}

template class T5<float>;
template class T5<double>;

}  // namespace fovea::bias
