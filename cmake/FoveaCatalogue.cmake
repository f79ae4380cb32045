# SPDX-License-Identifier: Apache-2.0
# The Chinese texts of the command, fovea/catalogue/zh_CN.po, as a constant:
#
#   fovea_catalogue(TARGET FILE)    in a CMakeLists.txt: writes and compiles the constant
#   cmake -DFILE=... -DOUTPUT=... -P FoveaCatalogue.cmake    what that runs during the build
function(fovea_catalogue target file)
  set(output ${PROJECT_BINARY_DIR}/catalogue/${target}.cc)
  set(script ${PROJECT_SOURCE_DIR}/cmake/FoveaCatalogue.cmake)
  add_custom_command(OUTPUT ${output} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DFILE=${file} -DOUTPUT=${output} -P ${script}
    DEPENDS ${file} ${script})
  # A text of this length is one literal; clang warns of what other compilers may not take.
  set_source_files_properties(${output} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings
    SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${output})
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()

file(READ ${FILE} content)
# Comments and the places in the sources are for translators.
string(REGEX REPLACE "(^|\n)#[^\n]*" "\\1" content "${content}")
string(REGEX REPLACE "\n\n+" "\n" content "${content}")
file(WRITE ${OUTPUT} "// SPDX-License-Identifier: Apache-2.0
// Made by cmake/FoveaCatalogue.cmake.
#include <string_view>

namespace fovea {

std::string_view chinese_po();
std::string_view chinese_po() { return R\"po(${content})po\"; }

}  // namespace fovea
")
