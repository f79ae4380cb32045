// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "fovea/tensor/npz.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

// Two samples of at most 2 time steps of 2 features; the first has 1.
FrameFile file_of(std::vector<double> values) {
  return {.name = "a.npz",
          .x = Tensor::of<double>({2, 2, 2}, values),
          .joints = 0,
          .features = 2,
          .lengths = {1, 2},
          .labels = {},
          .numbers = {}};
}

TEST(Frames, AreNormalisedByWhatIsTrained) {
  const std::vector<FrameFile> files{file_of({1, 5, 99, 99, 3, 5, 5, 5}),
                                     file_of({80, 80, 80, 80, 90, 90, 90, 90})};
  const FrameScale scale = scale_of(files, {false, false, true, true});
  EXPECT_THAT(scale.mean, ElementsAre(3, 5));
  EXPECT_DOUBLE_EQ(scale.deviation[0], std::sqrt(8.0 / 3));
  EXPECT_EQ(scale.deviation[1], 1);  // it never changes
  FrameSet set;
  append(set, files[0], scale);
  EXPECT_THAT(set.starts, ElementsAre(0, 1, 3));
  EXPECT_FLOAT_EQ(set.rows()[0][0], static_cast<float>(-2 / std::sqrt(8.0 / 3)));
  EXPECT_EQ(set.rows()[1][0], 0);
  EXPECT_EQ(set.rows()[2][1], 0);
  append(set, files[1], scale);
  EXPECT_EQ(set.samples(), 4);
}

TEST(Frames, NamesWhatIsTooFarFromTheTraining) {
  FrameSet set;
  EXPECT_THROWS(append(set, file_of({1, 5, 99, 99, 3, 3e38, 5, 5}), {{0, 0}, {1, 1e-3}}),
                kInputFormat,
                "a.npz: sample 1: x: feature 1: expected numbers like those of the training");
}

TEST(Frames, HaveTheShapeOfTheModel) {
  const FrameFile file = file_of(std::vector<double>(8));
  require_shape(file, 0, 2, "the model");
  EXPECT_THROWS(require_shape(file, 3, 2, "the model"), kInputFormat,
                "a.npz: x: expected [sample, time, 3, 2], as the model has, got [sample, time, 2]");
}

template <class T>
NamedTensor array(const char* name, Shape shape, std::vector<T> values) {
  return {name, Tensor::of<T>(shape, values)};
}

class FrameFiles : public testing::Test {
 protected:
  std::string write(const std::vector<NamedTensor>& arrays) {
    const std::string path = (folder_.path() / "a.npz").string();
    const std::string bytes = npz_bytes(arrays);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  // Two samples of three time steps of a feature, and these.
  std::string with(std::vector<NamedTensor> more, std::vector<float> x = {1, 2, 3, 4, 5, 6}) {
    more.push_back(array<float>("x", {2, 3, 1}, x));
    return write(more);
  }

  TestFolder folder_;
};

TEST_F(FrameFiles, AreRead) {
  const FrameFile file = read_frame_file(with({array<std::int32_t>("lengths", {2}, {3, 1}),
                                               array<std::int64_t>("labels", {2}, {7, -2})}),
                                         FrameLabels::kClass);
  EXPECT_EQ(file.joints, 0);
  EXPECT_EQ(file.features, 1);
  EXPECT_THAT(file.lengths, ElementsAre(3, 1));
  EXPECT_THAT(file.labels, ElementsAre(ElementsAre("7"), ElementsAre("-2")));
}

TEST_F(FrameFiles, HaveFlagsOrNumbers) {
  const auto flags = read_frame_file(with({array<std::uint8_t>("labels", {2, 2}, {1, 1, 0, 0})}),
                                     FrameLabels::kSeveral);
  EXPECT_THAT(flags.labels[0], ElementsAre("0", "1"));
  EXPECT_TRUE(flags.labels[1].empty());
  EXPECT_THAT(flags.lengths, ElementsAre(3, 3));
  const auto numbers =
      read_frame_file(with({array<float>("labels", {2}, {0.5f, 2})}), FrameLabels::kNumber);
  EXPECT_THAT(numbers.numbers, ElementsAre(0.5, 2));
}

TEST_F(FrameFiles, SayWhatIsWrongAndWhere) {
  const auto read = [](const std::string& path) {
    return read_frame_file(path, FrameLabels::kClass);
  };
  const auto lengths = [](std::int32_t n) { return array<std::int32_t>("lengths", {2}, {3, n}); };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROWS(read(write({array<float>("y", {1}, {1})})), kInputFormat,
                "no array x; the file has 'y'");
  EXPECT_THROWS(read(with({})), kInputFormat, "there is no array labels");
  EXPECT_THROWS(read(with({lengths(0)})), kInputFormat, "lengths: sample 1: expected 1 to 3");
  EXPECT_THROWS(read(with({lengths(4)})), kInputFormat, "got 4");
  EXPECT_THROWS(read(with({array<std::int32_t>("lengths", {1}, {3})})), kInputFormat,
                "expected [2], one for each sample");
  EXPECT_THROWS(read(with({}, {1, 2, 3, 4, nan, 6})), kInputFormat,
                "x: sample 1, time step 1, feature 0: expected a finite number, got NaN");
  EXPECT_THROWS(read(with({array<float>("labels", {2}, {1, 2})})), kInputFormat,
                "expected whole numbers or texts, got float32");
  EXPECT_THROWS(read(write({array<float>("x", {2, 2}, {1, 2, 3, 4})})), kInputFormat,
                "expected 3 or 4 axes, got [2, 2]");
  EXPECT_THROWS(read(write({array<std::int32_t>("x", {1, 1, 1}, {1})})), kInputFormat,
                "expected float32 or float64, got int32");
  EXPECT_THROWS(read(write({array<float>("x", {0, 2, 2}, {})})), kEmptyInput, "got none");
  EXPECT_THROWS(read("-"), kUsage, "standard input");
}

// Numbers behind the length of a sample are padding.
TEST_F(FrameFiles, MayHaveAnythingBehindALength) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto path = with({array<std::int32_t>("lengths", {2}, {3, 1})}, {1, 2, 3, 4, nan, 6});
  EXPECT_EQ(read_frame_file(path, FrameLabels::kNone).samples(), 2);
}

TEST_F(FrameFiles, AreNoTexts) {
  EXPECT_THROWS(require_no_npz(with({})), kInputFormat, "expected texts, got arrays of numbers");
  require_no_npz((folder_.path() / "none.npz").string());
  require_no_npz("texts.tsv");
}

TEST(Places, OfSamples) { EXPECT_EQ(place_of_sample("a.npz", 3), "a.npz: sample 3"); }

}  // namespace
}  // namespace fovea
