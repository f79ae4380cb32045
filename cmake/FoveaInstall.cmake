# SPDX-License-Identifier: Apache-2.0
# What `make install` leaves: the command, headers, static libraries, a CMake package with
#   fovea::attention  the operator alone (base, simd, attention)
#   fovea::fovea      every room but the last
#   fovea::reference  the gradient checker and the plain loops of the kernels, for tests
# and the first two for pkg-config, fovea-attention and fovea.
# Components: `attention` is the operator, `library` the other rooms, `reference` the last, `command`
# bin/fovea, its manual pages and completions.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(FoveaPublicHeaders)

get_property(rooms GLOBAL PROPERTY FOVEA_ROOMS)
set(operator_rooms base simd attention)
set(other_rooms ${rooms})
list(REMOVE_ITEM other_rooms ${operator_rooms} reference)

list(TRANSFORM rooms PREPEND fovea_ OUTPUT_VARIABLE targets)
set(linked ${targets})
list(REMOVE_ITEM linked fovea_reference)
add_library(fovea_fovea INTERFACE)
add_library(fovea::fovea ALIAS fovea_fovea)
set_target_properties(fovea_fovea PROPERTIES EXPORT_NAME fovea)
target_link_libraries(fovea_fovea INTERFACE ${linked})

option(FOVEA_INSTALL "Make rules that install fovea" ${PROJECT_IS_TOP_LEVEL})
if(NOT FOVEA_INSTALL)
  return()
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/fovea)

# fovea_install_headers(COMPONENT header...)
function(fovea_install_headers component)
  foreach(header ${ARGN})
    set(folder ${CMAKE_INSTALL_INCLUDEDIR})
    if(NOT header IN_LIST FOVEA_PUBLIC_HEADERS)
      string(APPEND folder /fovea-internal)
    endif()
    cmake_path(GET header PARENT_PATH room)
    install(FILES ${PROJECT_SOURCE_DIR}/fovea/${header} COMPONENT ${component}
      DESTINATION ${folder}/fovea/${room})
  endforeach()
endfunction()

# fovea_install_rooms(COMPONENT EXPORT room...)
function(fovea_install_rooms component export)
  list(TRANSFORM ARGN PREPEND fovea_ OUTPUT_VARIABLE libraries)
  if(component STREQUAL library)
    list(APPEND libraries fovea_fovea)
  endif()
  install(TARGETS ${libraries} EXPORT ${export}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component})
  foreach(room ${ARGN})
    file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR}/fovea CONFIGURE_DEPENDS
      ${PROJECT_SOURCE_DIR}/fovea/${room}/*.h)
    fovea_install_headers(${component} ${headers})
  endforeach()
  install(EXPORT ${export} NAMESPACE fovea:: DESTINATION ${package_folder} COMPONENT ${component})
endfunction()

# fovea_install_pc(NAME COMPONENT DESCRIPTION REQUIRES room...): NAME.pc. Libraries are static, so the
# order counts: a room stands before those that it stands on, which are named before it.
function(fovea_install_pc name component description requires)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    set(FOVEA_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
  else()
    file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    string(REGEX REPLACE "/$" "" FOVEA_PC_PREFIX "\${pcfiledir}/${up}")
  endif()
  # cmake_path(APPEND) with an absolute folder replaces ${prefix}.
  cmake_path(APPEND FOVEA_PC_LIBDIR "\${prefix}" ${CMAKE_INSTALL_LIBDIR})
  cmake_path(APPEND FOVEA_PC_INCLUDEDIR "\${prefix}" ${CMAKE_INSTALL_INCLUDEDIR})
  set(FOVEA_PC_NAME ${name})
  set(FOVEA_PC_DESCRIPTION ${description})
  set(FOVEA_PC_REQUIRES ${requires})
  list(REVERSE ARGN)
  list(TRANSFORM ARGN REPLACE "(.+)" "libfovea_\\1.a" OUTPUT_VARIABLE archives)
  list(JOIN archives ":" FOVEA_PC_ARCHIVES)
  list(TRANSFORM ARGN PREPEND -lfovea_)
  list(JOIN ARGN " " FOVEA_PC_LIBS)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/fovea.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
endfunction()

fovea_install_rooms(attention fovea-attention-targets ${operator_rooms})
fovea_install_pc(fovea-attention attention "Attention on the CPU, forward and backward"
  "fmt libhwy" ${operator_rooms})
if(other_rooms)
  fovea_install_rooms(library fovea-library-targets ${other_rooms})
  fovea_install_pc(fovea library "Attention and Transformers on the CPU"
    "fovea-attention = ${PROJECT_VERSION} zlib libzstd libutf8proc sentencepiece" ${other_rooms})
  fovea_install_headers(library fovea.h models.h)
  fovea_install_rooms(reference fovea-reference-targets reference)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/examples COMPONENT attention
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md COMPONENT attention
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
add_custom_target(fovea_installed)  # what install() takes, without tests and benchmarks
add_dependencies(fovea_installed ${targets})
if(TARGET fovea)
  install(TARGETS fovea RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
  # Manual pages and completions, which the command makes itself.
  install(CODE "set(FOVEA_COMMAND \"$<TARGET_FILE:fovea>\")" COMPONENT command)
  install(CODE "set(FOVEA_MAN \"${CMAKE_INSTALL_MANDIR}\")" COMPONENT command)
  install(CODE "set(FOVEA_DATA \"${CMAKE_INSTALL_DATADIR}\")" COMPONENT command)
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/FoveaShare.cmake COMPONENT command)
  add_dependencies(fovea_installed fovea)
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fovea-config.cmake.in
  ${PROJECT_BINARY_DIR}/fovea-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fovea-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fovea-config.cmake ${PROJECT_BINARY_DIR}/fovea-config-version.cmake
  DESTINATION ${package_folder} COMPONENT attention)
