# The NVSHMEM face: libnvshmem_host.so.3, on the public headers of libweft alone, in a folder of its own (nvshmem/ of
# the build directory, lib/weft/nvshmem where weft is installed), which a program names: so nobody gets it who means
# NVIDIA's.
#   nvshmem/include      nvshmem.h, and the names beside it that programs include
#   nvshmem/lib          libnvshmem_host.so.3; libnvshmem_device.a, an archive of nothing: kernels need headers only
#   nvshmem/lib/libnvshmem.so             another name of the host's, for programs that link one library of both parts
#   nvshmem/lib/libnvshmem_device.bc      what kernels call, in LLVM's bitcode, where clang 19 is found
#   nvshmem/lib/cmake/nvshmem, nvshmem/lib/pkgconfig      find_package(NVSHMEM), pkg-config nvshmem
#
# src/faces/nvshmem/generate.py makes the headers and most functions of the tables there.
if(NOT Python3_FOUND)
    message(STATUS "weft: no python3, so the NVSHMEM face is left out")
    return()
endif()

set(weft_nvshmem_source ${PROJECT_SOURCE_DIR}/src/faces/nvshmem)
set(weft_nvshmem_home ${PROJECT_BINARY_DIR}/nvshmem)
set(weft_nvshmem_include ${weft_nvshmem_home}/include)
set(weft_nvshmem_generated ${PROJECT_BINARY_DIR}/generated/nvshmem)
set(weft_nvshmem_generate ${Python3_EXECUTABLE} ${weft_nvshmem_source}/generate.py)
set(weft_nvshmem_tables ${weft_nvshmem_source}/types.table ${weft_nvshmem_source}/routines.table ${weft_nvshmem_source}/generate.py
    ${weft_nvshmem_source}/../tables.py ${weft_nvshmem_source}/nvshmem.h.in ${weft_nvshmem_source}/kernels.cuh.in
    ${weft_nvshmem_source}/macros.h.in ${weft_nvshmem_source}/tensor.h.in)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${weft_nvshmem_source}/routines.table ${weft_nvshmem_source}/generate.py)
foreach(what sections files)
    execute_process(COMMAND ${weft_nvshmem_generate} ${what} OUTPUT_VARIABLE weft_nvshmem_${what} COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "[^\n]+" weft_nvshmem_${what} "${weft_nvshmem_${what}}")
endforeach()

set(weft_nvshmem_headers ${weft_nvshmem_files})
list(TRANSFORM weft_nvshmem_headers PREPEND ${weft_nvshmem_include}/)
set(weft_nvshmem_functions ${weft_nvshmem_sections})
list(TRANSFORM weft_nvshmem_functions REPLACE "(.+)" "${weft_nvshmem_generated}/\\1.c")
file(MAKE_DIRECTORY ${weft_nvshmem_include} ${weft_nvshmem_generated} ${weft_nvshmem_home}/lib)
add_custom_command(OUTPUT ${weft_nvshmem_headers} ${weft_nvshmem_functions} ${weft_nvshmem_generated}/weft_nvshmem_types.h
    COMMAND ${weft_nvshmem_generate} headers ${weft_nvshmem_include}
    COMMAND ${weft_nvshmem_generate} functions ${weft_nvshmem_generated}
    DEPENDS ${weft_nvshmem_tables} VERBATIM)
foreach(header state.h device.cuh) # written by hand
    configure_file(${weft_nvshmem_source}/${header} ${weft_nvshmem_include}/weft_nvshmem/${header} COPYONLY)
endforeach()
# What kernels include of weft's, so that one folder of headers is enough.
file(GLOB weft_nvshmem_device_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
    ${PROJECT_SOURCE_DIR}/include/weft_device.cuh ${PROJECT_SOURCE_DIR}/include/weft/device/*
    ${PROJECT_SOURCE_DIR}/include/weft/compare.h ${PROJECT_SOURCE_DIR}/include/weft/status.h
    ${PROJECT_SOURCE_DIR}/include/weft/reduce_op.h)
foreach(header IN LISTS weft_nvshmem_device_headers)
    configure_file(${PROJECT_SOURCE_DIR}/include/${header} ${weft_nvshmem_include}/${header} COPYONLY)
endforeach()

file(GLOB weft_nvshmem_sources CONFIGURE_DEPENDS ${weft_nvshmem_source}/*.c)
add_library(nvshmem_host SHARED ${weft_nvshmem_sources} ${weft_nvshmem_functions} ${weft_nvshmem_headers})
target_compile_definitions(nvshmem_host PRIVATE WEFT_NVSHMEM_NO_CUDA)
target_include_directories(nvshmem_host PRIVATE ${weft_nvshmem_generated} ${PROJECT_SOURCE_DIR}/src
    PUBLIC $<BUILD_INTERFACE:${weft_nvshmem_include}>)
target_link_libraries(nvshmem_host PRIVATE $<BUILD_INTERFACE:weft_flags> weft Threads::Threads m ${CMAKE_DL_LIBS})
set(weft_nvshmem_map ${weft_nvshmem_source}/nvshmem.map)
target_link_options(nvshmem_host PRIVATE LINKER:--version-script=${weft_nvshmem_map})
set_property(TARGET nvshmem_host PROPERTY LINK_DEPENDS ${weft_nvshmem_map})
set_target_properties(nvshmem_host PROPERTIES VERSION 3 SOVERSION 3 LIBRARY_OUTPUT_DIRECTORY ${weft_nvshmem_home}/lib
    INSTALL_RPATH "$ORIGIN/../../..") # libweft lies in the folder above the face's
weft_cover(nvshmem_host)
weft_compile_generated(${weft_nvshmem_functions})

# Kernels need headers only; programs link it by its name. (CUDA's linker passes over an archive without any object,
# with a warning.)
file(CONFIGURE OUTPUT ${weft_nvshmem_generated}/nothing.c CONTENT
    "/* The archive's only object. */\n__attribute__((unused)) static const char weft_nvshmem_device[] = \"headers\";\n")
