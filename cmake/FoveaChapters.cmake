# SPDX-License-Identifier: Apache-2.0
# The chapters of the course, both languages, packed into a constant of the command:
#
#   fovea_chapters(TARGET)    in a CMakeLists.txt: writes and compiles chapters.cc
#   cmake -DFILES=... -DOUTPUT=... -P FoveaChapters.cmake    what that runs during the build
function(fovea_chapters target)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/learn/[0-9][0-9]-*.md)
  set(output ${PROJECT_BINARY_DIR}/chapters/chapters.cc)
  set(script ${PROJECT_SOURCE_DIR}/cmake/FoveaChapters.cmake)
  add_custom_command(OUTPUT ${output} VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DFILES=${files}" -DOUTPUT=${output} -P ${script}
    DEPENDS ${files} ${script})
  target_sources(${target} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()

# Each text begins with a line of its name behind a record separator. All are packed together, since the
# two languages of a chapter have the same code.
string(ASCII 30 separator)
set(text "")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} content)
  string(APPEND text "${separator}${name}\n${content}")
endforeach()
list(LENGTH FILES count)
math(EXPR count "${count} / 2")
file(WRITE ${OUTPUT}.txt "${text}")
file(ARCHIVE_CREATE OUTPUT ${OUTPUT}.zst PATHS ${OUTPUT}.txt FORMAT raw COMPRESSION Zstd COMPRESSION_LEVEL 9)
file(READ ${OUTPUT}.zst bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes ${bytes})
file(WRITE ${OUTPUT} "// SPDX-License-Identifier: Apache-2.0\n// Made by cmake/FoveaChapters.cmake.
#include \"cli/chapters.h\"\n\nnamespace fovea::cli {\n\nstd::string_view packed_chapters() {
  static constexpr unsigned char kBytes[] = {${bytes}};
  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};\n}\n\nint chapter_count() { return ${count}; }\n\n}  // namespace fovea::cli\n")
