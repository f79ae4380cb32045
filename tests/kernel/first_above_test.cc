// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/first_above.h"

#include <cmath>
#include <limits>

#include "tests/kernel/support.h"

namespace fovea {
namespace {

template <class T>
index plain(const std::vector<T>& x, index begin, T least) {
  index i = begin;
  while (i < static_cast<index>(x.size()) && !(x[static_cast<std::size_t>(i)] > least)) ++i;
  return i;
}

template <class T>
index found(const std::vector<T>& x, index begin, T least) {
  return first_above<T>(Vec<const T>(x.data(), static_cast<index>(x.size())), begin, least);
}

template <class T>
void finds_what_plain_loops_find() {
  Random random(7, RandomUse::kTest);
  for (const index size : {0, 1, 5, 16, 63, 64, 65, 300}) {
    std::vector<T> x(static_cast<std::size_t>(size));
    for (T& value : x) value = static_cast<T>(random.normal());
    for (const T least : {T{-9}, T{0}, T{1.5}, T{9}}) {
      for (index begin = 0; begin <= size; ++begin) {
        ASSERT_EQ(found(x, begin, least), plain(x, begin, least)) << size << " from " << begin;
      }
    }
  }
}

TEST(FirstAbove, FindsWhatPlainLoopsFind) {
  for_each_isa([] {
    finds_what_plain_loops_find<float>();
    finds_what_plain_loops_find<double>();
  });
}

TEST(FirstAbove, NothingIsAboveNanOrEqual) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  for_each_isa([&] {
    std::vector<float> x(70, 1.0F);
    x[3] = nan;
    x[66] = infinity;
    EXPECT_EQ(found(x, 0, 1.0F), 66);
    EXPECT_EQ(found(x, 0, infinity), 70);
    EXPECT_EQ(found(x, 0, nan), 70);
    EXPECT_EQ(found(x, 0, -infinity), 0);
    EXPECT_EQ(found(x, 3, -infinity), 4);
  });
}

}  // namespace
}  // namespace fovea
