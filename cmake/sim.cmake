# The simulator: libweft's sources compiled with WEFT_SIM, where src/sim stands in for src/os/posix and for the access to
# symmetric memory, and its tests.
#   src/sim/NAME_test.c             cmocka, as test sim_NAME_test (label unit)
#   src/transport/sim/NAME_test.c   the same, with the parts that tests share
file(GLOB_RECURSE weft_sim_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.c)
list(FILTER weft_sim_sources EXCLUDE REGEX "(_test|/conformance)\\.c$")
list(FILTER weft_sim_sources EXCLUDE REGEX "/src/(tools|cuda|os/posix)/")
list(FILTER weft_sim_sources EXCLUDE REGEX "/src/protocol/copy\\.c$")

# A simulator library; further arguments are definitions.
function(weft_add_sim_library name)
    add_library(${name} STATIC EXCLUDE_FROM_ALL ${weft_sim_sources})
    target_compile_definitions(${name} PUBLIC WEFT_SIM WEFT_FAULTS ${ARGN})
    target_link_libraries(${name} PUBLIC weft_flags Threads::Threads ${CMAKE_DL_LIBS} m)
endfunction()
weft_add_sim_library(weft_sim)

function(weft_add_sim_tests library)
    foreach(source IN LISTS ARGN)
        get_filename_component(name ${source} NAME_WE)
        add_executable(sim_${name} ${source})
        target_link_libraries(sim_${name} PRIVATE ${library} PkgConfig::CMOCKA)
        set_target_properties(sim_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
        add_test(NAME sim_${name} COMMAND sim_${name})
        weft_describe_test(sim_${name} unit)
    endforeach()
endfunction()

if(CMOCKA_FOUND)
    file(GLOB weft_sim_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/sim/*_test.c)
    weft_add_sim_tests(weft_sim ${weft_sim_tests})

    set(weft_sim_part_sources ${weft_part_sources} ${PROJECT_SOURCE_DIR}/tests/sim/each.c)
    list(FILTER weft_sim_part_sources EXCLUDE REGEX "/tests/part/(each|ep_session)\\.c$")
    add_library(weft_sim_parts STATIC EXCLUDE_FROM_ALL
        ${weft_sim_part_sources} ${PROJECT_SOURCE_DIR}/src/transport/conformance.c)
    target_include_directories(weft_sim_parts PUBLIC ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(weft_sim_parts PUBLIC weft_sim PkgConfig::CMOCKA)
    target_compile_definitions(weft_sim_parts PUBLIC
        WEFT_BUILD_DIR="${PROJECT_BINARY_DIR}" WEFT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    file(GLOB weft_sim_transport_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/transport/sim/*_test.c)
    weft_add_sim_tests(weft_sim_parts ${weft_sim_transport_tests})
endif()
