// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/printable.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Printable, QuotesWhatCanBePrinted) { EXPECT_EQ(printable("h.0.wte"), "'h.0.wte'"); }

TEST(Printable, EscapesControlAndBidirectionalCharacters) {
  EXPECT_EQ(printable("a\x1b[31m\n"), "'a\\x1b[31m\\x0a'");
  EXPECT_EQ(printable("\u202e"), "'\\xe2\\x80\\xae'");
}

TEST(Printable, CutsWhatIsLong) {
  EXPECT_EQ(printable(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(printable(std::string(61, 'x')), "'" + std::string(60, 'x') + "...'");
}

}  // namespace
}  // namespace fovea
