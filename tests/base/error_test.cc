// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/error.h"

#include <gmock/gmock.h>

#include <set>
#include <string_view>

namespace fovea {
namespace {

TEST(ErrorCodes, HaveDistinctNamesWhoseFirstDigitsAreTheExitStatus) {
  std::set<std::string_view> names;
  for (const ErrorCodeInfo& code : kErrorCodes) {
    ASSERT_EQ(code.name.size(), 5u);
    EXPECT_EQ(code.name[0], 'E');
    EXPECT_EQ((code.name[1] - '0') * 10 + (code.name[2] - '0'), code.exit_status) << code.name;
    EXPECT_TRUE(names.insert(code.name).second) << code.name;
    EXPECT_FALSE(code.meaning.empty());
  }
}

// Programs and scripts rely on these.
TEST(ErrorCodes, KeepTheirDocumentedExitStatus) {
  EXPECT_EQ(info(ErrorCode::kInternal).exit_status, 1);
  EXPECT_EQ(info(ErrorCode::kShape).exit_status, 2);
  EXPECT_EQ(info(ErrorCode::kOutputExists).exit_status, 2);
  EXPECT_EQ(info(ErrorCode::kMissingInput).exit_status, 3);
  EXPECT_EQ(info(ErrorCode::kEncoding).exit_status, 3);
  EXPECT_EQ(info(ErrorCode::kModelDamaged).exit_status, 4);
  EXPECT_EQ(info(ErrorCode::kWrite).exit_status, 5);
  EXPECT_EQ(info(ErrorCode::kOutOfMemory).exit_status, 6);
  EXPECT_EQ(info(ErrorCode::kDiverged).exit_status, 7);
}

TEST(ErrorCodes, AreFoundByTheirCode) {
  for (const ErrorCodeInfo& code : kErrorCodes) EXPECT_EQ(info(code.code).name, code.name);
}

TEST(Error, SaysWhatAndWhatToDo) {
  const Error error(ErrorCode::kEncoding, "a.txt:3: invalid UTF-8", "save it as UTF-8");
  EXPECT_EQ(error.code(), ErrorCode::kEncoding);
  EXPECT_STREQ(error.what(), "a.txt:3: invalid UTF-8");
  EXPECT_EQ(error.hint(), "save it as UTF-8");
}

TEST(Error, HasTheHintOfItsCodeIfItHasNone) {
  for (const ErrorCodeInfo& code : kErrorCodes) {
    EXPECT_FALSE(code.hint.empty()) << code.name;
    EXPECT_EQ(Error(code.code, "x").hint(), code.hint);
  }
}

TEST(Error, UnderAnotherCodeKeepsItsOwnHintAlone) {
  const Error own(ErrorCode::kModelDamaged, "a", "do this");
  EXPECT_EQ(own.with(ErrorCode::kInputFormat, "b: a").hint(), "do this");
  EXPECT_EQ(own.with(ErrorCode::kInputFormat, "b: a", "or that").hint(), "do this");
  const Error general(ErrorCode::kModelDamaged, "a");
  EXPECT_FALSE(general.has_own_hint());
  const Error other = general.with(ErrorCode::kInputFormat, "b: a");
  EXPECT_EQ(other.code(), ErrorCode::kInputFormat);
  EXPECT_STREQ(other.what(), "b: a");
  EXPECT_EQ(other.hint(), info(ErrorCode::kInputFormat).hint);
  EXPECT_EQ(general.with(ErrorCode::kInputFormat, "b", "or that").hint(), "or that");
}

}  // namespace
}  // namespace fovea
