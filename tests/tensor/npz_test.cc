// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/npz.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "fovea/tensor/zip.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

std::vector<NamedTensor> three_tensors() {
  return {{"q", Tensor::of<float>({2}, std::vector<float>{1, 2})},
          {"keep", Tensor({2, 3}, DType::kUInt8)},
          {"a/b", Tensor(Shape{}, DType::kFloat64)}};
}

TEST(Npz, WhatIsWrittenIsReadBackSorted) {
  const auto read = parse_npz(npz_bytes(three_tensors()), "x");
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].name, "a/b");
  EXPECT_EQ(read[1].name, "keep");
  EXPECT_EQ(read[2].name, "q");
  EXPECT_EQ(read[2].tensor.data<float>()[1], 2.0f);
}

TEST(Npz, SameTensorsGiveSameBytesInAnyOrder) {
  auto tensors = three_tensors();
  const std::string bytes = npz_bytes(tensors);
  std::reverse(tensors.begin(), tensors.end());
  EXPECT_EQ(npz_bytes(tensors), bytes);
}

TEST(Npz, NamesTheMemberThatCannotBe) {
  const std::string good = npy_bytes(Tensor({2}));
  const auto archive = [](std::vector<ZipMember> members) { return zip_bytes(members); };
  EXPECT_THROWS(parse_npz(archive({{"q.npy", good}, {"q.npy", good}}), "x.npz"), kInputFormat,
                "x.npz: tensor 'q' is there twice");
  EXPECT_THROWS(parse_npz(archive({{"readme", "text"}}), "x.npz"), kInputFormat,
                "x.npz: member 'readme' is no .npy file");
  EXPECT_THROWS(parse_npz(archive({{"q.npy", good + "x"}}), "x.npz"), kInputFormat,
                "x.npz: tensor 'q': is float32 [2]");
  EXPECT_THROWS(npz_bytes(std::vector<NamedTensor>{{"q", Tensor({2})}, {"q", Tensor({2})}}), kShape,
                "is taken twice");
}

// As numpy.save writes numpy.array([[1, 2, 3], [4, 5, 6]], numpy.float32).
std::string of_numpy() {
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  text.resize(117, ' ');
  const float values[] = {1, 2, 3, 4, 5, 6};
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text + "\n" +
         std::string(reinterpret_cast<const char*>(values), sizeof values);
}

std::string array(const std::string& header, std::size_t bytes, int version = 1) {
  std::string file("\x93NUMPY");
  file += static_cast<char>(version);
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  if (version > 1) file += std::string(2, '\0');
  return file + header + std::string(bytes, '\1');
}

Tensor parse(const std::string& bytes) { return parse_npy(bytes, "x.npy"); }

TEST(Npy, IsWrittenByteForByteAsNumpyDoes) {
  const Tensor tensor = Tensor::of<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(npy_bytes(tensor), of_numpy());
  const Tensor read = parse(of_numpy());
  EXPECT_EQ(read.describe(), "float32 [2, 3]");
  EXPECT_EQ(read.data<float>()[5], 6.0f);
}

TEST(Npy, EveryTypeAndShapeIsReadBack) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64, DType::kUInt8}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 4}, Shape{2, 1, 3, 1, 2, 2}}) {
      Tensor tensor(shape, dtype);
      for (std::byte& byte : tensor.bytes()) byte = std::byte{7};
      const std::string bytes = npy_bytes(tensor);
      EXPECT_EQ((bytes.size() - static_cast<std::size_t>(tensor.byte_size())) % 64, 0u);
      const Tensor read = parse(bytes);
      EXPECT_EQ(read.describe(), tensor.describe());
      EXPECT_EQ(npy_bytes(read), bytes);
    }
  }
  EXPECT_THROWS(npy_bytes(Tensor({2}, DType::kBFloat16)), kShape, "numpy has no type for bfloat16");
}

TEST(Npy, OtherWaysToWriteAHeaderAreRead) {
  for (const char* header :
       {"{'shape': (2,), 'descr': '<f4', 'fortran_order': False}",
        "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,)}   \n",
        " { 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2 , ) , }"}) {
    for (const int version : {1, 2, 3}) {
      EXPECT_EQ(parse(array(header, 8, version)).describe(), "float32 [2]") << header;
    }
  }
  EXPECT_EQ(parse(array("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", 1)).describe(),
            "uint8 []");
}

TEST(Npy, EveryTruncationAndEveryTailIsFound) {
  const std::string file = of_numpy();
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_THROWS(parse(file.substr(0, size)), kInputFormat, "x.npy: ");
  }
  EXPECT_THROWS(parse(file + '\0'), kInputFormat,
                "is float32 [2, 3], 6 values of 4 bytes; 25 bytes follow its header");
}

TEST(Npy, HeadersThatCannotBeAreNamed) {
  const auto refused = [](const std::string& header, const char* words) {
    EXPECT_THROWS(parse(array(header, 8)), kInputFormat, words);
  };
  const std::string type = "{'descr': '<f4', ", order = "'fortran_order': False, ";
  refused(type + order + "}", "a key missing");
  refused(type + order + "'shape': (2,), 'x': 1}", "the key 'x' twice, or where none may be");
  refused(type + type.substr(1) + "}", "the key 'descr' twice");
  refused(type + "'fortran_order': True, 'shape': (2, 1)}", "is in Fortran order");
  refused(type + "'fortran_order': 0, 'shape': (2,)}", "neither True nor False");
  refused(type + order + "'shape': (2)}", "a number where the tuple");
  refused(type + order + "'shape': (2 1)}", "a shape without commas");
  refused(type + order + "'shape': (-2,)}", "a size that is no whole number");
  refused(type + order + "'shape': (99999999999999999999,)}", "a size that is no whole number");
  refused(type + order + "'shape': (4611686018427387904, 4)}", "more values than can be counted");
  refused(type + order + "'shape': (1,1,1,1,1,1,2)}", "has 7 axes");
  refused(type + order + "'shape': (2,)} {}", "more than one dictionary");
  refused(type + order + "'shape': (2,", "no whole number");
  refused("{'descr': [('a', '<f4')], ", "holds records");
  refused("{'descr': '>f4', ", "holds values of type '>f4'");
  refused("{'descr': '<f2', ", "holds values of type '<f2'");
  refused("{'descr': '|O', ", "holds objects; only plain numbers can be used");
  refused("{'descr", "a text without end");
  refused("[]", "no '{' where one should be");
  EXPECT_THROWS(parse(array("{}", 0, 4)), kInputFormat, "is of version 4.0");
  EXPECT_THROWS(parse(array(std::string(10001, ' '), 0)), kInputFormat, "at most 10000");
  EXPECT_THROWS(parse("PK\x03\x04"), kInputFormat, "is no array of numpy");
}

}  // namespace
}  // namespace fovea
