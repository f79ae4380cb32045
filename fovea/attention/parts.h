// SPDX-License-Identifier: Apache-2.0
// A list of parts of one family: biases, values, observers. And what a part of any family works
// with: tiles, views and their checks, and the memory that it names.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fovea/attention/check_views.h"
#include "fovea/attention/overlap.h"
#include "fovea/attention/tile.h"

namespace fovea::detail {

/// Throws Error(kShape) that names the family if there is no part.
void check_part(bool is_there, std::string_view family);

}  // namespace fovea::detail

namespace fovea {

/// Zero or more parts, applied in order; they combine with +. Cheap to copy; parts are shared.
/// `Family` is the base class of the parts; Family::kFamily names it in messages.
template <class Family>
class Parts {
 public:
  Parts() = default;
  template <class Part>
  requires std::is_base_of_v<Family, Part> Parts(Part part)
      : parts_{std::make_shared<const Part>(std::move(part))} {}
  /// Throws Error(kShape) for no part at all.
  explicit Parts(std::shared_ptr<const Family> part) : parts_{std::move(part)} {
    detail::check_part(parts_[0] != nullptr, Family::kFamily);
  }

  const std::vector<std::shared_ptr<const Family>>& parts() const { return parts_; }
  bool empty() const { return parts_.empty(); }
  /// For people, such as "alibi + softcap"; "none" without parts.
  std::string name() const {
    std::string text;
    for (const auto& part : parts_) text += (text.empty() ? "" : " + ") + part->name();
    return text.empty() ? "none" : text;
  }

  friend Parts operator+(Parts a, const Parts& b) {
    a.parts_.insert(a.parts_.end(), b.parts_.begin(), b.parts_.end());
    return a;
  }

 private:
  std::vector<std::shared_ptr<const Family>> parts_;
};

/// Two parts of one family, in this order.
template <class A, class B>
requires std::is_base_of_v<typename A::Family, A> && std::is_base_of_v<typename A::Family, B>
    Parts<typename A::Family>
operator+(A a, B b) {
  return Parts<typename A::Family>(std::move(a)) + Parts<typename A::Family>(std::move(b));
}

}  // namespace fovea
