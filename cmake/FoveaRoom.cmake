# SPDX-License-Identifier: Apache-2.0
# fovea_room(NAME [LINK target...]): the library of one room, from every .cc below fovea/NAME.
# A room links the rooms it uses; tools/check_floors.py checks that they all lie on lower floors.
function(fovea_room name)
  cmake_parse_arguments(ROOM "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fovea/${name}/*.cc)
  set_property(GLOBAL APPEND PROPERTY FOVEA_ROOMS ${name})
  add_library(fovea_${name} STATIC ${sources})
  add_library(fovea::${name} ALIAS fovea_${name})
  target_include_directories(fovea_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>
    $<INSTALL_INTERFACE:include/fovea-internal>)
  # A shared library of a host that links us exports none of our symbols.
  target_link_options(fovea_${name} INTERFACE LINKER:--exclude-libs,libfovea_${name}.a)
  target_compile_features(fovea_${name} PUBLIC cxx_std_20)
  target_link_libraries(fovea_${name} PUBLIC ${ROOM_LINK} PRIVATE $<BUILD_INTERFACE:fovea_options>)
  set_target_properties(fovea_${name} PROPERTIES EXPORT_NAME ${name})
  fovea_precompile_headers(fovea_${name} rooms ${FOVEA_COMMON_HEADERS})
  if(name STREQUAL "task")
    fovea_unity(fovea_task)
  endif()
endfunction()
