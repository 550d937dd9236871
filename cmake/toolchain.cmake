# SPDX-License-Identifier: Apache-2.0
# Language level, warnings and sanitizers for our own targets (through skein_warnings), and ccache where present.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

# Everywhere, not only where a library asks for it, so that what is compiled with and without gRPC is compiled alike.
add_compile_options(-pthread)

# From 13 on GCC makes some sums of products without fused multiply-adds, others with: rows of a product would then have
# other bits in tiles of another height (policy/dense_kernels.cc). 0: it fuses all, as 12 does.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  add_compile_options(--param=avoid-fma-max-bits=0)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Below CCACHE_BASEDIR paths are hashed as seen from the build folder: another checkout, and another preset where it
  # compiles the same, finds what this one compiled. Precompiled headers are only cached when ccache may trust their
  # timestamps.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
endif()

# What compilers that nobody here has tried warn about must not stop a build.
set(werror OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\."
    OR CMAKE_CXX_COMPILER_ID MATCHES Clang AND CMAKE_CXX_COMPILER_VERSION MATCHES "^14\\.")
  set(werror ON)
endif()
option(SKEIN_WERROR "Warnings are errors; by default with GCC 12 and Clang 14" ${werror})

add_library(skein_warnings INTERFACE)
target_compile_options(skein_warnings INTERFACE -Wall -Wextra $<$<BOOL:${SKEIN_WERROR}>:-Werror> -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(skein_warnings INTERFACE -Wthread-safety -Wthread-safety-beta)
  # A precompiled header without times in it, so that what was compiled with its like is found again by ccache.
  target_compile_options(skein_warnings INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
else()
  # GCC 12 reports false positives of these inside the standard library and Torch at -O2.
  target_compile_options(skein_warnings INTERFACE -fpch-preprocess -Wno-maybe-uninitialized -Wno-dangling-pointer)
endif()

if(SKEIN_SANITIZE)  # Names and lines are enough of debug information; with all of it programs with Torch take long to link.
  add_compile_options(-O1 -g1 -fno-omit-frame-pointer -fsanitize=${SKEIN_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SKEIN_SANITIZE})
  add_compile_definitions(SKEIN_SANITIZED)  # The compiler's own macros say so of some sanitizers only.
  # Protobuf's headers lay map fields out differently where they see this, and Debian's library was built without.
  if(SKEIN_SANITIZE STREQUAL thread)
    add_compile_options(-U__SANITIZE_THREAD__)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND SKEIN_SANITIZE MATCHES undefined)
    add_link_options(-static-libubsan)  # As a library of its own beside ASan's it does not heed log_path.
  endif()
endif()
if(SKEIN_FUZZ)  # Clang: everything tells libFuzzer what it ran.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
