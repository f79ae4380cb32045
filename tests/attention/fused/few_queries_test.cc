// SPDX-License-Identifier: Apache-2.0
// A few queries are computed with keys in the lanes. A call that wants its weights is computed by
// tiles, with queries in the lanes: both must have the same bits, under every part.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/attention/support/table.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

constexpr index kS = 300;  // two whole blocks of keys and a part of one

template <class V>
class FewQueries {
 public:
  FewQueries(index queries, index width, index value_width)
      : data_(2, kS),
        parts_{.most = kS, .width = width, .queries = queries},
        sizes_{.B = 2, .T = queries, .S = kS, .H = 2, .G = 1, .D = width, .Dv = value_width} {
    data_.queries = queries;
  }

  TableData& data() { return data_; }
  PartData<V>& parts() { return parts_; }
  /// Changed before both calls.
  std::function<void(Call<V>&)> change = [](Call<V>&) {};

  void expect_same_bits(const Attention<V>& attention) {
    Call<V> few(sizes_, 3), tiles(sizes_, 3);
    change(few);
    change(tiles);
    tiles.want_weights();
    few.forward(attention);
    tiles.forward(attention);
    EXPECT_TRUE(same(few.o, tiles.o)) << "o";
    EXPECT_TRUE(same(few.lse, tiles.lse)) << "lse";
    EXPECT_TRUE(same(few.lse_low, tiles.lse_low)) << "lse_low";
  }

 private:
  // NaN equals NaN.
  static bool same(const std::vector<V>& a, const std::vector<V>& b) {
    for (std::size_t n = 0; n < a.size(); ++n) {
      if (a[n] != b[n] && !(std::isnan(a[n]) && std::isnan(b[n]))) return false;
    }
    return true;
  }

  TableData data_;
  PartData<V> parts_;
  Sizes sizes_;
};

template <class V>
class FewQueriesHaveTheBitsOfTiles : public ::testing::Test {};
using Precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FewQueriesHaveTheBitsOfTiles, Precisions);

TYPED_TEST(FewQueriesHaveTheBitsOfTiles, UnderEveryMask) {
  for_each_isa([] {
    for (const index queries : {1, 3, 5}) {
      FewQueries<TypeParam> few(queries, 8, 20);
      for (const MaskRow& mask : mask_table()) {
        SCOPED_TRACE(::testing::Message() << queries << " queries, " << mask.name);
        few.expect_same_bits({.mask = mask.make(few.data())});
      }
    }
  });
}

TYPED_TEST(FewQueriesHaveTheBitsOfTiles, WithEveryBiasAndNorm) {
  for_each_isa([] {
    for (const index queries : {1, 4}) {
      for (const BiasRow<TypeParam>& bias : bias_table<TypeParam>()) {
        for (const NormRow<TypeParam>& norm : norm_table<TypeParam>()) {
          SCOPED_TRACE(::testing::Message()
                       << queries << " queries, " << bias.name << ", " << norm.name);
          FewQueries<TypeParam> few(queries, PartData<TypeParam>::kWidth, 3);
          Attention<TypeParam> attention{.bias = bias.make(few.parts()), .mask = mask::Causal()};
          norm.set(attention, few.parts());
          if (!std::holds_alternative<norm::Softmax>(attention.norm)) continue;  // tiles, or sums
          few.expect_same_bits(attention);
        }
      }
    }
  });
}

TYPED_TEST(FewQueriesHaveTheBitsOfTiles, OfEveryWidth) {
  for_each_isa([] {
    for (const index width : {1, 7, 16, 33, 64}) {
      for (const index value_width : {1, 9, 32, 65}) {
        SCOPED_TRACE(::testing::Message() << "D " << width << " Dv " << value_width);
        FewQueries<TypeParam>(1, width, value_width).expect_same_bits({});
        FewQueries<TypeParam>(2, width, value_width).expect_same_bits({.mask = mask::Causal()});
      }
    }
  });
}

TYPED_TEST(FewQueriesHaveTheBitsOfTiles, WhereNumbersAreNotFinite) {
  constexpr auto kInfinity = std::numeric_limits<TypeParam>::infinity();
  for_each_isa([] {
    FewQueries<TypeParam> few(1, 8, 20);
    for (const TypeParam bad : {kInfinity, -kInfinity, std::numeric_limits<TypeParam>::quiet_NaN(),
                                std::numeric_limits<TypeParam>::max()}) {
      for (const index key : {0, 150, 299}) {  // key lengths leave out the last
        SCOPED_TRACE(::testing::Message() << bad << " at key " << key);
        few.change = [=](Call<TypeParam>& call) {
          call.k_row(0, key, 0)[3] = bad;
          call.v_row(1, key, 0)[2] = bad;
        };
        few.expect_same_bits({});
        const std::vector<std::int32_t> lengths = {200, 299};
        few.expect_same_bits({.mask = mask::KeyLengths(view_of(lengths))});
      }
    }
  });
}

}  // namespace
}  // namespace fovea::testing
