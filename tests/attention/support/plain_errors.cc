// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "tests/attention/support/problem.h"

namespace fovea::testing {

namespace {

// The fewer rows, the more luck; and where value parts join, delta no longer rounds as dp does.
std::uint64_t count_orders(const ProblemShape& s) {
  const bool values_joined = s.relative || s.shaw_values;
  return s.B * s.H * s.T < 64 || values_joined ? 48 : 12;
}

}  // namespace

PlainErrors::PlainErrors(const Problem& problem, const Results& exact, Plain plain)
    : problem_(problem),
      exact_(exact),
      orders_(plain == Plain::kBFloat16 ? 48 : count_orders(problem.shape)),
      plain_(plain) {
  run_next();
}

void PlainErrors::run_next() {
  const std::uint64_t number = made_++;
  const bool rounds = plain_ == Plain::kBFloat16;
  if (rounds && number % 2 != 0) return run_other_values();
  const Problem other = problem_.permuted(number);
  add(other.restored(rounds ? other.run<BFloat16>(Method::kReference)
                            : other.run<float>(Method::kReference)),
      exact_);
}

// The order of a sum hardly changes what is rounded to bfloat16, so other values are drawn.
void PlainErrors::run_other_values() {
  ProblemShape shape = problem_.shape;
  shape.seed += made_ << 32;
  const Problem other = Problem(shape).rounded();
  add(other.run<BFloat16>(Method::kReference), other.run<double>(Method::kReference));
}

void PlainErrors::add(const Results& plain, const Results& exact) {
  for (std::size_t i = 0; i < errors_.size(); ++i) {
    const auto of = kResults[i].values;
    errors_[i] = std::max(errors_[i], largest_difference(plain.*of, exact.*of));
  }
}

::testing::AssertionResult PlainErrors::compare(const Results& fast) const {
  for (std::size_t i = 0; i < errors_.size(); ++i) {
    const auto of = kResults[i].values;
    const auto result = no_worse_than_plain(kResults[i].name, fast.*of, errors_[i], exact_.*of);
    if (!result) return result;
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult PlainErrors::no_worse(const Results& fast) {
  auto result = compare(fast);
  for (; !result && made_ < orders_; result = compare(fast)) run_next();
  return result;
}

::testing::AssertionResult no_worse_than_plain(const char* name, const std::vector<double>& fast,
                                               double plain_error,
                                               const std::vector<double>& exact) {
  const double error = largest_difference(fast, exact);
  const double ulp = largest_magnitude(exact) * std::numeric_limits<float>::epsilon();
  const double bound = 2 * plain_error + 4 * ulp;
  if (error <= bound) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << name << ": error " << error << " of the fused kernel is over the bound " << bound
         << " (plain float32: " << plain_error << ", largest value " << largest_magnitude(exact)
         << ")";
}

}  // namespace fovea::testing
