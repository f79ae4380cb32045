// SPDX-License-Identifier: Apache-2.0
// A stream that gives few bytes at a time, as pipes do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "fovea/base/bytes.h"

namespace fovea {

/// At most `most` bytes at a time; `hint` is the size that it says it has.
class Drip final : public ByteStream {
 public:
  Drip(std::string bytes, std::size_t most, std::uint64_t hint = 0)
      : bytes_(std::move(bytes)), most_(most), hint_(hint) {}
  std::size_t read(std::span<char> to) override {
    const std::size_t n = bytes_.copy(to.data(), std::min(most_, to.size()), at_);
    at_ += n;
    return n;
  }
  std::uint64_t size_hint() const override { return hint_; }

 private:
  std::string bytes_;
  std::size_t most_, at_ = 0;
  std::uint64_t hint_;
};

}  // namespace fovea
