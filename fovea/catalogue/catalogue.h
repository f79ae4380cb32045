// SPDX-License-Identifier: Apache-2.0
// What fovea says to people, in Chinese. Sources say everything in English, and English is the key:
// zh_CN.po has a Chinese text for each, which cmake/FoveaCatalogue.cmake compiles in. A message is
// translated where it leaves for a person, after it was put together. So exceptions, JSON and what
// is written into folders stay English, and no computation looks anything up.
#pragma once

#include <string>
#include <string_view>

namespace fovea {

/// A message, hint or text of help in Chinese: a program may show it beside or in place of what()
/// of an Error. Where the catalogue has a format string ("{} is not one of: {}"), the parts of the
/// message that stand in its places are put into the Chinese one, themselves translated if they are
/// texts of fovea. Of a message that no entry matches as a whole, the parts behind a colon or
/// between semicolons and lines are translated; what stays unknown stays as it is.
///
/// May be called by any number of threads.
std::string in_chinese(std::string_view english);

/// The epilog of a command: blocks of lines, and lines of examples, whose comments are translated.
std::string epilog_in_chinese(std::string_view english);

}  // namespace fovea
