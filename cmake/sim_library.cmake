# The simulator: libweft's sources compiled with WEFT_SIM, where src/testing/sim stands in for src/os/posix and for the
# access to symmetric memory. Users of an installed weft know it as weft::sim.
file(GLOB_RECURSE weft_sim_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.c)
list(FILTER weft_sim_sources EXCLUDE REGEX "(_test|conformance)\\.c$")
list(FILTER weft_sim_sources EXCLUDE REGEX "/src/(tools|ffi|faces|cuda|testing/fake_driver|os/posix)/")
# Of transports and bootstraps only those that call the system by src/os alone.
set(weft_sim_left_out ${weft_sim_sources})
list(FILTER weft_sim_left_out INCLUDE REGEX "/src/(transport|bootstrap)/[^/]+/")
list(FILTER weft_sim_left_out EXCLUDE REGEX
    "/src/(transport/(am|map|self)|bootstrap/(callback|crypto|env|local|self|tcp|threads|tree|uid|unix))/")
list(REMOVE_ITEM weft_sim_sources ${weft_sim_left_out})
list(FILTER weft_sim_sources EXCLUDE REGEX "/src/(common/copy|base/thread_state)\\.c$")

add_library(weft_sim STATIC ${weft_sim_sources})
add_dependencies(weft_sim weft_source_hash_made)
target_compile_definitions(weft_sim PUBLIC WEFT_SIM $<BUILD_INTERFACE:WEFT_FAULTS>)
target_compile_options(weft_sim PRIVATE -include ${PROJECT_SOURCE_DIR}/src/testing/sim/atomics.h)
target_include_directories(weft_sim PUBLIC $<INSTALL_INTERFACE:include>)
target_link_libraries(weft_sim PUBLIC $<BUILD_INTERFACE:weft_flags> Threads::Threads ${CMAKE_DL_LIBS} m)
set_target_properties(weft_sim PROPERTIES EXPORT_NAME sim)
# Loops over all types, which take three times as long to compile where they are fastest.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/ep/host/arithmetic.c PROPERTIES
    COMPILE_OPTIONS "$<$<STREQUAL:$<TARGET_PROPERTY:NAME>,weft_sim>:-O1>")
weft_cover(weft_sim)
