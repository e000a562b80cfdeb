# Installation. Everything finds the rest from where it lies itself, so that an installed tree can be moved.
#   include/             the public headers, for C, C++ and CUDA
#   lib/                 libweft.so, libweft.a; pkgconfig/weft.pc; cmake/weft, for find_package(weft): weft::weft, weft::static
#   bin/                 the tools
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh" PATTERN "weft_sim.h" EXCLUDE)
install(TARGETS weft weft_static EXPORT weft
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ${weft_tools} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

set(weft_package ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
install(EXPORT weft NAMESPACE weft:: FILE weftTargets.cmake DESTINATION ${weft_package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/weftConfig.cmake.in ${PROJECT_BINARY_DIR}/weftConfig.cmake
    INSTALL_DESTINATION ${weft_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weftConfig.cmake ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake
    DESTINATION ${weft_package})

# Directories given absolutely stay so; others are relative to where weft.pc lies.
foreach(kind LIBDIR INCLUDEDIR)
    set(weft_pc_${kind} ${CMAKE_INSTALL_${kind}})
    if(NOT IS_ABSOLUTE ${weft_pc_${kind}})
        set(weft_pc_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
    endif()
endforeach()
set(weft_pc_prefix ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    file(RELATIVE_PATH weft_pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    string(REGEX REPLACE "/$" "" weft_pc_up ${weft_pc_up})
    set(weft_pc_prefix "\${pcfiledir}/${weft_pc_up}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/weft.pc.in ${PROJECT_BINARY_DIR}/weft.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weft.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# `product` builds what is installed.
add_custom_target(product DEPENDS weft weft_static ${weft_tools})
