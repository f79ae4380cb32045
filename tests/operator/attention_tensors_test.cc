// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/attention_tensors.h"

#include <gtest/gtest.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr TensorSpec kSpecs[] = {
    {"q", "B T H D"},
    {"k", "B S G D"},
    {"v", "B S G Dv"},
    {"lengths", "B", TensorValues::kInt32},
    {"keep", "B|1 H|1 T|1 S", TensorValues::kBytes},
    {"window", "H 2", TensorValues::kInt32},
    {"both", "H 2D"},
    {"odd", "2s+1 D"},
    {"other", "2s+1 Dv"},
    {"from", "N+1", TensorValues::kInt32, "to"},
    {"to", "N+1", TensorValues::kInt32, "from"},
};

std::vector<NamedTensor> operands() {
  return {{"v", Tensor({2, 5, 1, 4})}, {"q", Tensor({2, 3, 2, 8})}, {"k", Tensor({2, 5, 1, 8})}};
}

AttentionTensors with(const std::vector<NamedTensor>& more) {
  std::vector<NamedTensor> all = operands();
  for (const NamedTensor& named : more) all.push_back(named);
  return {all, kSpecs, "in.npz"};
}

Tensor ints(std::vector<std::int64_t> values) {
  return Tensor::of<std::int64_t>({static_cast<index>(values.size())}, values);
}

AttentionTensors with_other(std::string_view name, const Tensor& tensor) {
  std::vector<NamedTensor> all = operands();
  for (NamedTensor& named : all) {
    if (named.name == name) named.tensor = tensor;
  }
  return {all, kSpecs, "in.npz"};
}

TEST(AttentionTensors, SizesAreThoseOfTheOperands) {
  const AttentionSizes sizes = with({}).sizes();
  EXPECT_EQ(sizes.B, 2);
  EXPECT_EQ(sizes.T, 3);
  EXPECT_EQ(sizes.S, 5);
  EXPECT_EQ(sizes.H, 2);
  EXPECT_EQ(sizes.G, 1);
  EXPECT_EQ(sizes.D, 8);
  EXPECT_EQ(sizes.Dv, 4);
}

TEST(AttentionTensors, ASizeThatNoLetterGivesIsNamed) {
  EXPECT_NE(with({{"odd", Tensor({5, 8})}, {"other", Tensor({5, 4})}}).find("odd"), nullptr);
  EXPECT_NE(with({{"odd", Tensor({1, 8})}}).find("odd"), nullptr);
  EXPECT_THROWS(with({{"odd", Tensor({4, 8})}}), kShape,
                "in.npz: odd must be [2s+1, D]; it is [4, 8]: 4 is not 2s+1 for any s");
  EXPECT_THROWS(with({{"odd", Tensor({0, 8})}}), kShape, "0 is not 2s+1 for any s");
  EXPECT_THROWS(with({{"from", ints({})}, {"to", ints({})}}), kShape, "0 is not N+1 for any N");
  EXPECT_THROWS(with({{"odd", Tensor({5, 8})}, {"other", Tensor({7, 4})}}), kShape,
                "in.npz: other must be [2s+1, Dv]; it is [7, 4]: axis 2s+1 is 7, and 5 in odd");
}

// Published code keeps its lengths as a column.
TEST(AttentionTensors, LengthsMayBeAColumn) {
  const TensorSpec specs[] = {
      kSpecs[0], kSpecs[1], kSpecs[2], {"lengths", "B", TensorValues::kInt32, {}, {}, true}};
  const auto with_column = [&](const Shape& shape) {
    std::vector<NamedTensor> all = operands();
    all.push_back({"lengths", Tensor(shape, DType::kInt32)});
    return AttentionTensors(all, specs, "in.npz");
  };
  EXPECT_EQ(with_column({2, 1}).at("lengths").vec<std::int32_t>().size, 2);
  EXPECT_THROWS(with_column({2, 2}), kShape, "lengths must be [B]; it is [2, 2]");
  EXPECT_THROWS(with_column({3, 1}), kShape, "lengths must be [B]; it is [3]");
  EXPECT_THROWS(with({{"lengths", Tensor({2, 1}, DType::kInt32)}}), kShape,
                "lengths must be [B]; it is [2, 1]");
}

