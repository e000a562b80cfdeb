# Tests of the face of TransformerEngine's calls, with the NCCL EP face's stand-in for NCCL: nvte_ep.abi.* compile,
# nvte_ep.no_gpu and nvte_ep.loaded run anywhere, nvte_ep.steps.N runs N threads on the fake driver.
set(weft_nvte_ep_tests ${PROJECT_SOURCE_DIR}/tests/faces/nvte)
add_executable(nvte_ep_steps ${weft_nvte_ep_tests}/steps.c)
target_include_directories(nvte_ep_steps PRIVATE ${PROJECT_SOURCE_DIR}/tests ${weft_nvte_ep_include}
    ${weft_nccl_ep_source}/abi)
target_compile_definitions(nvte_ep_steps PRIVATE WEFT_NVTE_WITHOUT_CUDA)
target_link_libraries(nvte_ep_steps PRIVATE weft_flags weft_nvte_ep_static weft_static standin_nccl Threads::Threads
    ${CMAKE_DL_LIBS})
set_target_properties(nvte_ep_steps PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
if(TARGET fake_cuda)
    add_dependencies(nvte_ep_steps fake_cuda)
    foreach(ranks 1 2 3)
        add_test(NAME nvte_ep.steps.${ranks} COMMAND nvte_ep_steps ${ranks})
        weft_describe_test(nvte_ep.steps.${ranks} "nvte_ep;cuda;fake")
        set_tests_properties(nvte_ep.steps.${ranks} PROPERTIES PROCESSORS 3)
        set_property(TEST nvte_ep.steps.${ranks} APPEND PROPERTY ENVIRONMENT
            "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake;WEFT_FAKE_SMS=4;WEFT_LOG=none;WEFT_DEVICE_HEAP_MAX=67108864")
    endforeach()
endif()
