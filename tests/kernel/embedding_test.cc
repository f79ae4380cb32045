// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/embedding.h"

#include "fovea/reference/kernels.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);

struct Ids {
  std::vector<std::int32_t> values;

  static Ids random(Random& random, index N, index V) {
    Ids ids;
    for (index n = 0; n < N; ++n) ids.values.push_back(static_cast<std::int32_t>(random.below(V)));
    return ids;
  }
  Vec<const std::int32_t> view() const {
    return {values.data(), static_cast<index>(values.size())};
  }
};

TEST(Embedding, TakesRowsAndAddsPositions) {
  for_each_isa([] {
    Random random(50, RandomUse::kTest);
    for (const index C : kColumns) {
      const auto table = Matrix<float>::random(random, 11, C);
      const auto places = Matrix<float>::random(random, 6, C);
      const Ids ids = Ids::random(random, 20, 11), at = Ids::random(random, 20, 6);
      const EmbeddingTable<float> tokens{table.view(), ids.view(), 1};
      const EmbeddingTable<float> positions{places.view(), at.view(), 1};
      Matrix<float> y(20, C), plain(20, C), both(20, C), plain_both(20, C);
      embedding_forward(kContext, tokens, {}, y.view());
      reference::embedding_forward(tokens, {}, plain.view());
      EXPECT_TRUE(y == plain);
      embedding_forward(kContext, tokens, positions, both.view());
      reference::embedding_forward(tokens, positions, plain_both.view());
      EXPECT_TRUE(both == plain_both);
    }
  });
}

TEST(Embedding, GradientIsThatOfTheForward) {
  for_each_isa([] {
    Random random(51, RandomUse::kTest);
    auto table = Matrix<double>::random(random, 5, 19),
         places = Matrix<double>::random(random, 4, 19);
    const auto dy = Matrix<double>::random(random, 9, 19);
    const Ids ids = Ids::random(random, 9, 5), at = Ids::random(random, 9, 4);
    Matrix<double> dtable(5, 19), dplaces(4, 19);
    embedding_backward(kContext, ids.view(), 1.5, dy.in(), dtable.view());
    embedding_backward(kContext, at.view(), 1.0, dy.in(), dplaces.view());
    const auto loss = [&] {
      Matrix<double> y(9, 19);
      embedding_forward<double>(kContext, {table.view(), ids.view(), 1.5},
                                {places.view(), at.view(), 1}, y.view());
      return dot(y, dy);
    };
    expect_gradient(table, dtable, loss, "table");
    expect_gradient(places, dplaces, loss, "positions");
  });
}

TEST(EmbeddingBackward, AddsInTheOrderOfTheTokens) {
  for_each_isa([] {
    Random random(52, RandomUse::kTest);
    for (const index C : {1, 17, 64, 200}) {
      const auto dy = Matrix<float>::random(random, 300, C);
      const Ids ids = Ids::random(random, 300, 7);
      auto fast = Matrix<float>::random(random, 7, C), plain = fast;
      embedding_backward(kContext, ids.view(), 1, dy.in(), fast.view());
      reference::embedding_backward<float>(ids.view(), 1, dy.in(), plain.view());
      EXPECT_TRUE(fast == plain) << "the same additions in the same order give the same bits";
    }
  });
}

TEST(EmbeddingBackward, AFrozenRowGetsNothing) {
  Random random(53, RandomUse::kTest);
  const auto dy = Matrix<float>::random(random, 30, 5);
  const Ids ids = Ids::random(random, 30, 3);
  Matrix<float> dtable(3, 5);
  embedding_backward(kContext, ids.view(), 1, dy.in(), dtable.view(), 1);
  EXPECT_EQ(dtable.at(1, 2), 0.0f);
  EXPECT_NE(dtable.at(0, 2), 0.0f);
}

TEST(EmbeddingBackward, SameBitsForAnyNumberOfThreads) {
  Random random(54, RandomUse::kTest);
  const auto dy = Matrix<float>::random(random, 2000, 300);
  const Ids ids = Ids::random(random, 2000, 50);
  expect_same_for_threads([&](const Context& ctx) {
    Matrix<float> dtable(50, 300);
    embedding_backward(ctx, ids.view(), 1, dy.in(), dtable.view());
    return dtable;
  });
}

TEST(Embedding, AnIdOutOfRangeIsNamedWithItsPlace) {
  Matrix<float> table(4, 3), y(2, 3, 5.0f);
  const Ids high{{0, 4}}, low{{-1, 0}}, good{{0, 3}};
  EXPECT_THROWS(embedding_forward(kContext, {table.view(), high.view()}, {}, y.view()), kShape,
                "embedding: ids[1] is 4; the table has rows 0 to 3");
  EXPECT_THROWS(embedding_forward(kContext, {table.view(), good.view()}, {table.view(), low.view()},
                                  y.view()),
                kShape, "embedding: positions[0] is -1; the table has rows 0 to 3");
  EXPECT_EQ(y.at(0, 0), 5.0f) << "nothing is written";
  EXPECT_THROWS(embedding_backward(kContext, high.view(), 1, y.in(), table.view()), kShape,
                "embedding_backward: ids[1] is 4");
}

