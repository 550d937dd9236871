# SPDX-License-Identifier: Apache-2.0
# Defines torch_external: Torch's headers as system headers, its libraries, its flags kept off everybody else. A Torch under
# CMAKE_PREFIX_PATH is taken as it lies, else the system's, else .deps/torch, which scripts/fetch_torch.sh makes.
# docs/decisions/core-only-builds.md
# Definitions on it, the first also a variable here:
#   SKEIN_CUDA: this Torch is one for CUDA.   USE_C10D_NCCL: and there is NCCL, with its header.
set(torch_root)
foreach(prefix ${CMAKE_PREFIX_PATH} $ENV{CMAKE_PREFIX_PATH} ${Torch_DIR}/../..)
  foreach(folder ${prefix} ${prefix}/../..)  # torch.utils.cmake_prefix_path is torch/share/cmake.
    if(NOT torch_root AND EXISTS ${folder}/lib/libtorch_cpu.so AND EXISTS ${folder}/include/ATen)
      file(REAL_PATH ${folder} torch_root)
    endif()
  endforeach()
endforeach()

if(NOT torch_root)
  find_package(Torch 1.13 QUIET)
  if(NOT Torch_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.deps/torch/lib/libtorch_cpu.so)
    set(torch_root ${PROJECT_SOURCE_DIR}/.deps/torch)
  elseif(NOT Torch_FOUND)
    message(FATAL_ERROR "Skein needs LibTorch, 1.13 or newer: libtorch-dev, or scripts/fetch_torch.sh, or a Torch's folder in "
      "CMAKE_PREFIX_PATH (docs/cuda.md)")
  endif()
endif()

add_library(torch_external INTERFACE)
if(NOT torch_root)
  target_include_directories(torch_external SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(torch_external INTERFACE ${TORCH_LIBRARIES})
  if(TARGET torch_cuda)
    set(SKEIN_CUDA ON)
    target_compile_definitions(torch_external INTERFACE SKEIN_CUDA)
  endif()
  message(STATUS "LibTorch ${Torch_VERSION}: the system's")
  return()
endif()

# The wheel's include folder has a Protobuf and a fmt of other versions than ours in it: everything but those.
set(torch_include ${CMAKE_BINARY_DIR}/torch_include)
file(MAKE_DIRECTORY ${torch_include})
file(GLOB entries RELATIVE ${torch_root}/include ${torch_root}/include/*)
list(REMOVE_ITEM entries google)
if(TARGET fmt::fmt)  # Else spdlog brings its own, under another name.
  list(REMOVE_ITEM entries fmt)
endif()
foreach(entry ${entries})
  file(CREATE_LINK ${torch_root}/include/${entry} ${torch_include}/${entry} SYMBOLIC)
endforeach()
target_include_directories(torch_external SYSTEM INTERFACE ${torch_include} ${torch_include}/torch/csrc/api/include)
target_compile_definitions(torch_external INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)

# The wheel has Gloo inside and c10d's header for it, but not Gloo's own headers.
if(NOT EXISTS ${torch_root}/include/gloo)
  foreach(header algorithm common/error context rendezvous/store transport/device)
    configure_file(cmake/gloo_declarations.h.in ${CMAKE_BINARY_DIR}/gloo_declarations/gloo/${header}.h COPYONLY)
  endforeach()
  target_include_directories(torch_external SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/gloo_declarations)
endif()

# Nobody names a symbol of libtorch_cuda: it must be loaded all the same, to register CUDA.
target_link_options(torch_external INTERFACE LINKER:--no-as-needed)
# The wheel's libraries export a part of their own C++ library, which does not work alone: ours comes first.
target_link_libraries(torch_external INTERFACE
  stdc++ ${torch_root}/lib/libtorch_cpu.so ${torch_root}/lib/libc10.so)
set(cuda "without CUDA")
if(EXISTS ${torch_root}/lib/libtorch_cuda.so)
  # Headers from a toolkit or, where they are complete, from the wheels beside Torch. No compiler for the GPU is needed.
  get_filename_component(packages ${torch_root} DIRECTORY)
  file(GLOB wheel_includes ${packages}/nvidia/*/include)
  file(GLOB wheel_libraries ${packages}/nvidia/*/lib)
  find_program(nvcc nvcc HINTS $ENV{CUDA_HOME}/bin PATHS /usr/local/cuda/bin NO_CACHE)
  set(toolkits $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda)
  if(nvcc)
    file(REAL_PATH ${nvcc} nvcc)
    cmake_path(GET nvcc PARENT_PATH nvcc)
    list(APPEND toolkits ${nvcc}/..)
  endif()
  find_path(cuda_include crt/host_config.h HINTS ${wheel_includes} PATHS ${toolkits} PATH_SUFFIXES include NO_CACHE)
  find_path(nccl_include nccl.h HINTS ${wheel_includes} PATHS ${toolkits} PATH_SUFFIXES include NO_CACHE)
  file(GLOB cudart ${packages}/nvidia/*/lib/libcudart.so.*)
  if(NOT cudart)
    find_library(cudart cudart HINTS ${toolkits} PATH_SUFFIXES lib64 lib NO_CACHE)
  endif()
  if(NOT cuda_include OR NOT cudart)
    message(FATAL_ERROR "${torch_root} is a Torch for CUDA; there is no crt/host_config.h or no libcudart, neither in "
      "${packages}/nvidia nor in CUDA_HOME or /usr/local/cuda. Install the toolkit of that CUDA (its compiler is not needed), "
      "or beside Torch with pip: nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl")
  endif()
  target_include_directories(torch_external SYSTEM INTERFACE ${cuda_include} ${cuda_include}/cccl ${wheel_includes})
  set(SKEIN_CUDA ON)
  target_compile_definitions(torch_external INTERFACE SKEIN_CUDA)
  target_link_libraries(torch_external INTERFACE
    ${torch_root}/lib/libtorch_cuda.so ${torch_root}/lib/libc10_cuda.so ${cudart})
  foreach(folder ${wheel_libraries})
    target_link_options(torch_external INTERFACE LINKER:-rpath-link,${folder})
  endforeach()
  set(cuda "CUDA without NCCL")
  if(nccl_include)
    target_include_directories(torch_external SYSTEM INTERFACE ${nccl_include})
    target_compile_definitions(torch_external INTERFACE USE_C10D_NCCL)
    set(cuda "CUDA and NCCL")
  endif()
endif()
file(GLOB_RECURSE version_files ${torch_root}/include/torch/*/version.h)
set(torch_version)
foreach(part MAJOR MINOR PATCH)
  foreach(file ${version_files})
    file(STRINGS ${file} line REGEX "define TORCH_VERSION_${part} [0-9]+" LIMIT_COUNT 1)
    if(line)
      string(REGEX REPLACE ".* " "" line "${line}")
      list(APPEND torch_version ${line})
      break()
    endif()
  endforeach()
endforeach()
list(JOIN torch_version . torch_version)
message(STATUS "LibTorch ${torch_version}, ${cuda}: ${torch_root}")
