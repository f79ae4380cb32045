// SPDX-License-Identifier: Apache-2.0
// Archives as .npz files are: the ZIP format (APPNOTE 6.3.10), members stored or deflated, one
// disk, below 4 GiB.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace fovea {

/// Calls f(name, bytes) for every member, in the order of the directory; both die with the call.
/// Nothing is trusted: the directory must end the file, members must not overlap, what deflates
/// must have the size and the CRC-32 that are written there. The memory taken is that of the
/// largest member.
/// Throws kInputFormat that begins with `where` and names the member; kOutOfMemory for a member
/// that does not fit into what is available.
void for_each_zip_member(std::string_view file, std::string_view where,
                         const std::function<void(std::string_view, std::string_view)>& f);

struct ZipMember {
  std::string name;
  std::string bytes;
};

/// Throws kShape from 4 GiB or 65535 members on.
void check_zip_size(std::size_t members, std::uint64_t bytes);

/// An archive of stored members, in this order, of no date: the same members give the same bytes.
/// Throws as check_zip_size does.
std::string zip_bytes(std::span<const ZipMember> members);

}  // namespace fovea