TEST(AttentionTensors, WholeNumbersBecomeInt32) {
  const AttentionTensors tensors = with({{"lengths", ints({3, -1})}});
  EXPECT_EQ(tensors.at("lengths").data<std::int32_t>()[1], -1);
  EXPECT_THROWS(with({{"lengths", ints({3, 1LL << 31})}}), kInputFormat,
                "in.npz: lengths holds 2147483648, which does not fit in int32");
}

TEST(AttentionTensors, AxesOfOneStandForAll) {
  for (const Shape& shape : {Shape{1, 1, 1, 5}, Shape{2, 2, 3, 5}, Shape{1, 2, 1, 5}}) {
    EXPECT_NE(with({{"keep", Tensor(shape, DType::kUInt8)}}).find("keep"), nullptr);
  }
  EXPECT_THROWS(with({{"keep", Tensor({3, 1, 1, 5}, DType::kUInt8)}}), kShape,
                "in.npz: keep must be [B or 1, H or 1, T or 1, S]; it is [3, 1, 1, 5]: axis B is "
                "3, and 2 in q");
  EXPECT_THROWS(with({{"keep", Tensor({1, 1, 1, 1}, DType::kUInt8)}}), kShape,
                "axis S is 1, and 5 in k");
}

TEST(AttentionTensors, NamesTensorAxisAndBothSizes) {
  EXPECT_THROWS(with_other("k", Tensor({2, 5, 1, 7})), kShape,
                "in.npz: k must be [B, S, G, D]; it is [2, 5, 1, 7]: axis D is 7, and 8 in q");
  EXPECT_THROWS(with_other("v", Tensor({2, 6, 1, 4})), kShape, "axis S is 6, and 5 in k");
  EXPECT_THROWS(with_other("q", Tensor({2, 3, 8})), kShape,
                "in.npz: q must be [B, T, H, D]; it is [2, 3, 8]");
  EXPECT_THROWS(with({{"window", Tensor({2, 3}, DType::kInt32)}}), kShape,
                "axis 1 must be 2, and is 3");
  EXPECT_NE(with({{"both", Tensor({2, 16})}}).find("both"), nullptr);
  EXPECT_THROWS(with({{"both", Tensor({2, 17})}}), kShape, "axis 2D is 17, and 16 in q");
  EXPECT_THROWS(with({{"lengths", ints({1, 2, 3})}}), kShape, "axis B is 3, and 2 in q");
}

TEST(AttentionTensors, NamesWhatIsMissingOrUnknown) {
  EXPECT_THROWS(with({{"lenghts", ints({1, 2})}}), kInputFormat,
                "in.npz: attention has no use for a tensor 'lenghts'");
  EXPECT_EQ(error_of([] { with({{"lenghts", ints({1, 2})}}); })->hint(), "did you mean lengths?");
  EXPECT_EQ(error_of([] {
              with({{"mystery", ints({1, 2})}});
            })->hint(),
            "it takes q, k, v, lengths, keep, window, both, odd, other, from, to");
  EXPECT_THROWS(AttentionTensors({{"q", Tensor({1, 1, 1, 1})}}, kSpecs, "in.npz"), kInputFormat,
                "in.npz: the tensor k is missing");
  EXPECT_THROWS(with({{"from", ints({0, 1})}}), kInputFormat, "in.npz: from is there without to");
  EXPECT_THROWS(with({{"from", ints({0, 1})}, {"to", ints({0, 1, 2})}}), kShape,
                "axis N+1 is 3, and 2 in from");
}

TEST(AttentionTensors, NamesTypesThatCannotBe) {
  EXPECT_THROWS(with_other("q", Tensor({2, 3, 2, 8}, DType::kInt32)), kInputFormat,
                "in.npz: q must hold float32, float64 or bfloat16; it holds int32");
  EXPECT_THROWS(with({{"lengths", Tensor({2})}}), kInputFormat,
                "lengths must hold int32 or int64; it holds float32");
  EXPECT_THROWS(with({{"keep", Tensor({1, 1, 1, 5})}}), kInputFormat,
                "keep must hold uint8 or bool; it holds float32");
}

TEST(AttentionTensors, RowsOfNothingAreBounded) {
  with_other("q", Tensor({2, 1 << 16, 0, 8}));
  EXPECT_THROWS(with_other("q", Tensor({2, index{1} << 40, 0, 8})), kShape,
                "too many rows of no values");
}

}  // namespace
}  // namespace fovea
