# SPDX-License-Identifier: Apache-2.0
# fovea_room(NAME [SMALL] [BUT folder...] [LINK target...]): the library of one room, from every .cc below
# fovea/NAME. A room links the rooms it uses; tools/check_floors.py checks that they all lie on lower floors.
# SMALL: it has no loops over numbers, except in the folders BUT, and is compiled for size; -O3 would make
# its code half as large again. What a program does not call of it is left out, function by function.
function(fovea_room name)
  cmake_parse_arguments(ROOM "SMALL" "" "BUT;LINK" ${ARGN})
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
  if(ROOM_SMALL)
    target_compile_options(fovea_${name} PRIVATE $<$<CONFIG:Release>:-Os> -ffunction-sections)
    foreach(folder ${ROOM_BUT})
      set(fast ${sources})
      list(FILTER fast INCLUDE REGEX /fovea/${name}/${folder}/)
      set_source_files_properties(${fast} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>
        SKIP_PRECOMPILE_HEADERS ON)  # which have the flags of the room
    endforeach()
    fovea_precompile_headers(fovea_${name} small_rooms ${FOVEA_COMMON_HEADERS})
  else()
    fovea_precompile_headers(fovea_${name} rooms ${FOVEA_COMMON_HEADERS})
  endif()
  if(name STREQUAL "task")
    fovea_unity(fovea_task)
  endif()
endfunction()
