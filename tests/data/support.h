// SPDX-License-Identifier: Apache-2.0
// Texts and checks that the tests of the room share.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include "fovea/base/error.h"
#include "fovea/base/random.h"
#include "fovea/data/batcher.h"

namespace fovea {

inline const Tokenizer& bytes() {
  static const auto tokenizer = make_tokenizer({.kind = "byte", .characters = {}});
  return *tokenizer;
}

inline std::string letters(index n) {
  std::string text;
  for (index i = 0; i < n; ++i) text += static_cast<char>('a' + i * i % 26);
  return text;
}

inline std::string verses(index n) {
  Random random(4, RandomUse::kTest);
  std::string text;
  for (index i = 0; i < n; ++i) text += letters(random.below(90)) + '\n';
  return text;
}

inline void expect_error(ErrorCode code, std::string_view message,
                         const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "expected an error: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), testing::HasSubstr(message));
  }
}

// Length of the longest sequence, 0 if there is none.
inline index longest(const Batch& batch) {
  index most = 0;
  for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
    most = std::max(most, static_cast<index>(batch.offsets[s + 1] - batch.offsets[s]));
  }
  return most;
}

// Whatever the kind: what a batch must be.
inline void expect_sound(const Batch& batch, const BatchOptions& options) {
  ASSERT_EQ(batch.ids.size(), batch.targets.size());
  ASSERT_EQ(batch.offsets.size(), batch.samples.size() + 1);
  ASSERT_EQ(batch.offsets.front(), 0);
  ASSERT_EQ(batch.offsets.back(), batch.tokens());
  ASSERT_LE(longest(batch), options.block);
  ASSERT_LE(batch.sequences(), options.batch_size);
  for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
    const auto begin = static_cast<std::size_t>(batch.offsets[s]);
    const auto end = static_cast<std::size_t>(batch.offsets[s + 1]);
    ASSERT_LT(begin, end);
    for (std::size_t i = begin; i + 1 < end; ++i) ASSERT_EQ(batch.targets[i], batch.ids[i + 1]);
  }
}

}  // namespace fovea
