# SPDX-License-Identifier: Apache-2.0
# One function per kind of target. Sources are always listed.
#   TORCH: the target's sources include Torch; they share one precompiled header.
option(SKEIN_COMPILE_TOGETHER
  "Compile the sources that skein_compile_together() and skein_compile_tests_together() list as one; OFF: each alone" ON)

# Clang 14 cannot read LibTorch 1.13's headers as C++20; sources that include them keep to C++17 for its sake.
function(skein_torch_standard name)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    set_target_properties(${name} PROPERTIES CXX_STANDARD 17)
  endif()
endfunction()

function(_skein_target name)
  cmake_parse_arguments(ARG "TORCH" "" "SRCS;DEPS" ${ARGN})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE skein_warnings)
  if(ARG_TORCH)
    target_link_libraries(${name} PUBLIC torch_external)
    # GCC refuses a precompiled header made with other flags: executables are compiled like libraries (-fPIC, not -fPIE).
    get_target_property(type ${name} TYPE)
    if(type STREQUAL EXECUTABLE)
      set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    endif()
    target_compile_options(${name} PRIVATE -fPIC)
    target_precompile_headers(${name} REUSE_FROM skein_torch_pch)
    skein_torch_standard(${name})
  endif()
endfunction()

function(skein_library name)
  cmake_parse_arguments(ARG "TORCH" "" "SRCS;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SRCS})
  _skein_target(${name} ${ARGN})
endfunction()

# Compiles sources of a target as one, GROUP of them: what their third-party headers hold is read once and, where it is
# inline, compiled once. For targets without arithmetic. Two sources of a group must not define the same name.
function(skein_compile_together name group)
  if(NOT SKEIN_COMPILE_TOGETHER)
    return()
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${group})
endfunction()

# Debian's Abseil is built without ThreadSanitizer, which would not see its locks.
function(_skein_tell_tsan name)
  if(SKEIN_SANITIZE STREQUAL thread)
    target_link_libraries(${name} PRIVATE skein_tsan_mutex)
  endif()
endfunction()

