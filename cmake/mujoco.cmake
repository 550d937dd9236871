# SPDX-License-Identifier: Apache-2.0
# Defines mujoco_external: headers and library of the MuJoCo that SKEIN_MUJOCO chooses; or else adds it to the list
# `absent`. docs/decisions/mujoco-build.md
set(SKEIN_MUJOCO auto CACHE STRING
  "auto (.deps/mujoco, which scripts/fetch_mujoco.sh makes, or else the system's), system, or a folder")

if(SKEIN_MUJOCO STREQUAL auto AND EXISTS ${PROJECT_SOURCE_DIR}/.deps/mujoco/include/mujoco/mujoco.h)
  set(mujoco_folder ${PROJECT_SOURCE_DIR}/.deps/mujoco)
elseif(SKEIN_MUJOCO MATCHES "^(auto|system)$")
  set(mujoco_folder)
else()
  get_filename_component(mujoco_folder "${SKEIN_MUJOCO}" ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
endif()

if(mujoco_folder)
  # An official release: its library may have no name without a version.
  file(REAL_PATH ${mujoco_folder} mujoco_folder)
  set(mujoco_include ${mujoco_folder}/include)
  file(GLOB mujoco_libraries ${mujoco_folder}/lib/libmujoco.so* ${mujoco_folder}/libmujoco.so*)
  if(NOT EXISTS ${mujoco_include}/mujoco/mujoco.h OR NOT mujoco_libraries)
    message(FATAL_ERROR "SKEIN_MUJOCO=${SKEIN_MUJOCO}: no include/mujoco/mujoco.h and lib/libmujoco.so* in ${mujoco_folder}")
  endif()
  list(GET mujoco_libraries 0 mujoco_library)
else()
  find_path(mujoco_include mujoco/mujoco.h NO_CACHE)
  find_library(mujoco_library mujoco NO_CACHE)
  if(NOT mujoco_include OR NOT mujoco_library)
    list(APPEND absent libmujoco-dev)
    return()
  endif()
endif()

add_library(mujoco_library SHARED IMPORTED)
set_target_properties(mujoco_library PROPERTIES IMPORTED_LOCATION ${mujoco_library})
add_library(mujoco_external INTERFACE)
target_include_directories(mujoco_external SYSTEM INTERFACE ${mujoco_include})
target_link_libraries(mujoco_external INTERFACE mujoco_library)

file(REAL_PATH ${mujoco_library} mujoco_version)
string(REGEX REPLACE ".*libmujoco\\.so\\.?" "" mujoco_version ${mujoco_version})
message(STATUS "MuJoCo ${mujoco_version}: ${mujoco_library}")
