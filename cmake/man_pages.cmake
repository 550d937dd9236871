# SPDX-License-Identifier: Apache-2.0
# Target man: build/PRESET/man/PROGRAM.1, made from the help of each program.
set(man_pages)
foreach(program skein skein-actor skein-bench skein-coordinator skein-eval skein-fit skein-learner skein-policy)
  set(page ${PROJECT_BINARY_DIR}/man/${program}.1)
  add_custom_command(OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
    COMMAND $<TARGET_FILE:${program}> --print-man-page > ${page}
    DEPENDS ${program} VERBATIM)
  list(APPEND man_pages ${page})
endforeach()
add_custom_target(man DEPENDS ${man_pages})
