# Tests of the NCCL EP face, with a stand-in for NCCL (tests/faces/nccl_ep/libnccl.c): nccl_ep.abi.* compile,
# nccl_ep.no_gpu runs anywhere, nccl_ep.steps.N and nccl_ep.counters.N run N threads on the fake driver.
set(weft_nccl_ep_tests ${PROJECT_SOURCE_DIR}/tests/faces/nccl_ep)
add_library(standin_nccl SHARED ${weft_nccl_ep_tests}/libnccl.c)
target_include_directories(standin_nccl PRIVATE ${PROJECT_SOURCE_DIR}/tests ${weft_nccl_ep_source}/abi)
target_link_libraries(standin_nccl PRIVATE weft_flags Threads::Threads)
set_target_properties(standin_nccl PROPERTIES OUTPUT_NAME nccl SUFFIX .so.2 C_VISIBILITY_PRESET default
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/standin)
target_compile_options(standin_nccl PRIVATE -fvisibility=default)

add_library(nccl_ep_abi OBJECT ${weft_nccl_ep_tests}/abi.c)
target_include_directories(nccl_ep_abi PRIVATE ${weft_nccl_ep_include} ${weft_nccl_ep_source}/abi)
target_link_libraries(nccl_ep_abi PRIVATE weft_flags)

# The same against NCCL's own header, and as C++, where the compiler finds it.
find_path(WEFT_NCCL_INCLUDE nccl.h)
find_path(WEFT_NCCL_CUDA_INCLUDE cuda_runtime.h HINTS ${WEFT_CUDA_INCLUDE} /usr/local/cuda/include)
if(WEFT_NCCL_INCLUDE AND WEFT_NCCL_CUDA_INCLUDE)
    foreach(language c c++)
        set(standard c17)
        set(compiler ${CMAKE_C_COMPILER})
        if(language STREQUAL c++)
            set(standard c++20) # the initialisers name their fields
            set(compiler ${WEFT_CXX})
        endif()
        if(compiler)
            add_test(NAME nccl_ep.abi.${language} COMMAND ${compiler} -x ${language} -std=${standard} -fsyntax-only
                -I${weft_nccl_ep_include} -isystem ${WEFT_NCCL_INCLUDE} -isystem ${WEFT_NCCL_CUDA_INCLUDE}
                ${weft_nccl_ep_tests}/abi.c)
            weft_describe_test(nccl_ep.abi.${language} "nccl_ep")
        endif()
    endforeach()
endif()

foreach(name no_gpu steps counters registered wrong_uses timeout clean many layers recipes interleaved)
    set(parts)
    if(name STREQUAL "steps" OR name STREQUAL "counters" OR name STREQUAL "registered")
        set(parts ${weft_nccl_ep_tests}/step.c)
    elseif(name STREQUAL "wrong_uses")
        foreach(part groups handles dispatch combine)
            list(APPEND parts ${weft_nccl_ep_tests}/wrong_${part}.c)
        endforeach()
    endif()
    add_executable(nccl_ep_${name} ${weft_nccl_ep_tests}/${name}.c ${parts})
    target_include_directories(nccl_ep_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests
        ${weft_nccl_ep_include} ${weft_nccl_ep_source}/abi)
    target_link_libraries(nccl_ep_${name} PRIVATE weft_flags weft_nccl_ep_static weft_static standin_nccl Threads::Threads
        ${CMAKE_DL_LIBS} m)
    set_target_properties(nccl_ep_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endforeach()
add_test(NAME nccl_ep.no_gpu COMMAND nccl_ep_no_gpu)
weft_describe_test(nccl_ep.no_gpu "nccl_ep")
set_property(TEST nccl_ep.no_gpu APPEND PROPERTY ENVIRONMENT "WEFT_LOG=none")
if(TARGET fake_cuda)
    foreach(name wrong_uses timeout clean many layers recipes interleaved)
        add_dependencies(nccl_ep_${name} fake_cuda)
        add_test(NAME nccl_ep.${name} COMMAND nccl_ep_${name})
        weft_describe_test(nccl_ep.${name} "nccl_ep;cuda;fake")
        set_property(TEST nccl_ep.${name} APPEND PROPERTY ENVIRONMENT
            "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake;WEFT_FAKE_SMS=4;WEFT_LOG=none;WEFT_DEVICE_HEAP_MAX=67108864")
    endforeach()
    set_property(TEST nccl_ep.timeout APPEND PROPERTY ENVIRONMENT "NCCL_EP_TIMEOUT_MS=3000")
    set_property(TEST nccl_ep.clean APPEND PROPERTY ENVIRONMENT "NCCL_EP_TIMEOUT_MS=2000;WEFT_FAKE_GPUS=4")
    foreach(name timeout clean) # by kernels of groups of more than 32 ranks
        add_test(NAME nccl_ep.${name}.many COMMAND nccl_ep_${name})
        weft_describe_test(nccl_ep.${name}.many "nccl_ep;cuda;fake")
        get_property(environment TEST nccl_ep.${name} PROPERTY ENVIRONMENT)
        set_property(TEST nccl_ep.${name}.many PROPERTY ENVIRONMENT "${environment};WEFT_EP_FEW_RANKS=0")
    endforeach()
    set_property(TEST nccl_ep.layers APPEND PROPERTY ENVIRONMENT "WEFT_FAKE_GPUS=2")
    add_test(NAME nccl_ep.layers.threads COMMAND nccl_ep_layers threads)
    weft_describe_test(nccl_ep.layers.threads "nccl_ep;cuda;fake")
    get_property(environment TEST nccl_ep.layers PROPERTY ENVIRONMENT)
    set_property(TEST nccl_ep.layers.threads PROPERTY ENVIRONMENT "${environment};WEFT_FAKE_CONTEXTS=1")
    # Started by MPI. (What it compiles has no sanitizer.)
    if(NOT WEFT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
        add_test(NAME nccl_ep.mpi
            COMMAND ${weft_nccl_ep_tests}/mpi.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR} 3)
        weft_describe_test(nccl_ep.mpi "nccl_ep;cuda;fake")
        weft_set_processors(nccl_ep.mpi 12)
        set_property(TEST nccl_ep.mpi APPEND PROPERTY ENVIRONMENT
            "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake;WEFT_FAKE_SMS=2;WEFT_LOG=none;WEFT_DEVICE_HEAP_MAX=67108864")
    endif()
    set_target_properties(nccl_ep_registered PROPERTIES ENABLE_EXPORTS ON) # its window, in place of NCCL's
    foreach(name steps counters registered)
        add_dependencies(nccl_ep_${name} fake_cuda)
        foreach(ranks 1 2 3)
            add_test(NAME nccl_ep.${name}.${ranks} COMMAND nccl_ep_${name} ${ranks})
            weft_describe_test(nccl_ep.${name}.${ranks} "nccl_ep;cuda;fake")
            set_property(TEST nccl_ep.${name}.${ranks} APPEND PROPERTY ENVIRONMENT
                "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake;WEFT_FAKE_SMS=4;WEFT_FAKE_GPUS=3;WEFT_LOG=none;WEFT_DEVICE_HEAP_MAX=67108864")
        endforeach()
    endforeach()
    add_test(NAME nccl_ep.counters.many COMMAND nccl_ep_counters 2) # as nccl_ep.timeout.many
    weft_describe_test(nccl_ep.counters.many "nccl_ep;cuda;fake")
    get_property(environment TEST nccl_ep.counters.2 PROPERTY ENVIRONMENT)
    set_property(TEST nccl_ep.counters.many PROPERTY ENVIRONMENT "${environment};WEFT_EP_FEW_RANKS=0")
endif()
