# What `cmake --install` puts where: the command, the library with its public headers, a CMake
# package for find_package(kiln), and kiln.pc for pkg-config.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# Headers alone, for other people's CUDA sources and the layout algebra.
add_library(kiln_device INTERFACE)
add_library(kiln::device ALIAS kiln_device)
set_target_properties(kiln_device PROPERTIES EXPORT_NAME device)
target_compile_features(kiln_device INTERFACE cxx_std_20)
target_include_directories(kiln_device INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# kiln::kiln is the library. Projects that have kiln's sources as a folder of theirs use the same names.
set_target_properties(kiln PROPERTIES EXPORT_NAME command)
add_executable(kiln::command ALIAS kiln)
include(${CMAKE_CURRENT_LIST_DIR}/kilnAddKernels.cmake)
install(TARGETS kiln kiln_shared kiln_device EXPORT kilnTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kiln DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
install(EXPORT kilnTargets NAMESPACE kiln:: DESTINATION ${package_dir})
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/kilnConfig.cmake.in ${PROJECT_BINARY_DIR}/kilnConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/kilnConfig.cmake ${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/kilnAddKernels.cmake
  ${CMAKE_CURRENT_LIST_DIR}/kilnCheckNames.cmake
  DESTINATION ${package_dir})

# The same for pkg-config; the prefix is where the file lies, so that the folder can be moved.
file(RELATIVE_PATH KILN_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(KILN_PC_DESCRIPTION "products of matrices; a compiler of tile kernels and its simulator")
configure_file(${CMAKE_CURRENT_LIST_DIR}/kiln.pc.in ${PROJECT_BINARY_DIR}/kiln.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kiln.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
