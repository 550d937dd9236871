# SPDX-License-Identifier: Apache-2.0
# Two uses. Included: adds the library skein_build_info, whose one source is written again when the commit changes.
# As a script (cmake -P, with SOURCE, OUTPUT, VERSION and COMMIT): writes that source, if it differs from what is there.
if(CMAKE_SCRIPT_MODE_FILE)
  if(NOT COMMIT)
    execute_process(COMMAND git rev-parse --short=12 HEAD WORKING_DIRECTORY ${SOURCE}
      OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(failed)
      set(COMMIT unknown)
    endif()
  endif()
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
// Written by cmake/build_info.cmake.
#include "base/process/build_info.h"

namespace skein {
const char* BuildVersion() { return "@VERSION@"; }
const char* BuildCommit() { return "@COMMIT@"; }
}  // namespace skein
]] @ONLY)
  return()
endif()

set(SKEIN_COMMIT "" CACHE STRING "The commit that --version prints; empty = what git says of the sources")
# Git appends to this file when HEAD moves. Without git there is none, and the commit is unknown.
execute_process(COMMAND git rev-parse --git-path logs/HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  OUTPUT_VARIABLE head_log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(head_log)
  file(REAL_PATH ${head_log} head_log BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT EXISTS ${head_log})
    set(head_log)
  endif()
endif()
set(build_info ${PROJECT_BINARY_DIR}/generated/build_info.cc)
add_custom_command(OUTPUT ${build_info}
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${build_info} -DVERSION=${PROJECT_VERSION}
    -DCOMMIT=${SKEIN_COMMIT} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${CMAKE_CURRENT_LIST_FILE} ${head_log} VERBATIM)
skein_library(skein_build_info SRCS ${build_info})
