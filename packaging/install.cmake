# cmake --install: the libraries, the program, the public headers, and how CMake and pkg-config find them. Everything
# finds its neighbours by relative paths, so the folder may be moved.
include(CMakePackageConfigHelpers)

install(TARGETS kiln kiln_model EXPORT kilnTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS kiln_emulator LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(TARGETS kiln_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
# The pages, in the places that they have in the source, with what they link to; a test follows the links.
set(pages README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md)
list(TRANSFORM pages PREPEND ${PROJECT_SOURCE_DIR}/)
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/examples
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development PATTERN __pycache__ EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/bench/README.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/bench/primitives/passes.txt
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench/primitives COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/calibration/kernels.cu
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/calibration COMPONENT development)

# The manual page and the completions of shells, as the program itself knows its commands.
set(manual_dir ${CMAKE_CURRENT_BINARY_DIR}/manual)
set(manual_files ${manual_dir}/kiln.1 ${manual_dir}/kiln ${manual_dir}/_kiln)
file(MAKE_DIRECTORY ${manual_dir})
add_custom_command(OUTPUT ${manual_files}
  COMMAND kiln_program man > ${manual_dir}/kiln.1
  COMMAND kiln_program completion bash > ${manual_dir}/kiln
  COMMAND kiln_program completion zsh > ${manual_dir}/_kiln
  DEPENDS kiln_program VERBATIM)
add_custom_target(kiln_manual ALL DEPENDS ${manual_files})
install(FILES ${manual_dir}/kiln.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime)
install(FILES ${manual_dir}/kiln DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
install(FILES ${manual_dir}/_kiln DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT runtime)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
install(EXPORT kilnTargets NAMESPACE kiln:: DESTINATION ${config_dir} COMPONENT development)
configure_package_config_file(kilnConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/kilnConfig.cmake
  INSTALL_DESTINATION ${config_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/kilnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/kilnConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/kilnConfigVersion.cmake
  DESTINATION ${config_dir} COMPONENT development)

set(pkgconfig_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH KILN_PREFIX_FROM_PKGCONFIG ${pkgconfig_dir} ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH KILN_LIBDIR_FROM_PREFIX ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH KILN_INCLUDEDIR_FROM_PREFIX ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
foreach(name IN ITEMS kiln kiln_model)
  configure_file(${name}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