function(skein_binary name)
  cmake_parse_arguments(ARG "TORCH" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  _skein_target(${name} ${ARGN})
  _skein_tell_tsan(${name})
endfunction()

# A library that only tests use: compiled as they are.
function(skein_test_library name)
  skein_library(${name} ${ARGN})
  _skein_compile_as_test(${name})
  target_precompile_headers(${name} REUSE_FROM skein_test_pch)
endfunction()

# Tests of one folder are one program, build/PRESET/tests/FOLDER_tests, so that few programs are linked; each skein_test()
# is a group of its sources: one ctest test, which runs the tests that these sources define (tests/testing/main.cc).
#   LABEL: unit (default), integration or slow.  TIMEOUT: seconds.  ENVIRONMENT: of the ctest test.
#   ALONE: a program NAMEs for this group only, because it replaces what the others of its folder share.
# A source without tests that several groups list is compiled for the first of them.
function(skein_test name)
  cmake_parse_arguments(ARG "TORCH;ALONE" "LABEL;TIMEOUT" "SRCS;DEPS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  if(SKEIN_SANITIZE)  # Instrumented code takes a few times as long.
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  set(torch)
  if(ARG_TORCH)
    set(torch TORCH)
  endif()

  file(RELATIVE_PATH program ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE / _ program ${program}_tests)
  if(ARG_ALONE)
    set(program ${name}s)
  endif()
  if(NOT TARGET ${program})
    add_executable(${program} $<TARGET_OBJECTS:skein_test_main>)
    target_link_libraries(${program} PRIVATE GTest::gmock)
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    _skein_tell_tsan(${program})
  endif()

  set(sources)
  set(files)
  get_target_property(shared ${program} SKEIN_SHARED_SOURCES)
  foreach(source ${ARG_SRCS})
    file(REAL_PATH ${source} source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    if(source MATCHES "_test\\.cc$")
      file(RELATIVE_PATH file ${PROJECT_SOURCE_DIR}/tests ${source})
      list(APPEND files ${file})
      set_property(GLOBAL APPEND PROPERTY SKEIN_TEST_SOURCES ${source})
    elseif(source IN_LIST shared)
      continue()
    else()
      set_property(TARGET ${program} APPEND PROPERTY SKEIN_SHARED_SOURCES ${source})
    endif()
    list(APPEND sources ${source})
    if(NOT ARG_ALONE)
      set_property(GLOBAL PROPERTY "SKEIN_GROUP ${program} ${source}" ${name})
    endif()
  endforeach()
  list(JOIN files , files)

  add_library(${name} OBJECT ${sources})
  _skein_target(${name} ${torch} SRCS ${sources} DEPS ${ARG_DEPS} GTest::gmock GTest::gtest)
  if(ARG_TORCH)  # Torch's precompiled header is one for -O2, and GCC takes it with any other -O but -O0.
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  else()
    _skein_compile_as_test(${name})
    target_precompile_headers(${name} REUSE_FROM skein_test_pch)
  endif()
  target_link_libraries(${program} PRIVATE ${name})
  cmake_language(EVAL CODE "cmake_language(DEFER CALL _skein_depend_like ${program} ${name})")
  add_test(NAME ${name} COMMAND ${program} --files=${files} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "SKEIN_BIN=${CMAKE_BINARY_DIR};${ARG_ENVIRONMENT}")
endfunction()

# Compiles these sources of tests/FOLDER as one, in the first one's group: what they include is read once. They are all
# with TORCH or all without, and no two of them define the same name. What this build has no group of, because it is of
# the core only, is left out. Not CMake's unity build: that includes by absolute paths, which __FILE__ of each test
# would repeat, and ccache would find nothing that another checkout compiled.
function(skein_compile_tests_together folder)
  if(NOT SKEIN_COMPILE_TOGETHER)
    return()
  endif()
  string(REPLACE / _ program ${folder}_tests)
  set(first)
  set(libraries)
  set(definitions)
  foreach(name ${ARGN})
    file(REAL_PATH ${name} source BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/${folder})
    file(RELATIVE_PATH file ${PROJECT_SOURCE_DIR} ${source})
    if(NOT EXISTS ${source})
      message(FATAL_ERROR "${file}, listed in tests/together.cmake, does not exist")
    endif()
    get_property(group GLOBAL PROPERTY "SKEIN_GROUP ${program} ${source}")
    if(NOT group)
      continue()
    endif()
    if(NOT first)
      set(first ${group})
      string(REGEX REPLACE "\\.cc$" "_and_others.cc" together ${PROJECT_BINARY_DIR}/${file})
      set(text "// Made by skein_compile_tests_together().\n")
    endif()
    get_target_property(more ${group} LINK_LIBRARIES)
    list(APPEND libraries ${more})
    get_target_property(more ${group} COMPILE_DEFINITIONS)
    if(more)
      list(APPEND definitions ${more})
    endif()
    set_source_files_properties(${source} TARGET_DIRECTORY ${group} PROPERTIES HEADER_FILE_ONLY ON)
    string(APPEND text "#include \"${file}\"\n")
  endforeach()
  if(first)
    file(CONFIGURE OUTPUT ${together} CONTENT "${text}")  # Written only if it differs.
    target_sources(${first} PRIVATE ${together})
    list(REMOVE_DUPLICATES libraries)
    list(REMOVE_DUPLICATES definitions)
    set_target_properties(${first} PROPERTIES LINK_LIBRARIES "${libraries}" COMPILE_DEFINITIONS "${definitions}")
  endif()
endfunction()

# add_dependencies() of a group are meant for when its tests run: they are its program's, too.
function(_skein_depend_like program name)
  get_target_property(needed ${name} MANUALLY_ADDED_DEPENDENCIES)
  if(needed)
    add_dependencies(${program} ${needed})
  endif()
endfunction()

# What tests look for does not depend on how fast they are themselves: -O0 takes half the time to compile that -O2 takes.
# Of functions that come out of a precompiled header GCC 12 forgets that they are the system's, and warns falsely.
function(_skein_compile_as_test name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${name} PRIVATE
      -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()

# A *_test.cc that no target builds looks alive and is dead: refuse to configure.
function(skein_require_all_tests_built)
  get_property(built GLOBAL PROPERTY SKEIN_TEST_SOURCES)
  file(GLOB_RECURSE found ${PROJECT_SOURCE_DIR}/tests/*_test.cc)
  foreach(source ${found})
    if(NOT source IN_LIST built)
      message(FATAL_ERROR "${source} is built by no target: add it with skein_test()")
    endif()
  endforeach()
endfunction()
