# SPDX-License-Identifier: Apache-2.0
# Every library from outside; docs/decisions/dependencies.md says why each is here.
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(Torch REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)

include(cmake/mujoco.cmake)

find_path(HTTPLIB_INCLUDE_DIR httplib.h REQUIRED)
find_library(HTTPLIB_LIBRARY cpp-httplib REQUIRED)
add_library(httplib_external INTERFACE)
target_include_directories(httplib_external SYSTEM INTERFACE ${HTTPLIB_INCLUDE_DIR})
target_link_libraries(httplib_external INTERFACE ${HTTPLIB_LIBRARY} Threads::Threads)

# Torch's headers as system headers, its flags kept off everybody else.
add_library(torch_external INTERFACE)
target_include_directories(torch_external SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(torch_external INTERFACE ${TORCH_LIBRARIES})

if(SKEIN_TESTS)
  find_package(GTest REQUIRED)
endif()