add_library(nvshmem_device STATIC ${weft_nvshmem_generated}/nothing.c)
set_target_properties(nvshmem_device PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${weft_nvshmem_home}/lib)

# Programs that look for one library of both parts, libnvshmem, as NVSHMEM's first versions had it, find the host's.
file(CREATE_LINK libnvshmem_host.so.3 ${weft_nvshmem_home}/lib/libnvshmem.so SYMBOLIC)

# The routines of kernels as bitcode: they are optimised where they are linked, with the caller's architecture. Older
# versions of clang have no PTX of sm_90 that spells 128 bits. Flags of the module are taken out: Triton's own module
# has another value for one of them (nvvm-reflect-ftz, which nothing here asks), and then the two are not linked.
find_program(WEFT_NVSHMEM_CLANG NAMES clang-19 clang-20 clang-21 clang++-19 DOC "clang 19 or later, for NVSHMEM's bitcode")
if(WEFT_NVSHMEM_CLANG)
    set(weft_nvshmem_bitcode ${weft_nvshmem_home}/lib/libnvshmem_device.bc)
    file(GLOB weft_nvshmem_bitcode_headers CONFIGURE_DEPENDS ${weft_nvshmem_source}/bitcode/*.h)
    set(weft_nvshmem_read ${weft_nvshmem_device_headers} weft_nvshmem/state.h weft_nvshmem/device.cuh)
    list(TRANSFORM weft_nvshmem_read PREPEND ${weft_nvshmem_include}/)
    add_custom_command(OUTPUT ${weft_nvshmem_bitcode}
        COMMAND ${weft_nvshmem_generate} bitcode ${weft_nvshmem_generated}
        COMMAND ${WEFT_NVSHMEM_CLANG} -x cuda --cuda-device-only --cuda-gpu-arch=sm_90 -nocudainc -nocudalib -std=c++17 -O3
            -Xclang -disable-llvm-passes -Wno-unknown-cuda-version -emit-llvm -S -I${weft_nvshmem_source}/bitcode
            -I${weft_nvshmem_include} ${weft_nvshmem_generated}/bitcode.cu -o ${weft_nvshmem_generated}/bitcode.ll
        COMMAND sed -i "/^!llvm.module.flags/d" ${weft_nvshmem_generated}/bitcode.ll
        COMMAND ${WEFT_NVSHMEM_CLANG} -x ir --target=nvptx64-nvidia-cuda -Xclang -disable-llvm-passes -emit-llvm -c
            ${weft_nvshmem_generated}/bitcode.ll -o ${weft_nvshmem_bitcode}
        DEPENDS ${weft_nvshmem_headers} ${weft_nvshmem_read} ${weft_nvshmem_bitcode_headers} ${weft_nvshmem_tables} VERBATIM)
    add_custom_target(nvshmem_bitcode ALL DEPENDS ${weft_nvshmem_bitcode})
else()
    message(STATUS "weft: no clang 19, so there is no libnvshmem_device.bc (apt-get install clang-19)")
endif()

# find_package and pkg-config: both find the rest from where they lie themselves.
file(READ ${weft_nvshmem_source}/nvshmem.h.in weft_nvshmem_text)
foreach(part MAJOR MINOR PATCH)
    string(REGEX MATCH "NVSHMEM_VENDOR_${part}_VERSION ([0-9]+)" match "${weft_nvshmem_text}")
    list(APPEND weft_nvshmem_version ${CMAKE_MATCH_1})
endforeach()
string(REPLACE ";" "." weft_nvshmem_version "${weft_nvshmem_version}")
include(CMakePackageConfigHelpers)
set(weft_nvshmem_package ${weft_nvshmem_home}/lib/cmake/nvshmem) # as NVIDIA's, which programs name by HINTS
configure_file(${PROJECT_SOURCE_DIR}/cmake/NVSHMEMConfig.cmake.in ${weft_nvshmem_package}/NVSHMEMConfig.cmake COPYONLY)
write_basic_package_version_file(${weft_nvshmem_package}/NVSHMEMConfigVersion.cmake VERSION ${weft_nvshmem_version}
    COMPATIBILITY SameMajorVersion)
configure_file(${PROJECT_SOURCE_DIR}/cmake/nvshmem.pc.in ${weft_nvshmem_home}/lib/pkgconfig/nvshmem.pc @ONLY)
