// SPDX-License-Identifier: Apache-2.0
#include "fovea/simd/isa.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "fovea/base/error.h"
#include "fovea/simd/peak.h"
#include "tests/isa.h"

namespace fovea {
namespace {

TEST(Isa, NamesGoThereAndBack) {
  for (const Isa isa : available_isas()) EXPECT_EQ(isa_from_name(isa_name(isa)), isa);
}

TEST(Isa, TheBestIsCurrentUnlessPinned) {
  unpin_isa();
  EXPECT_EQ(current_isa(), available_isas().back());
}

TEST(Isa, AnUnknownNameIsAnErrorThatListsTheAvailable) {
  try {
    isa_from_name("mmx");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOptionValue);
    EXPECT_THAT(error.what(), testing::HasSubstr("'mmx'"));
    EXPECT_THAT(error.hint(), testing::HasSubstr(std::string(isa_name(available_isas().back()))));
  }
}

TEST(Isa, PinningChangesWhatKernelsRunOn) {
  const auto isas = available_isas();
  for_each_isa([] { EXPECT_EQ(compiled_isa(), current_isa()); });
  EXPECT_EQ(available_isas(), isas) << "pinning must not hide the others";
}

TEST(Isa, TheEnvironmentPinsAtFirstUse) {
  const auto in_a_fresh_process = [](const char* isa, const char* expected) {
    EXPECT_EXIT(
        {
          // A death test of the "threadsafe" style starts the program anew, so nothing is decided.
          setenv("FOVEA_ISA", isa, 1);
          try {
            std::exit(isa_name(compiled_isa()) == expected ? 0 : 1);
          } catch (const Error& error) {
            std::exit(std::string_view(expected) == "error" ? 0 : 2);
          }
        },
        testing::ExitedWithCode(0), "");
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const Isa isa : available_isas()) {
    const std::string name(isa_name(isa));
    in_a_fresh_process(name.c_str(), name.c_str());
  }
  in_a_fresh_process("mmx", "error");
}

}  // namespace
}  // namespace fovea
