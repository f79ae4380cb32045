// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/ter.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

std::vector<double> count(std::string_view hypothesis, std::vector<std::string_view> references) {
  std::vector<double> numbers(2);
  ter()->count(hypothesis, references, numbers);
  return numbers;
}

// Snover and others 2006, section 2: two shifts (one of "this week", by tercom's search one edit),
// one substitution, one insertion.
TEST(Ter, IsThatOfTheExampleOfThePaper) {
  const std::vector<double> numbers =
      count("THIS WEEK THE SAUDIS denied information published in the new york times",
            {"SAUDI ARABIA denied THIS WEEK information published in the AMERICAN new york times"});
  EXPECT_EQ(numbers, (std::vector<double>{4, 13}));
  EXPECT_NEAR(ter()->score(numbers), 100 * 4.0 / 13, 1e-12);
}

TEST(Ter, TakesTheFewestEditsAndTheMeanLength) {
  EXPECT_EQ(count("a b c", {"a b c d e", "a b"}), (std::vector<double>{1, 3.5}));
  EXPECT_EQ(count("The Cat", {"the cat"}), (std::vector<double>{0, 2}));
}

TEST(Ter, OfEmptyReferencesIs100Or0) {
  const std::vector<double> something = count("a b", {""}), nothing = count("", {""});
  EXPECT_EQ(ter()->score(something), 100);
  EXPECT_EQ(ter()->score(nothing), 0);
  EXPECT_EQ(count("", {"a b"}), (std::vector<double>{2, 2}));
}

}  // namespace
}  // namespace fovea
