# SPDX-License-Identifier: Apache-2.0
# What `make install` puts under PREFIX: programs, headers for users with a CMake package, the Python package for
# environments, man pages, completion, configs, licences. Libraries are the system's, but for a MuJoCo of our own. Man pages and completion are of the targets man and
# completion.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(programs skein skein-actor skein-bench skein-coordinator skein-eval skein-fit skein-learner skein-policy)
set_target_properties(${programs} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/skein")
install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(mujoco_folder)
  install(FILES ${mujoco_library} DESTINATION ${CMAKE_INSTALL_LIBDIR}/skein)
  file(GLOB mujoco_licences ${mujoco_folder}/LICENSE*)
  install(FILES ${mujoco_licences} DESTINATION ${CMAKE_INSTALL_DOCDIR}/mujoco)
endif()

# What python: environments are served by.
install(DIRECTORY python/skein_env DESTINATION ${CMAKE_INSTALL_DATADIR}/skein/python
  FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)

# Headers that users compile against: all that is in include/.
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} OPTIONAL FILES_MATCHING PATTERN "*.h")
configure_package_config_file(cmake/skein-config.cmake.in ${PROJECT_BINARY_DIR}/package/skein-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/skein
  PATH_VARS CMAKE_INSTALL_BINDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/skein-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/skein-config.cmake ${PROJECT_BINARY_DIR}/package/skein-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/skein)

set(completion ${PROJECT_BINARY_DIR}/completion)
add_custom_command(OUTPUT ${completion}/skein ${completion}/_skein ${completion}/skein.fish
  COMMAND ${CMAKE_COMMAND} -E make_directory ${completion}
  COMMAND $<TARGET_FILE:skein> completion bash > ${completion}/skein
  COMMAND $<TARGET_FILE:skein> completion zsh > ${completion}/_skein
  COMMAND $<TARGET_FILE:skein> completion fish > ${completion}/skein.fish
  DEPENDS skein ${programs} VERBATIM)
add_custom_target(completion DEPENDS ${completion}/skein ${completion}/_skein ${completion}/skein.fish)
install(FILES ${completion}/skein DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${completion}/_skein DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${completion}/skein.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
foreach(program ${programs})
  install(FILES ${PROJECT_BINARY_DIR}/man/${program}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endforeach()
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/skein FILES_MATCHING PATTERN "*.yaml")
install(FILES LICENSE NOTICE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES third_party/uplot/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}/uplot)
