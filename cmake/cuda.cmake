# GPUs: src/cuda, when nvcc and cuda.h are here; else a world has no device, and the build says so. The driver is loaded
# at run time and no runtime library is linked. `gpu_programs` builds what runs on a GPU machine, into the folder gpu/:
#   tests/gpu/NAME.cu      gpu/test_NAME
#
# Nothing is written for 10.0 alone, so its code is made of what 9.0 has, which is compiled once for both. To assemble
# takes two thirds of the compiler's time.
#
# What is not assembled is for tests without a GPU: there the library's kernels are compiled for 9.0 alone, without the
# expensive optimizations, which are half of the compiler's time, and tests/gpu/compile.sh reads their PTX; that test
# compiles them for 8.0. Those of tools, which nothing reads, are not optimised.
set(weft_tool_architectures -gencode arch=compute_90,code=sm_90 -gencode arch=compute_80,code=compute_80)
set(weft_nvcc_architectures
    -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_80,code=compute_80)
set(weft_ep_nvcc_architectures # expert parallelism: sm_90 and later
    -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90)
if(NOT WEFT_CUDA_ASSEMBLE)
    set(weft_tool_architectures -gencode arch=compute_80,code=compute_80)
    set(weft_nvcc_architectures -gencode arch=compute_90,code=compute_90)
    set(weft_ep_nvcc_architectures -gencode arch=compute_90,code=compute_90)
elseif(WEFT_CUDA_SM100)
    list(APPEND weft_nvcc_architectures -gencode arch=compute_90,code=sm_100)
    list(APPEND weft_ep_nvcc_architectures -gencode arch=compute_90,code=sm_100)
else()
    list(APPEND weft_nvcc_architectures -gencode arch=compute_90,code=compute_90)
endif()

if(CMAKE_CUDA_COMPILER)
    get_filename_component(weft_cuda_bin ${CMAKE_CUDA_COMPILER} REALPATH)
    get_filename_component(weft_cuda_bin ${weft_cuda_bin} DIRECTORY)
    find_path(WEFT_CUDA_INCLUDE cuda.h HINTS ${weft_cuda_bin}/../include)
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --help OUTPUT_VARIABLE weft_nvcc_help)
    if(NOT WEFT_CUDA_ASSEMBLE AND weft_nvcc_help MATCHES "--Ofast-compile")
        list(APPEND weft_tool_architectures --Ofast-compile=max)
        list(APPEND weft_nvcc_architectures --Ofast-compile=min)
        list(APPEND weft_ep_nvcc_architectures --Ofast-compile=min)
    endif()
endif()
if(NOT CMAKE_CUDA_COMPILER OR NOT WEFT_CUDA_INCLUDE)
    if(WEFT_CUDA)
        message(STATUS "weft: no nvcc or no cuda.h, so GPUs (src/cuda) are left out")
    endif()
    return()
endif()

file(GLOB_RECURSE weft_cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/*.c)
list(FILTER weft_cuda_sources EXCLUDE REGEX "_test\\.c$")
# All public headers: lists of those that kernels include were twice too short, and old kernels stayed.
file(GLOB_RECURSE weft_device_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.cuh ${PROJECT_SOURCE_DIR}/include/*.h)
file(GLOB weft_kernel_parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/*.cuh)
list(APPEND weft_kernel_parts ${PROJECT_SOURCE_DIR}/src/cuda/kernels.h)

# Kernels for the library to carry; further arguments are what they depend on, without which the compiler says it.
# Sanitizer builds run on the fake driver only, which has kernels of its own, and carry an empty file. The PTX stays
# beside a fat binary, in FATBIN.kept, for the tests that read it (tests/gpu/compile.sh).
function(weft_add_fatbin fatbin source architectures)
    set(kept ${fatbin}.kept)
    set(command ${CMAKE_CUDA_COMPILER} --fatbin --threads 2 ${architectures} -std=c++17 -O3 -I${PROJECT_SOURCE_DIR}/include
        -I${PROJECT_SOURCE_DIR}/src ${source} -o ${fatbin} --keep --keep-dir ${kept})
    if(WEFT_WERROR)
        list(APPEND command -Werror all-warnings)
    endif()
    set(dependencies DEPENDS ${source} ${ARGN})
    if(WEFT_SANITIZE)
        set(command ${CMAKE_COMMAND} -E touch ${fatbin})
    elseif(NOT ARGN)
        list(APPEND command -MD -MF ${fatbin}.d -MT ${fatbin})
        list(APPEND dependencies DEPFILE ${fatbin}.d)
    endif()
    add_custom_command(OUTPUT ${fatbin}
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${kept}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${kept}
        COMMAND ${command}
        COMMAND find ${kept} -type f -not -name "*.ptx" -delete
        ${dependencies} VERBATIM)
endfunction()

set(weft_kernel_checks)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    set(weft_kernel_checks -DWEFT_DEVICE_CHECKS) # two kernels that use one team at once are told
endif()
set(weft_fatbin ${PROJECT_BINARY_DIR}/kernels.fatbin)
weft_add_fatbin(${weft_fatbin} ${PROJECT_SOURCE_DIR}/src/cuda/kernels.cu "${weft_nvcc_architectures}"
    ${weft_kernel_parts} ${weft_device_headers})
add_custom_target(weft_fatbin_made DEPENDS ${weft_fatbin})
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cuda/kernels.c PROPERTIES
    COMPILE_DEFINITIONS "WEFT_CUDA_FATBIN=\"${weft_fatbin}\"" OBJECT_DEPENDS ${weft_fatbin})

# Expert parallelism: src/cuda/ep/FOLDER/NAME.cu is the fat binary ep/FOLDER_NAME.fatbin, a row of
# WEFTI_CUDA_EP_MODULES. The compiler says what each includes, so that a change makes only those anew that have it.
file(GLOB weft_ep_kernel_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src/cuda/ep ${PROJECT_SOURCE_DIR}/src/cuda/ep/*/*.cu)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/ep/host/kernels.h)
file(STRINGS ${PROJECT_SOURCE_DIR}/src/cuda/ep/host/kernels.h weft_ep_module_rows REGEX "^    X\\(")
set(weft_ep_fatbins)
foreach(source IN LISTS weft_ep_kernel_sources)
    string(REGEX REPLACE "\\.cu$" "" name ${source})
    string(REPLACE "/" "_" name ${name})
    if(NOT "${weft_ep_module_rows}" MATCHES "X\\(${name},")
        message(FATAL_ERROR "src/cuda/ep/${source} is no row of WEFTI_CUDA_EP_MODULES in src/cuda/ep/host/kernels.h; add X(${name}, its family)")
    endif()
    set(fatbin ${PROJECT_BINARY_DIR}/ep/${name}.fatbin)
    weft_add_fatbin(${fatbin} ${PROJECT_SOURCE_DIR}/src/cuda/ep/${source} "${weft_ep_nvcc_architectures}")
    list(APPEND weft_ep_fatbins ${fatbin})
