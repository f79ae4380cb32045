// SPDX-License-Identifier: Apache-2.0
#include "python/extension/errors.h"

#include <nanobind/nanobind.h>

#include <cctype>
#include <exception>
#include <new>

namespace nb = nanobind;

namespace fovea::python {

namespace {

void raise(ErrorCode code, std::string_view message, std::string_view hint) {
  const std::string text = with_keywords(message), advice = with_keywords(hint);
  try {
    const std::string_view name = info(code).name;
    const nb::object error =
        nb::module_::import_("fovea._errors")
            .attr("error_of")(nb::str(name.data(), name.size()), nb::str(text.data(), text.size()),
                              nb::str(advice.data(), advice.size()));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  } catch (nb::python_error& failed) {
    failed.restore();
  }
}

}  // namespace

std::string with_keywords(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = text.substr(i, 2) == "--" && (i == 0 || text[i - 1] != '-') &&
                        i + 2 < text.size() &&
                        std::islower(static_cast<unsigned char>(text[i + 2]));
    if (!begins) {
      result += text[i];
      continue;
    }
    for (i += 2;
         i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '-');
         ++i) {
      result += text[i] == '-' ? '_' : text[i];
    }
    --i;
  }
  return result;
}

void translate_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error.code(), error.what(), error.hint());
    } catch (const std::bad_alloc&) {
      raise(ErrorCode::kOutOfMemory, "out of memory", info(ErrorCode::kOutOfMemory).hint);
    }
  });
}

}  // namespace fovea::python
