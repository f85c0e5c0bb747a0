# `cmake --install`: the chess library for other programs, which find it by find_package(tahl) as tahl::chess.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Headers behave by the instruction set they are compiled for (chess/sliders.h, chess/lines.h), and a program in which they do so
# in two ways breaks the one-definition rule. So users compile as the library was: its -march comes with it. Warnings do not.
target_compile_features(tahl_chess PUBLIC cxx_std_20)
target_include_directories(tahl_chess INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tahl>)
target_compile_options(tahl_chess INTERFACE
  $<INSTALL_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-march=${TAHL_ARCH}>>)
if(TAHL_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tahl_chess PRIVATE -ffat-lto-objects) # for users whose compiler reads only ordinary ones
endif()
set_target_properties(tahl_chess PROPERTIES EXPORT_NAME chess)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tahl)
install(TARGETS tahl_chess EXPORT tahl-targets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/chess DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tahl
        FILES_MATCHING PATTERN *.h PATTERN *_impl.h EXCLUDE) # parts of .cpp files, included once
install(EXPORT tahl-targets NAMESPACE tahl:: DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tahl-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/tahl-config.cmake ${PROJECT_BINARY_DIR}/tahl-config-version.cmake DESTINATION ${package})
