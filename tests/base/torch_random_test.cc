// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/torch_random.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

// torch.manual_seed(N); torch.rand(1920), of PyTorch 2.13: the first three and the last.
TEST(TorchRandom, RandHasTheNumbersOfPyTorch) {
  struct Golden {
    std::uint64_t seed;
    float first, second, third, last;
  };
  for (const Golden& golden : {Golden{0, 0.49625659F, 0.768221796F, 0.0884774327F, 0.877895534F},
                               Golden{1, 0.7576316F, 0.279310882F, 0.403069258F, 0.585146725F},
                               Golden{42, 0.882269263F, 0.915003955F, 0.38286376F, 0.198955536F}}) {
    const std::vector<float> numbers = TorchRandom(golden.seed).rand(1920);
    EXPECT_EQ(numbers[0], golden.first);
    EXPECT_EQ(numbers[1], golden.second);
    EXPECT_EQ(numbers[2], golden.third);
    EXPECT_EQ(numbers[1919], golden.last);
  }
}

// torch.manual_seed(0); torch.rand(144); torch.nn.Linear(8, 8): its weight begins so.
TEST(TorchRandom, UniformHasTheNumbersOfPyTorch) {
  TorchRandom random(0);
  random.rand(144);
  const float bound = 0.353553391F;  // 1 / sqrt(8)
  const std::vector<float> weight = random.uniform(64, -bound, bound);
  EXPECT_EQ(weight[0], -0.317604601F);
  EXPECT_EQ(weight[1], -0.167611614F);
  EXPECT_EQ(weight[2], 0.24073635F);
}

}  // namespace
}  // namespace fovea
