// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/profile.h"

#include <algorithm>

#include "fovea/base/clock.h"

namespace fovea {

void Profile::clear() {
  parts_.clear();
  waiting_ = counted_ = 0;
}

void Profile::add(const Work& work, double seconds) {
  auto part = std::find_if(parts_.begin(), parts_.end(),
                           [&](const Part& one) { return one.work.is_like(work); });
  if (part == parts_.end()) {
    part = parts_.insert(part, {.work = {.what = work.what, .shape = work.shape}});
  }
  part->work.flops += work.flops;
  part->work.bytes += work.bytes;
  part->seconds += seconds;
  part->calls += 1;
  counted_ += seconds;
}

ProfileScope::ProfileScope(const Context& ctx, const Work& work)
    : profile_(ctx.profile()), work_(work) {
  if (profile_ == nullptr) return;
  elsewhere_ = profile_->counted_ + profile_->waiting_;
  begin_ = monotonic_seconds();
}

ProfileScope::~ProfileScope() {
  if (profile_ == nullptr) return;
  const double inner = profile_->counted_ + profile_->waiting_ - elsewhere_;
  profile_->add(work_, monotonic_seconds() - begin_ - inner);
}

}  // namespace fovea
