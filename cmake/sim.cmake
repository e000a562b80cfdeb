# Tests of and with the simulator.
#   src/testing/sim/NAME_test.c             cmocka, as test sim_NAME_test (label unit)
#   src/testing/sim/transport/NAME_test.c   the same, with the parts that tests share
#   tests/sim/tree/NAME_test.c              the same, of scenes with PEs that are played (tests/sim/tree/scenes.h),
#                                           which the campaign has, too
#   tests/sim/inner/NAME_test.c             the same, on the library's inner calls in simulated worlds
function(weft_add_sim_tests library)
    foreach(source IN LISTS ARGN)
        get_filename_component(name ${source} NAME_WE)
        add_executable(sim_${name} ${source})
        target_link_libraries(sim_${name} PRIVATE ${library} PkgConfig::CMOCKA)
        set_target_properties(sim_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
        add_test(NAME sim_${name} COMMAND sim_${name})
        weft_describe_test(sim_${name} "unit;sim")
    endforeach()
endfunction()

if(CMOCKA_FOUND)
    file(GLOB weft_sim_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/testing/sim/*_test.c)
    weft_add_sim_tests(weft_sim ${weft_sim_tests})

    set(weft_sim_support_sources ${weft_support_sources} ${PROJECT_SOURCE_DIR}/tests/sim/each.c)
    list(FILTER weft_sim_support_sources EXCLUDE REGEX "/tests/support/each\\.c$")
    file(GLOB weft_sim_conformance_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/transport/*conformance.c)
    add_library(weft_sim_support STATIC EXCLUDE_FROM_ALL
        ${weft_sim_support_sources} ${weft_sim_conformance_sources})
    target_include_directories(weft_sim_support PUBLIC ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(weft_sim_support PUBLIC weft_sim PkgConfig::CMOCKA)
    target_compile_definitions(weft_sim_support PUBLIC
        WEFT_BUILD_DIR="${PROJECT_BINARY_DIR}" WEFT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    file(GLOB weft_sim_transport_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/testing/sim/transport/*_test.c)
    weft_add_sim_tests(weft_sim_support ${weft_sim_transport_tests})

    file(GLOB weft_sim_tree_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/sim/tree/*.c)
    list(FILTER weft_sim_tree_sources EXCLUDE REGEX "_test\\.c$")
    add_library(weft_sim_tree STATIC EXCLUDE_FROM_ALL ${weft_sim_tree_sources})
    target_include_directories(weft_sim_tree PUBLIC ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(weft_sim_tree PUBLIC weft_sim PkgConfig::CMOCKA)
    file(GLOB weft_sim_tree_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/sim/tree/*_test.c)
    weft_add_sim_tests(weft_sim_tree ${weft_sim_tree_tests})
    file(GLOB weft_sim_inner_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/sim/inner/*_test.c)
    add_library(weft_sim_inner STATIC EXCLUDE_FROM_ALL
        ${PROJECT_SOURCE_DIR}/tests/sim/inner/gone.c ${PROJECT_SOURCE_DIR}/tests/sim/inner/watch.c)
    target_include_directories(weft_sim_inner PUBLIC ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(weft_sim_inner PUBLIC weft_sim)
    weft_add_sim_tests(weft_sim_inner ${weft_sim_inner_tests})
endif()

# The campaign: make test runs it for a while from a fresh base seed; `make campaign` for long.
file(GLOB weft_campaign_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/sim/*.c)
list(FILTER weft_campaign_sources EXCLUDE REGEX "/(each|scale)\\.c$")
file(GLOB weft_campaign_scenes CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/sim/tree/*.c)
list(FILTER weft_campaign_scenes EXCLUDE REGEX "/(run|[a-z]*_test)\\.c$")
list(APPEND weft_campaign_sources ${weft_campaign_scenes}
    ${PROJECT_SOURCE_DIR}/tests/sim/inner/gone.c ${PROJECT_SOURCE_DIR}/tests/sim/inner/watch.c)
file(GLOB weft_campaign_support CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/ep_*.c)
list(FILTER weft_campaign_support EXCLUDE REGEX "/ep_scene\\.c$") # runs PEs as processes
list(APPEND weft_campaign_sources ${weft_campaign_support})
foreach(part check coll_session pattern)
    list(APPEND weft_campaign_sources ${PROJECT_SOURCE_DIR}/tests/support/${part}.c)
endforeach()
add_library(weft_campaign OBJECT EXCLUDE_FROM_ALL ${weft_campaign_sources})
target_include_directories(weft_campaign PUBLIC ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(weft_campaign PUBLIC weft_sim)
add_executable(campaign $<TARGET_OBJECTS:weft_campaign>)
target_link_libraries(campaign PRIVATE weft_sim)
set_target_properties(campaign PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
set(weft_campaign_seconds 20)
if(WEFT_SANITIZE)
    set(weft_campaign_seconds 10)
endif()
add_test(NAME sim_campaign COMMAND campaign --seeds 1000000000 --seconds ${weft_campaign_seconds})
weft_describe_test(sim_campaign "unit;sim")

# What a step costs to simulate, what grows how with the number of PEs, and that what crosses between domains is what it
# is on paper.
add_executable(scale ${PROJECT_SOURCE_DIR}/tests/sim/scale.c)
target_link_libraries(scale PRIVATE weft_sim)
set_target_properties(scale PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_test(NAME sim_crossing COMMAND scale step --pes 8,10,16 --domain 4 --seeds 4)
weft_describe_test(sim_crossing "unit;sim")

# Mistakes that the campaign, or another test, must find: a share of tests/sim/mutations, drawn afresh; all of them by
# `make mutations`. That all still fit the source is seen by itself.
if(Python3_FOUND)
    set(weft_mutations ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/sim/mutations/run.py ${PROJECT_SOURCE_DIR}
        ${PROJECT_BINARY_DIR})
    add_test(NAME lint.mutations COMMAND ${weft_mutations} --check)
    weft_describe_test(lint.mutations lint)
    if(NOT WEFT_SANITIZE AND CMAKE_GENERATOR STREQUAL "Ninja")
        add_test(NAME sim_mutations COMMAND ${weft_mutations} --count 20 --seconds 150)
        weft_describe_test(sim_mutations mutation)
        set_tests_properties(sim_mutations PROPERTIES TIMEOUT 600)
    endif()
endif()

# The models, checked exhaustively by spin.
if(NOT WEFT_SANITIZE)
    add_test(NAME sim_model COMMAND ${PROJECT_SOURCE_DIR}/src/testing/sim/model/check.sh)
    weft_describe_test(sim_model model)
    set_tests_properties(sim_model PROPERTIES TIMEOUT 600)
endif()
