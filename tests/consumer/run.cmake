# SPDX-License-Identifier: Apache-2.0
# Builds tests/consumer/WAY against what BUILD would install, or with SOURCE inside it, and runs it.
set(scratch ${BUILD}/consumer/${WAY})
file(REMOVE_RECURSE ${scratch})

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

if(WAY STREQUAL installed)
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${scratch}/prefix --component attention)
endif()
# With the flags of our own build, so that ccache knows what is compiled once more.
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/${WAY} -B ${scratch}/build -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${scratch}/prefix
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
  -DFOVEA_WARNINGS_ARE_ERRORS=ON -DSOURCE=${SOURCE} -DVERSION=${VERSION})
run(${CMAKE_COMMAND} --build ${scratch}/build)
run(${scratch}/build/consumer)
