// SPDX-License-Identifier: Apache-2.0
// Errors of the library as exceptions of Python: the classes are in python/fovea/_errors.py.
#pragma once

#include <string>

#include "fovea/base/error.h"

namespace fovea::python {

/// Errors of this library that leave a function of the extension become exceptions of Python.
void translate_errors();

/// The text of a message about options as a caller from Python knows them: "--head-dim" becomes
/// "head_dim".
std::string with_keywords(std::string_view text);

}  // namespace fovea::python
