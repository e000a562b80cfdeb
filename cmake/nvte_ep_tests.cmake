# Tests of the face of TransformerEngine's calls, with the NCCL EP face's stand-in for NCCL: nvte_ep.abi.* compile,
# nvte_ep.no_gpu runs anywhere, the others on the fake driver, nvte_ep.steps.N in N threads.
set(weft_nvte_ep_tests ${PROJECT_SOURCE_DIR}/tests/faces/nvte)
foreach(name steps costs no_gpu loaded)
    set(parts)
    if(name STREQUAL "steps")
        foreach(part layer wrong_uses eager)
            list(APPEND parts ${weft_nvte_ep_tests}/${part}.c)
        endforeach()
    endif()
    add_executable(nvte_ep_${name} ${weft_nvte_ep_tests}/${name}.c ${parts})
    target_include_directories(nvte_ep_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${weft_nvte_ep_include}
        ${weft_nccl_ep_include} ${weft_nccl_ep_source}/abi)
    target_compile_definitions(nvte_ep_${name} PRIVATE WEFT_NVTE_WITHOUT_CUDA)
    target_link_libraries(nvte_ep_${name} PRIVATE weft_flags weft_nvte_ep_static weft_static standin_nccl
        Threads::Threads ${CMAKE_DL_LIBS})
    set_target_properties(nvte_ep_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endforeach()

# A stand-in for TransformerEngine: `loaded` itself, which exports its accessors; and a library of the names of its
# calls, beside nvte_ep_hidden, which is `loaded` with nothing exported.
set_target_properties(nvte_ep_loaded PROPERTIES ENABLE_EXPORTS ON)
add_executable(nvte_ep_hidden ${weft_nvte_ep_tests}/loaded.c)
target_include_directories(nvte_ep_hidden PRIVATE ${PROJECT_SOURCE_DIR}/tests ${weft_nvte_ep_include}
    ${weft_nccl_ep_include} ${weft_nccl_ep_source}/abi)
target_link_libraries(nvte_ep_hidden PRIVATE weft_flags weft_nvte_ep_static weft_static standin_nccl Threads::Threads
    ${CMAKE_DL_LIBS})
target_link_options(nvte_ep_hidden PRIVATE LINKER:--exclude-libs,ALL)
set_target_properties(nvte_ep_hidden PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_library(standin_transformer_engine SHARED ${weft_nvte_ep_tests}/transformer_engine.c)
target_link_libraries(standin_transformer_engine PRIVATE weft_flags)
target_compile_options(standin_transformer_engine PRIVATE -fvisibility=default)
set_target_properties(standin_transformer_engine PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/standin)

add_test(NAME nvte_ep.no_gpu COMMAND nvte_ep_no_gpu)
weft_describe_test(nvte_ep.no_gpu "nvte_ep")
set_property(TEST nvte_ep.no_gpu APPEND PROPERTY ENVIRONMENT "WEFT_LOG=none")
foreach(language c c++)
    set(compiler ${CMAKE_C_COMPILER})
    set(standard c11)
    if(language STREQUAL c++)
        set(compiler ${WEFT_CXX})
        set(standard c++17)
    endif()
    if(compiler)
        add_test(NAME nvte_ep.abi.${language} COMMAND ${compiler} -x ${language} -std=${standard} -pedantic -Wall -Wextra
            -Werror -fsyntax-only -DWEFT_NVTE_WITHOUT_CUDA -I${weft_nvte_ep_include} -I${PROJECT_SOURCE_DIR}/include
            ${weft_nvte_ep_tests}/abi.c)
        weft_describe_test(nvte_ep.abi.${language} "nvte_ep")
    endif()
endforeach()

# What the faces call goes through the test first, and so does what anybody allocates; not beside a sanitizer's own.
if(WEFT_SANITIZE)
    set_target_properties(nvte_ep_costs PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
foreach(function weft_ep_route_attach weft_ep_route_counts_to weft_ep_route_update weft_ep_route_choose weft_ep_route_weigh
        weft_ep_dispatch weft_ep_dispatch_send weft_ep_dispatch_recv weft_ep_combine weft_ep_combine_with
        weft_ep_combine_send_with weft_ep_combine_recv weft_ep_dispatch_bwd malloc calloc realloc aligned_alloc posix_memalign)
    target_link_options(nvte_ep_costs PRIVATE LINKER:--wrap=${function})
endforeach()

if(TARGET fake_cuda)
    add_dependencies(nvte_ep_steps fake_cuda)
    add_dependencies(nvte_ep_costs fake_cuda)
    add_test(NAME nvte_ep.loaded COMMAND nvte_ep_loaded)
    add_test(NAME nvte_ep.mix COMMAND nvte_ep_hidden $<TARGET_FILE:standin_transformer_engine>)
    foreach(name loaded mix)
        weft_describe_test(nvte_ep.${name} "nvte_ep;cuda;fake")
        set_property(TEST nvte_ep.${name} APPEND PROPERTY ENVIRONMENT
            "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake;WEFT_FAKE_SMS=2;WEFT_LOG=none;WEFT_DEVICE_HEAP_MAX=67108864")
    endforeach()
    # Times mean nothing in builds that are not optimised.
    set(weft_nvte_ep_limit "")
    if(CMAKE_BUILD_TYPE STREQUAL "Release")
        set(weft_nvte_ep_limit 3000)
    endif()
    if(NOT WEFT_SANITIZE)
        add_test(NAME nvte_ep.costs COMMAND nvte_ep_costs ${weft_nvte_ep_limit})
        weft_describe_test(nvte_ep.costs "nvte_ep;nccl_ep;cuda;fake")
        set_property(TEST nvte_ep.costs APPEND PROPERTY ENVIRONMENT
            "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake;WEFT_FAKE_SMS=2;WEFT_LOG=none;WEFT_DEVICE_HEAP_MAX=67108864")
    endif()
    foreach(ranks 1 2 3)
        add_test(NAME nvte_ep.steps.${ranks} COMMAND nvte_ep_steps ${ranks})
        weft_describe_test(nvte_ep.steps.${ranks} "nvte_ep;cuda;fake")
        set_property(TEST nvte_ep.steps.${ranks} APPEND PROPERTY ENVIRONMENT
            "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake;WEFT_FAKE_SMS=2;WEFT_FAKE_GPUS=3;WEFT_LOG=none;WEFT_DEVICE_HEAP_MAX=67108864;WEFT_FAKE_CONTEXTS=1")
    endforeach()
endif()

# examples/nccl_ep and examples/nvte_ep, with CUDA's driver and NCCL as stand-ins: a layer's step on two ranks.
if(TARGET fake_cuda AND WEFT_CUDA_INCLUDE)
    foreach(face nccl_ep nvte_ep)
        add_executable(example_${face} ${PROJECT_SOURCE_DIR}/examples/${face}/step.c)
        target_include_directories(example_${face} PRIVATE ${weft_nccl_ep_source}/abi)
        target_include_directories(example_${face} SYSTEM PRIVATE ${WEFT_CUDA_INCLUDE})
        target_compile_definitions(example_${face} PRIVATE WEFT_NVTE_WITHOUT_CUDA)
        target_link_libraries(example_${face} PRIVATE weft_flags weft_${face} weft standin_nccl fake_cuda Threads::Threads)
        set_target_properties(example_${face} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
        add_test(NAME ${face}.example COMMAND example_${face})
        weft_describe_test(${face}.example "${face};cuda;fake")
        set_property(TEST ${face}.example APPEND PROPERTY ENVIRONMENT
            "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake;WEFT_FAKE_SMS=4;WEFT_DEVICE_HEAP_MAX=67108864")
    endforeach()
endif()