endforeach()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/ep)
add_custom_target(weft_ep_fatbin_made DEPENDS ${weft_ep_fatbins})
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cuda/ep/host/kernels.c PROPERTIES
    COMPILE_DEFINITIONS "WEFT_CUDA_EP_FATBINS=\"${PROJECT_BINARY_DIR}/ep\"" OBJECT_DEPENDS "${weft_ep_fatbins}")

# The kernels with which tools measure.
set(weft_tool_kernels ${PROJECT_SOURCE_DIR}/src/tools/lib/kernels.cu)
set(weft_tool_kernel_sources ${weft_tool_kernels} ${PROJECT_SOURCE_DIR}/src/tools/lib/kernels.h ${weft_device_headers})
set(weft_tool_fatbin ${PROJECT_BINARY_DIR}/tool_kernels.fatbin)
weft_add_fatbin(${weft_tool_fatbin} ${weft_tool_kernels}
    "${weft_tool_architectures}" ${weft_tool_kernel_sources})
add_custom_target(weft_tool_fatbin_made DEPENDS ${weft_tool_fatbin})

target_sources(weft_objects PRIVATE ${weft_cuda_sources})
target_compile_definitions(weft_objects PRIVATE WEFT_HAVE_CUDA)
target_include_directories(weft_objects SYSTEM PRIVATE ${WEFT_CUDA_INCLUDE})
add_dependencies(weft_objects weft_fatbin_made weft_ep_fatbin_made)

# One program a file, static but for the system's libraries, so that it can be carried to the machine with the GPUs.
# Programs may use tests/support.
add_custom_target(gpu_programs)
file(GLOB weft_gpu_support_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/ep_*.c ${PROJECT_SOURCE_DIR}/tests/support/check.c)
add_library(weft_gpu_support STATIC EXCLUDE_FROM_ALL ${weft_gpu_support_sources})
target_include_directories(weft_gpu_support PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(weft_gpu_support PRIVATE weft_flags weft_static)
function(weft_add_gpu_programs folder prefix)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cu)
    file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/support/*.h ${PROJECT_SOURCE_DIR}/${folder}/*/*.cuh)
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        set(program ${PROJECT_BINARY_DIR}/gpu/${prefix}${name})
        add_custom_command(OUTPUT ${program}
            COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/gpu
            COMMAND ${CMAKE_CUDA_COMPILER} -arch=sm_90 -std=c++17 -O3 -lineinfo -Werror all-warnings
                -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/tests/gpu -I${PROJECT_SOURCE_DIR}/tests
                ${source}
                $<TARGET_FILE:weft_gpu_support> $<TARGET_FILE:weft_static>
                -lpthread -ldl -lm -o ${program}
            DEPENDS ${source} ${parts} ${weft_device_headers} weft_static weft_gpu_support
            VERBATIM)
        add_custom_target(gpu_${prefix}${name} DEPENDS ${program})
        add_dependencies(gpu_programs gpu_${prefix}${name})
    endforeach()
endfunction()
weft_add_gpu_programs(tests/gpu test_)

# examples/gpu/NAME.c, which link CUDA's driver and NVRTC: where both can be linked.
find_library(WEFT_CUDA_DRIVER cuda HINTS ${WEFT_CUDA_INCLUDE}/../lib64/stubs ${WEFT_CUDA_INCLUDE}/../lib/stubs)
find_library(WEFT_NVRTC nvrtc HINTS ${WEFT_CUDA_INCLUDE}/../lib64)
if(WEFT_CUDA_DRIVER AND WEFT_NVRTC)
    add_executable(nvrtc_ring ${PROJECT_SOURCE_DIR}/examples/gpu/nvrtc_ring.c)
    target_include_directories(nvrtc_ring SYSTEM PRIVATE ${WEFT_CUDA_INCLUDE})
    target_link_libraries(nvrtc_ring PRIVATE weft_flags weft_static ${WEFT_NVRTC} ${WEFT_CUDA_DRIVER})
    set_target_properties(nvrtc_ring PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/gpu)
    add_dependencies(gpu_programs nvrtc_ring)
endif()