// Bags of 0 to 8 ids, of which some are the padding.
struct RandomBags {
  Ids ids;
  std::vector<std::int32_t> offsets{0};

  RandomBags(Random& random, index B, index V) {
    for (index b = 0; b < B; ++b) offsets.push_back(offsets.back() + static_cast<int>(b % 9));
    ids = Ids::random(random, offsets.back(), V);
  }
  IdBags view(BagMode mode, std::int32_t padding = -1) const {
    return {ids.view(), offsets, mode, padding};
  }
};

TEST(EmbeddingBag, IsTheSumOrTheMeanOfTheRows) {
  for_each_isa([] {
    Random random(55, RandomUse::kTest);
    for (const index C : kColumns) {
      const auto table = Matrix<float>::random(random, 11, C);
      const RandomBags bags(random, 30, 11);
      for (const BagMode mode : {BagMode::kSum, BagMode::kMean, BagMode::kRootMean})
        for (const std::int32_t padding : {-1, 3}) {
          Matrix<float> y(30, C), plain(30, C);
          embedding_bag_forward(kContext, table.in(), bags.view(mode, padding), y.view());
          reference::embedding_bag_forward<float>(table.in(), bags.view(mode, padding),
                                                  plain.view());
          EXPECT_TRUE(y == plain) << "the same additions in the same order";
        }
    }
  });
}

TEST(EmbeddingBag, GradientIsThatOfTheForward) {
  for_each_isa([] {
    Random random(56, RandomUse::kTest);
    auto table = Matrix<double>::random(random, 5, 19);
    const auto dy = Matrix<double>::random(random, 12, 19);
    const RandomBags bags(random, 12, 5);
    for (const BagMode mode : {BagMode::kSum, BagMode::kMean, BagMode::kRootMean}) {
      Matrix<double> dtable(5, 19);
      embedding_bag_backward(kContext, bags.view(mode, 2), dy.in(), dtable.view());
      EXPECT_EQ(dtable.at(2, 0), 0);
      const auto loss = [&] {
        Matrix<double> y(12, 19);
        embedding_bag_forward(kContext, table.in(), bags.view(mode, 2), y.view());
        return dot(y, dy);
      };
      expect_gradient(table, dtable, loss, "table");
    }
  });
}

TEST(EmbeddingBag, BackwardIsNoWorseThanThePlainOne) {
  for_each_isa([] {
    Random random(57, RandomUse::kTest);
    const auto dy = Matrix<float>::random(random, 100, 70);
    const RandomBags bags(random, 100, 7);
    Matrix<float> fast(7, 70), plain(7, 70);
    Matrix<double> exact(7, 70);
    embedding_bag_backward(kContext, bags.view(BagMode::kMean), dy.in(), fast.view());
    reference::embedding_bag_backward<float>(bags.view(BagMode::kMean), dy.in(), plain.view());
    reference::embedding_bag_backward<double>(bags.view(BagMode::kMean), Matrix<double>(dy).in(),
                                              exact.view());
    expect_no_worse(fast, plain, exact, "dtable");
  });
}

TEST(EmbeddingBag, SameBitsForAnyNumberOfThreads) {
  Random random(58, RandomUse::kTest);
  const auto table = Matrix<float>::random(random, 50, 300);
  const RandomBags bags(random, 400, 50);
  expect_same_for_threads([&](const Context& ctx) {
    Matrix<float> y(400, 300), dtable(50, 300);
    embedding_bag_forward(ctx, table.in(), bags.view(BagMode::kMean), y.view());
    embedding_bag_backward(ctx, bags.view(BagMode::kMean), y.in(), dtable.view());
    return std::pair(y, dtable);
  });
}

TEST(EmbeddingBag, SaysWhatIsWrong) {
  Matrix<float> table(4, 3), y(2, 3);
  const auto run = [&](std::vector<std::int32_t> ids, std::vector<std::int32_t> offsets) {
    embedding_bag_forward(kContext, table.in(), {ids, offsets}, y.view());
  };
  EXPECT_THROWS(run({0, 4}, {0, 1, 2}), kShape, "embedding_bag: ids[1] is 4");
  EXPECT_THROWS(run({0, 1}, {0, 2}), kShape, "offsets must be [B + 1=3]; it is [2]");
  EXPECT_THROWS(run({0, 1}, {0, 1, 1}), kShape, "offsets go from 0 to 1; expected 0 to 2");
  EXPECT_THROWS(run({0, 1}, {0, 3, 2}), kShape, "offsets[1] is 3 and the next 2");
}

}  // namespace
}  // namespace fovea
