# SPDX-License-Identifier: Apache-2.0
# Builds tests/consumer/WAY against what BUILD would install (COMPONENTS of it), or with SOURCE inside
# it, and runs it.
cmake_minimum_required(VERSION 3.25)

set(scratch ${BUILD}/consumer/${WAY})
file(REMOVE_RECURSE ${scratch})

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

if(NOT WAY STREQUAL subdirectory)
  foreach(component ${COMPONENTS})
    run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${scratch}/prefix --component ${component})
  endforeach()
endif()

# One command of the compiler and what pkg-config says, in the order in which it says it.
function(build_with_pkg_config program package)
  file(GLOB_RECURSE found ${scratch}/prefix/${package}.pc)
  cmake_path(GET found PARENT_PATH folder)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder}
      ${PKG_CONFIG} --cflags --libs ${package}
    OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND ${flags})
  run(${COMPILER} -std=c++20 ${CMAKE_CURRENT_LIST_DIR}/${program}.cc -o ${scratch}/${program} ${flags})
  run(${scratch}/${program})
endfunction()
if(WAY STREQUAL pkg_config)
  build_with_pkg_config(main fovea-attention)
  if(library IN_LIST COMPONENTS)
    build_with_pkg_config(whole fovea)
  endif()
  return()
endif()

set(options)
if(NOT WAY MATCHES "^(reference|models)$")
  set(options -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON)  # the operator needs none, whatever else is installed
endif()
# With the flags of our own build, so that ccache knows what is compiled once more.
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/${WAY} -B ${scratch}/build -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${scratch}/prefix
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
  -DFOVEA_WARNINGS_ARE_ERRORS=ON -DSOURCE=${SOURCE} -DVERSION=${VERSION} ${options})
run(${CMAKE_COMMAND} --build ${scratch}/build)
set(arguments)
if(WAY STREQUAL models)
  run(${PYTHON} ${SOURCE}/tests/cli/bert_support.py ${scratch}/model)
  set(arguments ${scratch}/model "the old cat" "a dog")
endif()
run(${scratch}/build/consumer ${arguments})

if(WAY STREQUAL installed)
  # What users see in the prefix, and what a host of ours exports: of our symbols none but those that
  # its own file compiles from headers.
  file(GLOB_RECURSE inline_headers ${scratch}/prefix/include/fovea/*-inl.h)
  file(GLOB_RECURSE page ${scratch}/prefix/share/doc/fovea/docs/library.md)
  if(inline_headers OR NOT page OR NOT EXISTS ${scratch}/prefix/include/fovea/base/version.h)
    message(FATAL_ERROR "the prefix shows '${inline_headers}', and of its pages '${page}'")
  endif()
  find_program(nm nm REQUIRED)
  file(GLOB_RECURSE own ${scratch}/build/*host.cc.o)
  function(defined out)
    execute_process(COMMAND ${nm} ${ARGN} -P --defined-only OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "_Z[A-Za-z0-9_]*5fovea[A-Za-z0-9_]*" symbols "${text}")
    set(${out} ${symbols} PARENT_SCOPE)
  endfunction()
  defined(exported -D ${scratch}/build/libhost.so)
  defined(compiled ${own})
  list(REMOVE_ITEM exported ${compiled} "")
  if(exported)
    list(LENGTH exported count)
    message(FATAL_ERROR "a shared library exports ${count} of our symbols: ${exported}")
  endif()
endif()
