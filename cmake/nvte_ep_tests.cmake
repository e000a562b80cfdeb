# Tests of the face of TransformerEngine's calls, with the NCCL EP face's stand-in for NCCL: nvte_ep.abi.* compile,
# nvte_ep.no_gpu and nvte_ep.loaded run anywhere, nvte_ep.steps.N runs N threads on the fake driver.
set(weft_nvte_ep_tests ${PROJECT_SOURCE_DIR}/tests/faces/nvte)
foreach(name steps costs)
    add_executable(nvte_ep_${name} ${weft_nvte_ep_tests}/${name}.c)
    target_include_directories(nvte_ep_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${weft_nvte_ep_include}
        ${weft_nccl_ep_include} ${weft_nccl_ep_source}/abi)
    target_compile_definitions(nvte_ep_${name} PRIVATE WEFT_NVTE_WITHOUT_CUDA)
    target_link_libraries(nvte_ep_${name} PRIVATE weft_flags weft_nvte_ep_static weft_static standin_nccl
        Threads::Threads ${CMAKE_DL_LIBS})
    set_target_properties(nvte_ep_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endforeach()

# What the faces call goes through the test first, and so does what anybody allocates.
foreach(function weft_ep_route_attach weft_ep_route_counts_to weft_ep_route_update weft_ep_route_choose weft_ep_dispatch
        weft_ep_combine weft_ep_combine_with weft_ep_dispatch_bwd malloc calloc realloc aligned_alloc posix_memalign)
    target_link_options(nvte_ep_costs PRIVATE LINKER:--wrap=${function})
endforeach()

if(TARGET fake_cuda)
    add_dependencies(nvte_ep_steps fake_cuda)
    add_dependencies(nvte_ep_costs fake_cuda)
    # Times mean nothing in builds that instrument, or that are not optimised.
    set(weft_nvte_ep_limit "")
    if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT WEFT_SANITIZE)
        set(weft_nvte_ep_limit 3000)
    endif()
    add_test(NAME nvte_ep.costs COMMAND nvte_ep_costs ${weft_nvte_ep_limit})
    weft_describe_test(nvte_ep.costs "nvte_ep;nccl_ep;cuda;fake")
    set_property(TEST nvte_ep.costs APPEND PROPERTY ENVIRONMENT
        "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake;WEFT_FAKE_SMS=2;WEFT_LOG=none;WEFT_DEVICE_HEAP_MAX=67108864")
    foreach(ranks 1 2 3)
        add_test(NAME nvte_ep.steps.${ranks} COMMAND nvte_ep_steps ${ranks})
        weft_describe_test(nvte_ep.steps.${ranks} "nvte_ep;cuda;fake")
        set_tests_properties(nvte_ep.steps.${ranks} PROPERTIES PROCESSORS 3)
        set_property(TEST nvte_ep.steps.${ranks} APPEND PROPERTY ENVIRONMENT
            "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake;WEFT_FAKE_SMS=2;WEFT_LOG=none;WEFT_DEVICE_HEAP_MAX=67108864")
    endforeach()
endif()
