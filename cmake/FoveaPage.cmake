# SPDX-License-Identifier: Apache-2.0
# The style sheets and scripts of pages, as constants of a room:
#
#   fovea_page_files(TARGET FOLDER)    in a CMakeLists.txt: writes and compiles page_files.cc
#   cmake -DFILES=... -DOUTPUT=... -P FoveaPage.cmake    what that runs during the build
function(fovea_page_files target folder)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.css ${folder}/*.js)
  set(output ${PROJECT_BINARY_DIR}/page_files/${target}.cc)
  set(script ${PROJECT_SOURCE_DIR}/cmake/FoveaPage.cmake)
  add_custom_command(OUTPUT ${output} VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DFILES=${files}" -DOUTPUT=${output} -P ${script}
    DEPENDS ${files} ${script})
  target_sources(${target} PRIVATE ${output})
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()

set(text "// SPDX-License-Identifier: Apache-2.0\n// Made by cmake/FoveaPage.cmake.\n")
string(APPEND text "#include \"fovea/report/html.h\"\n\nnamespace fovea {\n\n")
string(APPEND text "std::string_view page_file(std::string_view name) {\n")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} content)
  string(APPEND text "  if (name == \"${name}\") {\n    return R\"page(${content})page\";\n  }\n")
endforeach()
string(APPEND text "  return {};\n}\n\n")
# For the policy of a page, which names the scripts that may run.
string(APPEND text "std::string_view page_file_sha256(std::string_view name) {\n")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(SHA256 ${file} digest)
  string(REGEX REPLACE "(..)" "\\\\x\\1" digest ${digest})
  string(APPEND text "  if (name == \"${name}\") return {\"${digest}\", 32};\n")
endforeach()
string(APPEND text "  return {};\n}\n\n}  // namespace fovea\n")
file(WRITE ${OUTPUT} "${text}")
