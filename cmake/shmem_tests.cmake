# Tests of the OpenSHMEM face, programs of users on the installed interface: tests/faces/shmem/NAME.c is run by weftrun
# with N PEs, as test shmem.NAME.N; a line "/* PES: 2 4 */" sets the Ns.
if(NOT TARGET weft_shmem OR NOT TARGET weftrun)
    return()
endif()

set(weft_shmem_tests ${PROJECT_SOURCE_DIR}/tests/faces/shmem)

function(weft_add_shmem_program source library)
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "^weft_" "" program ${library}_${name})
    add_executable(${program} ${source})
    target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${program} PRIVATE weft_flags ${library} ${ARGN} Threads::Threads)
    target_compile_options(${program} PRIVATE -O0) # calls for every type, which are long to optimise and run once
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_dependencies(${program} weftrun)
endfunction()

function(weft_add_shmem_test test program)
    add_test(NAME ${test} COMMAND weftrun -n ${ARGN} ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${program}>)
    weft_describe_test(${test} "multi;shmem")
    math(EXPR eighths "8 * ${ARGN}")
    weft_set_processors(${test} ${eighths})
endfunction()

file(GLOB weft_shmem_test_sources CONFIGURE_DEPENDS ${weft_shmem_tests}/*.c)
foreach(source IN LISTS weft_shmem_test_sources)
    get_filename_component(name ${source} NAME_WE)
    weft_add_shmem_program(${source} weft_shmem weft)
    if(name STREQUAL "ends" OR name STREQUAL "mpi")
        continue()
    endif()
    set(counts 1 2 3 4 7 8)
    if(WEFT_SANITIZE)
        set(counts 1 3)
    endif()
    weft_read_numbers(${source} PES told)
    if(told)
        set(counts ${told})
    endif()
    foreach(pes IN LISTS counts)
        weft_add_shmem_test(shmem.${name}.${pes} shmem_${name} ${pes})
    endforeach()
endforeach()

# Threads of a PE under ThreadSanitizer, to which PEs are processes apart.
foreach(pes 1 3)
    set_property(TEST shmem.threads.${pes} APPEND PROPERTY LABELS threads)
endforeach()

# Over each network transport: four PEs on what counts as two nodes.
set(weft_shmem_far setup memory rma sized amo coll active wait order_lock teams threads generics app_sort app_grid
    app_aggregate)
foreach(transport ofi ucx)
    string(TOUPPER WEFT_${transport} has_transport)
    if(${has_transport} AND NOT WEFT_SANITIZE)
        foreach(name IN LISTS weft_shmem_far)
            set(test shmem.${name}.${transport}.4)
            add_test(NAME ${test} COMMAND weftrun -n 4 -x WEFT_TRANSPORT=map,${transport} ${weft_shmem_tests}/two_nodes.sh
                $<TARGET_FILE:shmem_${name}>)
            weft_describe_test(${test} "multi;shmem")
            weft_set_processors(${test} 32)
        endforeach()
    endif()
endforeach()

# A program's own routines must stand before those of the archive, too.
weft_add_shmem_program(${weft_shmem_tests}/profile.c weft_shmem_static weft_static)
weft_add_shmem_test(shmem.profile.static.3 shmem_static_profile 3)

if(Python3_FOUND)
    add_test(NAME shmem.ends COMMAND ${Python3_EXECUTABLE} ${weft_shmem_tests}/ends.py
        $<TARGET_FILE:weftrun> $<TARGET_FILE:shmem_ends>)
    weft_describe_test(shmem.ends "process;shmem")
    find_program(WEFT_CXX NAMES g++ c++)
    add_test(NAME shmem.manifest COMMAND ${Python3_EXECUTABLE} ${weft_shmem_tests}/manifest.py ${CMAKE_C_COMPILER}
        "${WEFT_CXX}" ${weft_shmem_include} $<TARGET_FILE:weft_shmem> $<TARGET_FILE:weft_shmem_static>)
    weft_describe_test(shmem.manifest "install;shmem")
    if(NOT WEFT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
        add_test(NAME shmem.nulls COMMAND ${Python3_EXECUTABLE} ${weft_shmem_tests}/nulls.py ${CMAKE_C_COMPILER}
            ${weft_shmem_include} ${PROJECT_BINARY_DIR})
        weft_describe_test(shmem.nulls "process;shmem")
    endif()
endif()

if(NOT WEFT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    foreach(pes 1 2 3 8)
        add_test(NAME shmem.cxx.${pes} COMMAND ${weft_shmem_tests}/cxx.sh ${weft_shmem_include} ${PROJECT_BINARY_DIR} ${pes})
        weft_describe_test(shmem.cxx.${pes} "multi;shmem")
    endforeach()
    if(WEFT_PMIX)
        foreach(order mpi-first shmem-first crossed)
            foreach(pes 1 3)
                add_test(NAME shmem.mpi.${order}.${pes}
                    COMMAND ${PROJECT_SOURCE_DIR}/tests/support/mpi.sh ${pes} $<TARGET_FILE:shmem_mpi> ${order})
                weft_describe_test(shmem.mpi.${order}.${pes} "process;shmem")
            endforeach()
        endforeach()
    endif()
endif()

foreach(header shmem.h pshmem.h shmemx.h mpp/shmem.h mpp/shmemx.h)
    foreach(compiler gcc g++ clang)
        add_test(NAME header.${compiler}.${header}
            COMMAND ${PROJECT_SOURCE_DIR}/tests/lint/header.sh ${compiler} ${weft_shmem_include} ${header})
        weft_describe_test(header.${compiler}.${header} lint)
    endforeach()
endforeach()
