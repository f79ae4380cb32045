// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/profile.h"

#include <fmt/core.h>

#include <algorithm>

#include "fovea/base/clock.h"
#include "fovea/base/error.h"

namespace fovea {

void Profile::clear() {
  if (open_ > 0) {
    throw Error(ErrorCode::kInternal,
                fmt::format("Profile::clear: {} scopes of the profile are open", open_),
                "clear it between two pieces of work");
  }
  parts_.clear();
  waiting_ = counted_ = 0;
}

// The number of the part for this kind and shape, to which the work is added.
std::size_t Profile::number_of(const Work& work) {
  auto part = std::find_if(parts_.begin(), parts_.end(),
                           [&](const Part& one) { return one.work.is_like(work); });
  if (part == parts_.end()) {
    part = parts_.insert(part, {.work = {.what = work.what, .shape = work.shape}});
  }
  part->work.flops += work.flops;
  part->work.bytes += work.bytes;
  part->calls += 1;
  return static_cast<std::size_t>(part - parts_.begin());
}

ProfileScope::ProfileScope(const Context& ctx, const Work& work) : profile_(ctx.profile()) {
  if (profile_ == nullptr) return;
  part_ = profile_->number_of(work);  // here, because it may throw
  elsewhere_ = profile_->counted_ + profile_->waiting_;
  profile_->open_ += 1;
  begin_ = monotonic_seconds();
}

ProfileScope::~ProfileScope() {
  if (profile_ == nullptr) return;
  const double inner = profile_->counted_ + profile_->waiting_ - elsewhere_;
  const double seconds = monotonic_seconds() - begin_ - inner;
  profile_->parts_[part_].seconds += seconds;
  profile_->counted_ += seconds;
  profile_->open_ -= 1;
}

}  // namespace fovea
