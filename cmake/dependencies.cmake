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

find_path(MUJOCO_INCLUDE_DIR mujoco/mujoco.h REQUIRED)
find_library(MUJOCO_LIBRARY mujoco REQUIRED)
add_library(mujoco_external INTERFACE)
target_include_directories(mujoco_external SYSTEM INTERFACE ${MUJOCO_INCLUDE_DIR})
target_link_libraries(mujoco_external INTERFACE ${MUJOCO_LIBRARY})

find_path(CIVETWEB_INCLUDE_DIR CivetServer.h REQUIRED)
find_library(CIVETWEB_LIBRARY civetweb REQUIRED)
find_library(CIVETWEB_CPP_LIBRARY civetweb-cpp REQUIRED)
add_library(civetweb_external INTERFACE)
target_include_directories(civetweb_external SYSTEM INTERFACE ${CIVETWEB_INCLUDE_DIR})
target_link_libraries(civetweb_external INTERFACE ${CIVETWEB_CPP_LIBRARY} ${CIVETWEB_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})

# Torch's headers as system headers, its flags kept off everybody else.
add_library(torch_external INTERFACE)
target_include_directories(torch_external SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(torch_external INTERFACE ${TORCH_LIBRARIES})

if(SKEIN_TESTS)
  find_package(GTest REQUIRED)
endif()
