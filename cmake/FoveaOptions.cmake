# SPDX-License-Identifier: Apache-2.0
# One interface target carries the flags of every target of ours; nothing is set globally, so a host
# project that adds us as a subdirectory keeps its own.
option(FOVEA_WARNINGS_ARE_ERRORS "Stop at warnings" ${PROJECT_IS_TOP_LEVEL})
add_library(fovea_options INTERFACE)
target_compile_options(fovea_options INTERFACE
  -Wall -Wextra $<$<BOOL:${FOVEA_WARNINGS_ARE_ERRORS}>:-Werror> -Wshadow -Wnon-virtual-dtor -Wno-psabi
  $<$<CXX_COMPILER_ID:Clang>:-Wno-unused-lambda-capture>
  # g++ 12 sees overlap and overflow in "text" + std::string where there is none (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
  # Results must not depend on what the compiler chooses to contract: fused multiply-adds are written.
  -ffp-contract=off
  # A square root need not set errno, and so is one instruction.
  -fno-math-errno)
if(FOVEA_SANITIZE)
  target_compile_options(fovea_options INTERFACE -fsanitize=${FOVEA_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
  target_link_options(fovea_options INTERFACE -fsanitize=${FOVEA_SANITIZE})
  if(FOVEA_SANITIZE STREQUAL thread)
    # Here g++ 12 sees copies beyond the end of short strings where there are none.
    target_compile_options(fovea_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>)
  endif()
endif()

# Races do not depend on how wide a vector is: a build that looks for them can do with fewer kernels.
option(FOVEA_FEW_ISAS "Compile kernels for scalar, AVX2 and AVX-512 alone, without SSSE3 and SSE4" OFF)
if(FOVEA_FEW_ISAS)
  target_compile_definitions(fovea_options INTERFACE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4)")
endif()

find_program(FOVEA_CCACHE ccache)
if(FOVEA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FOVEA_CCACHE})
endif()

# The standard library's and fmt's headers are a third of what most files take to compile. The first
# target of a kind (their flags must be the same) precompiles them, the others use that. Builds
# with checks do without, so that each file has to include what it uses. The build with TSan has them
# all the same, because the one with ASan compiles the same files.
option(FOVEA_PRECOMPILE_HEADERS "Precompile the headers of other projects" ${PROJECT_IS_TOP_LEVEL})
set(FOVEA_COMMON_HEADERS
  <fmt/format.h> <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <limits> <memory>
  <optional> <span> <string> <string_view> <type_traits> <utility> <vector>)

# fovea_precompile_headers(TARGET KIND header...)
function(fovea_precompile_headers target kind)
  if(NOT FOVEA_PRECOMPILE_HEADERS)
    return()
  endif()
  get_property(first GLOBAL PROPERTY FOVEA_HEADERS_OF_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY FOVEA_HEADERS_OF_${kind} ${target})
  endif()
endfunction()

# A file of task, cli or of some tests reads many headers, which takes most of the time that it compiles.
# So eight are compiled at a time, and names without linkage must be unique within such a target. Builds
# with checks compile each file alone.
option(FOVEA_UNITY "Compile several small files at once" ${PROJECT_IS_TOP_LEVEL})

function(fovea_unity target)
  if(FOVEA_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # With so much to inline, g++ 12 sees uninitialised members of options that were moved, and bounds
    # of moved JSON, where none are; builds with checks look for them file by file.
    target_compile_options(${target} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>)
  endif()
endfunction()
