# Tests of the NVSHMEM face, programs of users on its headers: tests/faces/nvshmem/NAME.c is run by weftrun with N
# PEs, without a GPU, as test nvshmem.NAME.N.
if(NOT TARGET nvshmem_host OR NOT TARGET weftrun)
    return()
endif()

set(weft_nvshmem_tests ${PROJECT_SOURCE_DIR}/tests/faces/nvshmem)

function(weft_add_nvshmem_program name)
    add_executable(nvshmem_${name} ${weft_nvshmem_tests}/${name}.c)
    target_include_directories(nvshmem_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(nvshmem_${name} PRIVATE weft_flags nvshmem_host m ${CMAKE_DL_LIBS})
    target_compile_options(nvshmem_${name} PRIVATE -O0) # calls for every type, which are long to optimise and run once
    set_target_properties(nvshmem_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_dependencies(nvshmem_${name} weftrun)
endfunction()

function(weft_add_nvshmem_test name pes)
    add_test(NAME nvshmem.${name}.${pes} COMMAND weftrun -n ${pes} ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:nvshmem_${name}> ${ARGN})
    weft_describe_test(nvshmem.${name}.${pes} "multi;nvshmem")
    # In the host's memory also where there are GPUs, of which these programs take none.
    set_property(TEST nvshmem.${name}.${pes} APPEND PROPERTY ENVIRONMENT NVSHMEM_HEAP_KIND=SYSMEM)
    math(EXPR eighths "8 * ${pes}")
    weft_set_processors(nvshmem.${name}.${pes} ${eighths})
endfunction()

set(weft_nvshmem_counts 1 2 4)
if(WEFT_SANITIZE)
    set(weft_nvshmem_counts 1 3)
endif()
foreach(name setup memory rma amo wait coll teams)
    weft_add_nvshmem_program(${name})
    foreach(pes IN LISTS weft_nvshmem_counts)
        weft_add_nvshmem_test(${name} ${pes})
    endforeach()
endforeach()

# Two libraries of one process, one of them as if of older headers.
weft_add_nvshmem_program(modules)
foreach(module new old)
    add_library(nvshmem_module_${module} MODULE ${weft_nvshmem_tests}/module.c)
    target_include_directories(nvshmem_module_${module} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(nvshmem_module_${module} PRIVATE weft_flags nvshmem_host)
    set_target_properties(nvshmem_module_${module} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_dependencies(nvshmem_modules nvshmem_module_${module})
endforeach()
target_compile_definitions(nvshmem_module_old PRIVATE MODULE_OLD)
foreach(pes IN LISTS weft_nvshmem_counts)
    weft_add_nvshmem_test(modules ${pes} $<TARGET_FILE:nvshmem_module_new> $<TARGET_FILE:nvshmem_module_old>)
endforeach()

# A program that is linked with NVIDIA's device library.
weft_add_nvshmem_program(foreign)
weft_add_nvshmem_test(foreign 2)

weft_add_nvshmem_program(ends)
weft_add_nvshmem_program(mpi)
if(Python3_FOUND)
    add_test(NAME nvshmem.ends COMMAND ${Python3_EXECUTABLE} ${weft_nvshmem_tests}/ends.py
        $<TARGET_FILE:weftrun> $<TARGET_FILE:nvshmem_ends>)
    weft_describe_test(nvshmem.ends "process;nvshmem")
    add_test(NAME nvshmem.variables COMMAND ${Python3_EXECUTABLE} ${weft_nvshmem_tests}/variables.py ${PROJECT_SOURCE_DIR}
        $<TARGET_FILE:weftrun> $<TARGET_FILE:nvshmem_teams>)
    weft_describe_test(nvshmem.variables "process;nvshmem")
endif()
if(NOT WEFT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    foreach(pes 1 3)
        add_test(NAME nvshmem.mpi.${pes} COMMAND ${PROJECT_SOURCE_DIR}/tests/support/mpi.sh ${pes} $<TARGET_FILE:nvshmem_mpi>)
        weft_describe_test(nvshmem.mpi.${pes} "process;nvshmem")
        set_property(TEST nvshmem.mpi.${pes} APPEND PROPERTY ENVIRONMENT NVSHMEM_HEAP_KIND=SYSMEM)
    endforeach()
    find_program(WEFT_CXX NAMES g++ c++)
    if(Python3_FOUND AND WEFT_CXX)
        add_test(NAME nvshmem.manifest COMMAND ${Python3_EXECUTABLE} ${weft_nvshmem_tests}/manifest.py ${CMAKE_C_COMPILER}
            ${WEFT_CXX} ${weft_nvshmem_include} $<TARGET_FILE:nvshmem_host>)
        weft_describe_test(nvshmem.manifest "install;nvshmem")
    endif()
    add_test(NAME install.nvshmem
        COMMAND ${PROJECT_SOURCE_DIR}/tests/install/nvshmem.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
    weft_describe_test(install.nvshmem "install;nvshmem;slow")
    set_property(TEST install.nvshmem APPEND PROPERTY ENVIRONMENT NVSHMEM_HEAP_KIND=SYSMEM)
endif()

foreach(way WHOLE RDC)
    add_test(NAME nvshmem.compile.${way}
        COMMAND ${weft_nvshmem_tests}/compile.sh ${weft_nvcc} ${weft_nvshmem_home} ${way})
    weft_describe_test(nvshmem.compile.${way} "cuda;nvshmem")
    set_tests_properties(nvshmem.compile.${way} PROPERTIES TIMEOUT 400)
endforeach()

if(Python3_FOUND)
    foreach(what costs registers)
        add_test(NAME nvshmem.${what}
            COMMAND ${Python3_EXECUTABLE} ${weft_nvshmem_tests}/${what}.py ${weft_nvcc} ${weft_nvshmem_home})
        weft_describe_test(nvshmem.${what} "cuda;nvshmem")
    endforeach()
endif()

# Kernels that are compiled while the program runs; and the bitcode library, as Triton and Numba link it.
if(TARGET gpu_nvrtc AND NOT WEFT_SANITIZE)
    add_test(NAME nvshmem.nvrtc COMMAND gpu_nvrtc ${weft_nvshmem_include} ${weft_nvshmem_tests}/nvrtc.cu)
    weft_describe_test(nvshmem.nvrtc "cuda;nvshmem")
    set_property(TEST nvshmem.nvrtc APPEND PROPERTY ENVIRONMENT "LD_LIBRARY_PATH=${WEFT_CUDA_INCLUDE}/../lib64")
endif()
if(WEFT_NVSHMEM_CLANG AND Python3_FOUND AND NOT WEFT_SANITIZE)
    add_test(NAME nvshmem.bitcode COMMAND ${Python3_EXECUTABLE} ${weft_nvshmem_tests}/bitcode.py ${WEFT_NVSHMEM_CLANG}
        ${weft_nvshmem_bitcode} ${weft_nvshmem_source})
    weft_describe_test(nvshmem.bitcode "cuda;nvshmem")
endif()

# On the GPUs of the fake driver: the same programs with a device heap, those on streams, and, as kernels of one
# thread (nvshmem_kernel_NAME), those that kernels have routines for.
weft_add_nvshmem_program(streams)
weft_add_nvshmem_test(streams 2) # is refused
if(NOT TARGET fake_cuda)
    return()
endif()

function(weft_add_nvshmem_fake_test test pes program)
    add_test(NAME ${test}.${pes} COMMAND weftrun -n ${pes} ${program})
    weft_describe_test(${test}.${pes} "multi;nvshmem;fake")
    set_property(TEST ${test}.${pes} APPEND PROPERTY ENVIRONMENT
        "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake;CHECK_GPU=1;WEFT_DEADLINE=60")
    math(EXPR eighths "8 * ${pes}")
    weft_set_processors(${test}.${pes} ${eighths})
endfunction()

foreach(name setup memory rma amo wait coll teams streams)
    add_dependencies(nvshmem_${name} fake_cuda)
    foreach(pes IN LISTS weft_nvshmem_counts)
        weft_add_nvshmem_fake_test(nvshmem.gpu.${name} ${pes} $<TARGET_FILE:nvshmem_${name}>)
    endforeach()
endforeach()
weft_add_nvshmem_program(named)
target_include_directories(nvshmem_named PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
set_target_properties(nvshmem_named PROPERTIES ENABLE_EXPORTS TRUE)
add_dependencies(nvshmem_named fake_cuda)
weft_add_nvshmem_fake_test(nvshmem.gpu.named 2 $<TARGET_FILE:nvshmem_named>)
weft_add_nvshmem_program(refused_gpu)
add_dependencies(nvshmem_refused_gpu fake_cuda)
weft_add_nvshmem_fake_test(nvshmem.gpu.refused_gpu 2 $<TARGET_FILE:nvshmem_refused_gpu>)
add_test(NAME nvshmem.gpu.mps.3 COMMAND weftrun -n 3 $<TARGET_FILE:nvshmem_setup>) # shares of a GPU that fit together
weft_describe_test(nvshmem.gpu.mps.3 "multi;nvshmem;fake")
set_property(TEST nvshmem.gpu.mps.3 APPEND PROPERTY ENVIRONMENT "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake;CHECK_GPU=1"
    "WEFT_DEADLINE=60;WEFT_FAKE_MPS=nvshmem;CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=33")
weft_set_processors(nvshmem.gpu.mps.3 24)
if(WEFT_SANITIZE)
    return()
endif()
add_custom_target(nvshmem_kernels ALL)
foreach(source rma.c amo.c wait.c coll.c groups.cc)
    get_filename_component(name ${source} NAME_WE)
    set(program ${PROJECT_BINARY_DIR}/tests/nvshmem_kernel_${name})
    add_custom_command(OUTPUT ${program}
        COMMAND ${WEFT_CXX} -x c++ ${weft_on_host_plain_flags} -O0 -DWEFT_NVSHMEM_NO_CUDA -I${weft_nvshmem_include}
            -I${PROJECT_SOURCE_DIR}/tests ${weft_nvshmem_tests}/${source} -x none -o ${program} $<TARGET_FILE:nvshmem_host>
            -Wl,-rpath,${weft_nvshmem_home}/lib -ldl
        DEPENDS ${weft_nvshmem_tests}/${source} ${weft_nvshmem_tests}/check.h ${weft_nvshmem_headers}
            ${weft_nvshmem_include}/weft_nvshmem/device.cuh nvshmem_host VERBATIM)
    add_custom_target(nvshmem_kernel_${name} DEPENDS ${program})
    add_dependencies(nvshmem_kernels nvshmem_kernel_${name})
    foreach(pes IN LISTS weft_nvshmem_counts)
        weft_add_nvshmem_fake_test(nvshmem.kernel.${name} ${pes} ${program})
    endforeach()
endforeach()
# Among PEs that load and store do not reach: through the proxy.
foreach(name rma amo)
    weft_add_nvshmem_fake_test(nvshmem.kernel.${name}.far 2 ${PROJECT_BINARY_DIR}/tests/nvshmem_kernel_${name})
    set_property(TEST nvshmem.kernel.${name}.far.2 APPEND PROPERTY ENVIRONMENT "WEFT_CUDA_DOMAIN=1")
endforeach()

# Every routine of kernels, for every type, by a thread, a warp and a block, against a model: tests/faces/nvshmem/every,
# whose kernels are generated. Their threads are coroutines.
set(weft_every ${weft_nvshmem_tests}/every)
set(weft_every_made ${PROJECT_BINARY_DIR}/generated/nvshmem_every)
set(weft_every_program ${PROJECT_BINARY_DIR}/tests/nvshmem_kernel_every)
file(GLOB weft_every_parts CONFIGURE_DEPENDS ${weft_every}/*)
set(weft_every_flags -std=c++17 -Wall -Wextra -Wno-missing-field-initializers -Wno-unknown-pragmas -DWEFT_NVSHMEM_NO_CUDA
    -I${weft_nvshmem_include} -I${PROJECT_SOURCE_DIR}/tests -I${PROJECT_SOURCE_DIR}/src -I${weft_every_made})
set(weft_every_sources part0.cu part1.cu reduce0.cu reduce1.cu)
list(TRANSFORM weft_every_sources PREPEND ${weft_every_made}/)
add_custom_command(OUTPUT ${weft_every_sources} ${weft_every_made}/parts.h
    COMMAND ${Python3_EXECUTABLE} ${weft_every}/generate.py ${weft_every_made} 2
    DEPENDS ${weft_every_parts} ${weft_nvshmem_tables} VERBATIM)
set(weft_every_objects ${weft_every_made}/model.o)
add_custom_command(OUTPUT ${weft_every_made}/model.o
    COMMAND ${WEFT_CXX} ${weft_every_flags} -O2 -g1 -DNVSHMEM_HOSTLIB_ONLY -c ${weft_every}/model.cc -o ${weft_every_made}/model.o
    DEPENDS ${weft_every_parts} ${weft_every_made}/parts.h ${weft_nvshmem_headers} VERBATIM)
foreach(source IN LISTS weft_every_sources)
    add_custom_command(OUTPUT ${source}.o
        COMMAND ${WEFT_CXX} -x c++ ${weft_every_flags} -O0 -DWEFT_DEVICE_ON_HOST -DWEFT_DEVICE_ON_HOST_THREADS
            -include ${PROJECT_SOURCE_DIR}/src/testing/fake_driver/threads.h -c ${source} -o ${source}.o
        DEPENDS ${source} ${weft_every_parts} ${weft_nvshmem_headers} ${weft_device_headers}
            ${weft_nvshmem_include}/weft_nvshmem/device.cuh ${PROJECT_SOURCE_DIR}/src/testing/fake_driver/threads.h
            ${PROJECT_SOURCE_DIR}/src/testing/fake_driver/grid.h VERBATIM)
    list(APPEND weft_every_objects ${source}.o)
endforeach()
add_library(fake_grid STATIC ${PROJECT_SOURCE_DIR}/src/testing/fake_driver/grid.c
    ${PROJECT_SOURCE_DIR}/src/testing/sim/coroutine.c ${PROJECT_SOURCE_DIR}/src/testing/sim/stacks.c)
target_link_libraries(fake_grid PRIVATE weft_flags)
add_custom_command(OUTPUT ${weft_every_program}
    COMMAND ${WEFT_CXX} ${weft_every_objects} -o ${weft_every_program} $<TARGET_FILE:fake_grid> $<TARGET_FILE:nvshmem_host>
        -Wl,-rpath,${weft_nvshmem_home}/lib -ldl
    DEPENDS ${weft_every_objects} fake_grid nvshmem_host VERBATIM)
add_custom_target(nvshmem_kernel_every ALL DEPENDS ${weft_every_program})
add_dependencies(nvshmem_kernel_every fake_cuda)
foreach(pes 1 2 3) # the more PEs, the longer each waits for a processor
    weft_add_nvshmem_fake_test(nvshmem.kernel.every ${pes} ${weft_every_program})
endforeach()
