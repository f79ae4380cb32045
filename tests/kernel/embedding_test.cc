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

}  // namespace
}  // namespace fovea
