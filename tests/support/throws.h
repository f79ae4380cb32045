// SPDX-License-Identifier: Apache-2.0
// What a test asks of an error: its code, and words of its message.
#pragma once

#include <gmock/gmock.h>

#include <optional>
#include <string>

#include "fovea/base/error.h"

namespace fovea {

/// The error that f() throws; nothing if it throws none.
template <class F>
std::optional<Error> error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// The statement throws Error(ErrorCode::code), whose message contains `words`.
#define EXPECT_THROWS(statement, error_code, words)                               \
  do {                                                                            \
    const auto thrown = ::fovea::error_of([&] { static_cast<void>(statement); }); \
    ASSERT_TRUE(thrown.has_value()) << #statement << " throws nothing";           \
    EXPECT_EQ(::fovea::info(thrown->code()).name,                                 \
              ::fovea::info(::fovea::ErrorCode::error_code).name);                \
    EXPECT_THAT(std::string(thrown->what()), ::testing::HasSubstr(words));        \
  } while (false)

}  // namespace fovea
