# SPDX-License-Identifier: Apache-2.0
# What an installation runs: `command` writes its manual pages and completions into the folders `man`
# and `data`, where man and the shells look for them.
foreach(folder man data)
  if(NOT IS_ABSOLUTE ${${folder}})
    set(${folder} ${CMAKE_INSTALL_PREFIX}/${${folder}})
  endif()
  set(${folder} $ENV{DESTDIR}${${folder}})
endforeach()

execute_process(COMMAND ${command} man -o ${man}/man1 COMMAND_ERROR_IS_FATAL ANY)
foreach(file bash:bash-completion/completions/fovea zsh:zsh/site-functions/_fovea
    fish:fish/vendor_completions.d/fovea.fish)
  string(REGEX MATCH "^([a-z]+):(.*)/" matched ${file})
  set(shell ${CMAKE_MATCH_1})
  file(MAKE_DIRECTORY ${data}/${CMAKE_MATCH_2})
  string(REGEX REPLACE "^[a-z]+:" "" file ${file})
  execute_process(COMMAND ${command} completion ${shell} OUTPUT_FILE ${data}/${file}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
