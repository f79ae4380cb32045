# SPDX-License-Identifier: Apache-2.0
# What an installation runs: FOVEA_COMMAND writes its manual pages and completions into the folders
# FOVEA_MAN and FOVEA_DATA, where man and the shells look for them.
foreach(folder FOVEA_MAN FOVEA_DATA)
  if(NOT IS_ABSOLUTE ${${folder}})
    set(${folder} ${CMAKE_INSTALL_PREFIX}/${${folder}})
  endif()
  set(${folder} $ENV{DESTDIR}${${folder}})
endforeach()

set(ENV{FOVEA_LANG} en)  # what is installed is for all users
execute_process(COMMAND ${FOVEA_COMMAND} man -o ${FOVEA_MAN}/man1 COMMAND_ERROR_IS_FATAL ANY)
foreach(file bash:bash-completion/completions/fovea zsh:zsh/site-functions/_fovea
    fish:fish/vendor_completions.d/fovea.fish)
  string(REGEX MATCH "^([a-z]+):(.*)/" matched ${file})
  set(shell ${CMAKE_MATCH_1})
  file(MAKE_DIRECTORY ${FOVEA_DATA}/${CMAKE_MATCH_2})
  string(REGEX REPLACE "^[a-z]+:" "" file ${file})
  execute_process(COMMAND ${FOVEA_COMMAND} completion ${shell} OUTPUT_FILE ${FOVEA_DATA}/${file}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
