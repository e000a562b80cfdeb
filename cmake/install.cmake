# Installation. Everything finds the rest from where it lies itself, so that an installed tree can be moved.
#   include/             the public headers, for C, C++ and CUDA; OpenSHMEM's; nccl_ep/, NCCL EP's;
#                        nvte_ep/, TransformerEngine's calls of expert parallelism
#   lib/                 libweft.so, libweft.a, libweft_sim.a, libweft_shmem.so, libweft_shmem.a; pkgconfig/weft.pc,
#                        weft_sim.pc, weft_shmem.pc; cmake/weft, for find_package(weft): weft::weft, weft::static,
#                        weft::sim, weft::shmem, weft::shmem_static, weft::nccl_ep, weft::nccl_ep_static;
#                        libweft_nccl_ep.so and .a, and nccl_ep/, the same as libnccl_ep.so.0 and libnccl_ep.a;
#                        libweft_nvte_ep.so and .a, weft::nvte_ep, weft::nvte_ep_static; a .pc of either
#   lib/weft/nvshmem/    the NVSHMEM interface, by itself: include, lib, lib/pkgconfig, lib/cmake/nvshmem
#   bin/                 the tools, and those of OpenSHMEM
#   share/man/           a page for each tool, header and function
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(cmake/osh.cmake)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")
set(weft_libraries weft weft_static weft_sim)
if(TARGET weft_shmem)
    list(APPEND weft_libraries weft_shmem weft_shmem_static)
    foreach(header IN LISTS weft_shmem_headers)
        file(RELATIVE_PATH place ${weft_shmem_include} ${header})
        get_filename_component(place ${place} DIRECTORY)
        install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${place})
    endforeach()
endif()
install(TARGETS ${weft_libraries} EXPORT weft
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET weft_nccl_ep)
    list(APPEND weft_libraries weft_nccl_ep weft_nccl_ep_static nccl_ep nccl_ep_static)
    install(DIRECTORY ${weft_nccl_ep_include}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nccl_ep)
    install(TARGETS weft_nccl_ep weft_nccl_ep_static EXPORT weft
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(TARGETS nccl_ep nccl_ep_static EXPORT weft
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/nccl_ep ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/nccl_ep)
endif()
if(TARGET weft_nvte_ep)
    list(APPEND weft_libraries weft_nvte_ep weft_nvte_ep_static)
    install(DIRECTORY ${weft_nvte_ep_include}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nvte_ep)
    install(TARGETS weft_nvte_ep weft_nvte_ep_static EXPORT weft
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET weft_shmem)
    set_target_properties(weft_shmem PROPERTIES INSTALL_RPATH "\$ORIGIN") # where libweft.so lies, too
    install(DIRECTORY ${PROJECT_BINARY_DIR}/osh/ DESTINATION ${CMAKE_INSTALL_BINDIR} USE_SOURCE_PERMISSIONS)
endif()
if(TARGET nvshmem_host)
    set(weft_nvshmem_place ${CMAKE_INSTALL_LIBDIR}/weft/nvshmem)
    install(TARGETS nvshmem_host LIBRARY DESTINATION ${weft_nvshmem_place}/lib)
    install(TARGETS nvshmem_device ARCHIVE DESTINATION ${weft_nvshmem_place}/lib)
    install(FILES ${weft_nvshmem_home}/lib/libnvshmem.so DESTINATION ${weft_nvshmem_place}/lib)
    install(DIRECTORY ${weft_nvshmem_home}/lib/cmake ${weft_nvshmem_home}/lib/pkgconfig DESTINATION ${weft_nvshmem_place}/lib)
    install(DIRECTORY ${weft_nvshmem_include} DESTINATION ${weft_nvshmem_place})
    if(weft_nvshmem_bitcode)
        install(FILES ${weft_nvshmem_bitcode} DESTINATION ${weft_nvshmem_place}/lib)
    endif()
    list(APPEND weft_libraries nvshmem_host nvshmem_device)
endif()
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
configure_file(${PROJECT_SOURCE_DIR}/cmake/weft_sim.pc.in ${PROJECT_BINARY_DIR}/weft_sim.pc @ONLY)
if(TARGET weft_shmem)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/weft_shmem.pc.in ${PROJECT_BINARY_DIR}/weft_shmem.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/weft_shmem.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
foreach(weft_face nccl_ep nvte_ep)
    set(weft_face_text "NCCL EP's interface on weft")
    if(weft_face STREQUAL nvte_ep)
        set(weft_face_text "TransformerEngine's calls of expert parallelism on weft")
    endif()
    configure_file(${PROJECT_SOURCE_DIR}/cmake/face.pc.in ${PROJECT_BINARY_DIR}/weft_${weft_face}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/weft_${weft_face}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/weft.pc ${PROJECT_BINARY_DIR}/weft_sim.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# `product` builds what is installed.
add_custom_target(product DEPENDS ${weft_libraries} ${weft_tools})

# Manual pages, from the headers and from what the tools print for --help.
if(NOT Python3_FOUND)
    message(STATUS "weft: no python3, so the manual pages are left out")
    return()
endif()
set(weft_man ${PROJECT_BINARY_DIR}/man)
set(weft_man_script ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/man.py)
set(weft_man_commands "")
set(weft_man_scripts ${weft_osh_commands})
list(TRANSFORM weft_man_scripts PREPEND ${PROJECT_BINARY_DIR}/)
if(NOT CMAKE_CROSSCOMPILING)
    foreach(tool ${weft_tools})
        list(APPEND weft_man_commands
            COMMAND ${weft_man_script} command $<TARGET_FILE:${tool}> ${weft_man}/man1 ${PROJECT_VERSION})
    endforeach()
    foreach(command ${weft_osh_commands})
        list(APPEND weft_man_commands
            COMMAND ${weft_man_script} command ${PROJECT_BINARY_DIR}/${command} ${weft_man}/man1 ${PROJECT_VERSION})
    endforeach()
endif()
file(GLOB_RECURSE weft_man_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.h ${PROJECT_SOURCE_DIR}/include/*.cuh)
add_custom_command(OUTPUT ${weft_man}/made
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${weft_man}
    COMMAND ${CMAKE_COMMAND} -E env CC=${CMAKE_C_COMPILER}
        ${weft_man_script} headers ${PROJECT_SOURCE_DIR}/include ${weft_man}/man3 ${PROJECT_VERSION}
    ${weft_man_commands}
    COMMAND ${CMAKE_COMMAND} -E touch ${weft_man}/made
    DEPENDS ${PROJECT_SOURCE_DIR}/scripts/man.py ${PROJECT_SOURCE_DIR}/scripts/public_api.py ${weft_man_headers} ${weft_tools}
        ${weft_man_scripts}
    VERBATIM)
add_custom_target(man ALL DEPENDS ${weft_man}/made)
add_dependencies(product man)
install(DIRECTORY ${weft_man}/ DESTINATION ${CMAKE_INSTALL_MANDIR} PATTERN made EXCLUDE)
