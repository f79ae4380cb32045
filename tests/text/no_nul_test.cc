// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/text/utf8.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using namespace std::string_view_literals;

TEST(NoNul, SaysWhereTheFirstOneIs) {
  EXPECT_NO_THROW(require_no_nul("a text", "text"));
  EXPECT_NO_THROW(require_no_nul("", "text"));
  EXPECT_THROWS(require_no_nul("a line\n\u4f60\u597d the next\0 and \0 more"sv, "text"), kEncoding,
                "text:2:12: expected text, got a NUL byte");
}

}  // namespace
}  // namespace fovea
