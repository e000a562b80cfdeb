# Tests. `ctest -R NAME` runs one, `ctest -L LABEL` a kind; exit 77 is a skip.
#   unit     src/**/NAME_test.c: cmocka
#   threads  tests/threads/NAME_test.c: cmocka, PEs are threads of the one process (what ThreadSanitizer can see)
#   process  tests/process/NAME_test.c: cmocka, starts processes itself
#   multi    tests/multi/NAME.c: by weftrun with N PEs, as test multi.NAME.N; a line "/* PES: 2 4 */" sets the Ns; those
#            on support/pe_main.h also with threads, as multi.NAME.threads.N (label threads), and on nodes for which
#            this host stands in, as multi.NAME.nodes.PESxPER (label network)
#   tools    tests/tools: the commands
#   property tests/property/NAME.c, as test property.NAME (label threads): thousands of random cases
#   lint     layer order, each public header alone
# A line "/* LEVELS: 0 1 2 3 */" in a cmocka test builds it once a level of optimisation, as NAME_test_O0 and so on.
# Tests of every kind may use tests/support (what a process holds, fault torture) and src/**/conformance.c.

# What is built for tests alone, hundreds of programs that mostly hold the library's archive, is linked by lld where
# that is here, in half of the time that GNU ld takes. What is installed is linked by the compiler's own, as are
# programs for aarch64.
find_program(WEFT_LLD NAMES ld.lld)
if(WEFT_LLD AND NOT CMAKE_CROSSCOMPILING)
    add_link_options(-fuse-ld=lld)
endif()

set(weft_test_skip 77)
set(weft_test_timeout_s 120)
if(WEFT_SANITIZE)
    set(weft_test_timeout_s 300)
endif()
set(weft_test_environment
    "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1:suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.txt"
    ${weft_aarch64_environment})

# PROCESSORS is in eighths of a processor: a test that computes takes 8 of them. Those that wait, for deadlines and for
# processes, use one on average, and twice that with a sanitizer: they begin first, on half of the processors, so that
# eight or four share one, and beside them the longest that compute (COST).
set(weft_waiting_tests
    uid_bootstrap_test env_bootstrap_test files_model_bootstrap_test local_bootstrap_test callback_bootstrap_test
    threads_bootstrap_test uid_test
    pmi_bootstrap_test gone_hosts_test gone_hosts_test.ucx
    before_meeting_test bootstrap_kill_test env_worlds_test failure_test failure_calls_test fork_test ep_killed_test
    team_dead_test world_faults_test
    coll_errors_test journal_test limits_test mask_test world_config_test world_life_test worlds_test)
# Of a few seconds, in which they use a quarter of a processor or less.
set(weft_light_tests
    lock_test rows_test oversubscribed_test weftrun_test world_abort_test ep_absent_test self_bootstrap_test onesided_test
    probe_test pass_test ep_mask_test python.world nvshmem.variables nvshmem.ends nccl_ep.timeout
    nccl_ep.timeout.many
    launchers.slurm launchers.hydra launchers.mpirun launchers.mpirun.hosts multi.rma_large.nodes.2x1
    multi.rma_large.nodes.3x1 cuda.on_host.ep_apart.processes.2 cuda.on_host.ep_apart.many.2 cuda.on_host.ep_alone
    cuda.on_host.ep_passing cuda.on_host.far.stuck)
# These wait longer where other work has the processors (tests/support/load.h).
set(weft_patient_tests
    before_meeting_test bootstrap_kill_test env_worlds_test failure_test failure_calls_test fork_test ep_killed_test
    limits_test gone_hosts_test gone_hosts_test.ucx namespaces_test oversubscribed_test worlds_test
    uid_bootstrap_test env_bootstrap_test files_model_bootstrap_test local_bootstrap_test callback_bootstrap_test
    threads_bootstrap_test uid_test pmi_bootstrap_test coll_errors_test mask_test team_dead_test world_config_test world_faults_test
    world_life_test weft_ep_bench sim_gone_test sim_tree_test)
set(weft_long_tests property.ep cuda.compile.calls cuda.compile.early cuda.compile.programs fuzz.shared fuzz.tree fuzz.outside
    fuzz.watch fuzz.node sim_campaign sim_model sim_mutations python.torch rails cuda.compile.ep nvshmem.registers
    cuda.on_host.domain.trays)
# These begin early, too, and `make check` has them.
set(weft_first_tests transport_plugin)

cmake_host_system_information(RESULT weft_processors QUERY NUMBER_OF_LOGICAL_CORES)

# For a test that computes: what it takes in place of one processor.
function(weft_set_processors name eighths)
    if(NOT name IN_LIST weft_waiting_tests AND NOT name IN_LIST weft_light_tests)
        set_tests_properties(${name} PROPERTIES PROCESSORS ${eighths})
    endif()
endfunction()

function(weft_describe_test name label)
    set(eighths 8)
    if(name IN_LIST weft_waiting_tests OR name IN_LIST weft_long_tests)
        list(APPEND label slow) # `make check` leaves them out
    endif()
    list(FIND weft_waiting_tests ${name} place)
    if(NOT place EQUAL -1)
        set(eighths 1)
        if(WEFT_SANITIZE)
            set(eighths 2)
        endif()
        math(EXPR lane "${place} % (4 * ${weft_processors} / ${eighths})")
        set_tests_properties(${name} PROPERTIES COST 2000 RESOURCE_LOCK waiting_${lane})
    elseif(name IN_LIST weft_light_tests)
        set(eighths 2)
        set_tests_properties(${name} PROPERTIES COST 1500)
    elseif(name IN_LIST weft_long_tests OR name IN_LIST weft_first_tests)
        set_tests_properties(${name} PROPERTIES COST 1000)
    endif()
    set_tests_properties(${name} PROPERTIES PROCESSORS ${eighths}
        LABELS "${label}" TIMEOUT ${weft_test_timeout_s} SKIP_RETURN_CODE ${weft_test_skip}
        ENVIRONMENT "${weft_test_environment}")
    if(name IN_LIST weft_patient_tests)
        math(EXPR timeout_s "${weft_test_timeout_s} * 4")
        set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout_s})
    endif()
endfunction()

if(CMOCKA_FOUND)
    file(GLOB weft_support_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.c)
    file(GLOB_RECURSE weft_conformance_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*conformance.c)
    add_library(weft_test_support STATIC ${weft_support_sources} ${weft_conformance_sources})
    target_include_directories(weft_test_support PUBLIC ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(weft_test_support PUBLIC weft_flags weft_static PkgConfig::CMOCKA)
    target_compile_definitions(weft_test_support PUBLIC
        WEFT_BUILD_DIR="${PROJECT_BINARY_DIR}" WEFT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
        $<$<BOOL:${WEFT_OFI}>:WEFT_HAVE_OFI> $<$<BOOL:${WEFT_UCX}>:WEFT_HAVE_UCX>)
endif()

# These two have every call for every type, which takes longest to compile, and see the same at every level of
# optimisation. The others test inline calls as programs compile them. With sanitizers, which look at each access, tests
# are optimised only where they ask for it (LEVELS), since that takes longer than it saves.
set(weft_plain_tests bad_input_test entries_test)

function(weft_add_test_program target source)
    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE weft_test_support)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    if(target IN_LIST weft_plain_tests OR WEFT_SANITIZE)
        target_compile_options(${target} PRIVATE -O0)
    endif()
    if(TARGET weftrun)
        add_dependencies(${target} weftrun)
    endif()
endfunction()

# The numbers on a line "/* KEY: 1 2 3 */" of a source; empty when there is none.
function(weft_read_numbers source key result)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} lines REGEX "^(//|/\\*) ${key}:[ 0-9]+")
    set(numbers "")
    if(lines)
        list(GET lines 0 line)
        string(REGEX MATCHALL "[0-9]+" numbers "${line}")
    endif()
    set(${result} ${numbers} PARENT_SCOPE)
endfunction()

# NAME_test.c becomes NAME_test; a name that is taken gets its folder's in front.
function(weft_add_cmocka_test source label suffix)
    get_filename_component(name ${source} NAME_WE)
    string(APPEND name "${suffix}")
    if(TARGET ${name})
        get_filename_component(folder ${source} DIRECTORY)
        get_filename_component(folder ${folder} NAME)
        set(name ${folder}_${name})
    endif()
    weft_add_test_program(${name} ${source})
    if(suffix)
        string(REPLACE "_O" "-O" flag ${suffix})
        target_compile_options(${name} PRIVATE ${flag})
    endif()
    add_test(NAME ${name} COMMAND ${name})
    weft_describe_test(${name} ${label})
endfunction()

function(weft_add_cmocka_tests label)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${ARGN})
    list(FILTER sources EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/(.*/)?sim/")
    if(NOT weft_cuda_sources)
        list(FILTER sources EXCLUDE REGEX "/src/cuda/")
    endif()
    if(NOT WEFT_OFI)
        list(FILTER sources EXCLUDE REGEX "/src/transport/(am|ofi)/")
    endif()
    # ThreadSanitizer does not see how the networks' own threads take turns.
    if(WEFT_SANITIZE STREQUAL "thread")
        list(FILTER sources EXCLUDE REGEX "/src/transport/ofi/")
    endif()
    if(NOT WEFT_UCX OR WEFT_SANITIZE STREQUAL "thread")
        list(FILTER sources EXCLUDE REGEX "/src/transport/ucx/")
    endif()
    if(NOT WEFT_FAULTS)
        list(FILTER sources EXCLUDE REGEX "/world_faults_test.c$") # nothing else in it
    endif()
    foreach(source IN LISTS sources)
        weft_read_numbers(${source} LEVELS levels)
        if(NOT levels)
            weft_add_cmocka_test(${source} ${label} "")
        endif()
        foreach(level IN LISTS levels)
            weft_add_cmocka_test(${source} ${label} _O${level})
        endforeach()
    endforeach()
endfunction()

# The numbers of PEs a multi-PE program runs with.
function(weft_read_pes source result)
    weft_read_numbers(${source} PES counts)
    if(NOT counts AND WEFT_SANITIZE STREQUAL "thread") # five take four times as long as three here
        set(counts 3)
    elseif(NOT counts AND WEFT_SANITIZE) # as processes, and two as threads
        set(counts 5)
    elseif(NOT counts)
        set(counts 1 2 3 5 8 16)
    endif()
    if(WEFT_SANITIZE)
        list(FILTER counts INCLUDE REGEX "^[1-5]$")
    endif()
    set(${result} ${counts} PARENT_SCOPE)
endfunction()

function(weft_add_multi_tests)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/multi/*.c)
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        weft_add_test_program(multi_${name} ${source})
        weft_read_pes(${source} counts)
        foreach(pes IN LISTS counts)
            set(test multi.${name}.${pes})
            add_test(NAME ${test} COMMAND weftrun -n ${pes} ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:multi_${name}>)
            set(labels multi)
            if(pes GREATER 8)
                list(APPEND labels slow)
            endif()
            weft_describe_test(${test} "${labels}")
            math(EXPR eighths "8 * ${pes}")
            weft_set_processors(${test} ${eighths})
        endforeach()
        weft_add_multi_threads_tests(${name} ${source} ${counts})
        weft_add_multi_nodes_tests(${name})
        weft_add_multi_ucx_test(${name})
    endforeach()
endfunction()

# A library in place of libfabric, of tests/provider, in a folder of that name.
function(weft_add_provider name)
    find_library(WEFT_OFI_LIBRARY NAMES libfabric.so.1 HINTS ${OFI_LIBDIR})
    add_library(${name}_provider SHARED ${PROJECT_SOURCE_DIR}/tests/provider/${name}.c
        ${PROJECT_SOURCE_DIR}/tests/provider/library.c)
    target_include_directories(${name}_provider PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${name}_provider PRIVATE weft_flags)
    target_link_options(${name}_provider PRIVATE
        -Wl,--version-script=${PROJECT_SOURCE_DIR}/tests/provider/libfabric.map)
    target_compile_definitions(${name}_provider PRIVATE REAL_LIBRARY="${WEFT_OFI_LIBRARY}"
        PROVIDER="${name}")
    set_target_properties(${name}_provider PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/provider/${name}
        PREFIX "" OUTPUT_NAME libfabric SUFFIX .so.1 NO_SONAME ON C_VISIBILITY_PRESET default)
endfunction()

# The suite of transports over a libfabric that asks all that a provider may ask, by each order of large puts, with keys
# of more than 64 bits, and where those are too long, so that there are no writes and reads. The
# orders are tried on optimised code, the keys with sanitizers; and a provider that takes short messages without a
# completion (STRICT_INJECT), fewer than it is asked for, and as many, with which there are rings.
function(weft_add_strict_tests)
    weft_add_provider(strict)
    set(strict WEFT_RMA_ORDER=provider WEFT_RMA_ORDER=counted WEFT_RMA_ORDER=completion STRICT_INJECT=64
        STRICT_INJECT=192)
    if(WEFT_SANITIZE)
        set(strict STRICT_KEYS=long STRICT_KEYS=longer)
    endif()
    foreach(variables IN LISTS strict)
        string(REGEX REPLACE ".*=" "" word ${variables})
        if(variables MATCHES "INJECT")
            set(word inject.${word})
        endif()
        add_test(NAME ofi_test.strict.${word} COMMAND ofi_test strict)
        weft_describe_test(ofi_test.strict.${word} "unit;network;slow")
        set_property(TEST ofi_test.strict.${word} APPEND PROPERTY ENVIRONMENT
            "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/tests/provider/strict" WEFT_RMA_BYTES=257 ${variables})
        if(word STREQUAL "counted") # one at a time would come in their order
            set_property(TEST ofi_test.strict.${word} APPEND PROPERTY ENVIRONMENT STRICT_QUEUE=8)
        endif()
    endforeach()
endfunction()

# Those in which most goes over the network also over UCX, as test multi.NAME.ucx.PESxPER.
function(weft_add_multi_ucx_test name)
    set(shape 3x2)
    if(NOT WEFT_UCX OR WEFT_SANITIZE OR CMAKE_CROSSCOMPILING OR
       NOT name MATCHES "^(rma_(order|traffic|atomics|sizes|waits|flood|growth)|coll|ep_crossing|team_join|world_idle|world_recreate)$")
        return()
    elseif(name MATCHES "^world_(idle|recreate)$")
        set(shape 2x1)
    elseif(name STREQUAL "rma_flood")
        set(shape 3x1)
    elseif(name STREQUAL "ep_crossing")
        set(shape 4x2)
    endif()
    string(REPLACE "x" ";" numbers ${shape})
    list(GET numbers 0 pes)
    list(GET numbers 1 per)
    set(test multi.${name}.ucx.${shape})
    add_test(NAME ${test} COMMAND weftrun -n ${pes} ${PROJECT_SOURCE_DIR}/tests/support/nodes.sh ${per}
        $<TARGET_FILE:multi_${name}>)
    weft_describe_test(${test} "multi;network;slow")
    weft_set_processors(${test} 16)
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT WEFT_TRANSPORT=ucx)
endfunction()

# The same programs on several nodes, for which this host stands in, as test multi.NAME.nodes.PESxPER: so many PEs, so
# many of them to a node.
function(weft_add_multi_nodes_tests name)
    set(shapes 4x2 3x2)
    if(NOT WEFT_OFI OR CMAKE_CROSSCOMPILING)
        return()
    elseif(name STREQUAL "world_recreate")
        set(shapes 2x1) # many worlds, each with connections of its own
    elseif(name STREQUAL "world_idle")
        set(shapes 2x1 3x2)
    elseif(name STREQUAL "world_modules")
        set(shapes 4x2) # for even numbers of PEs
    elseif(name STREQUAL "rma_flood")
        set(shapes 3x1) # the stopped PE, the one that floods it, and one beside
    elseif(name STREQUAL "rma_large")
        set(shapes 2x1 3x1) # by two of the orders of a network's own puts
    elseif(WEFT_SANITIZE)
        set(shapes 3x2)
    endif()
    foreach(shape IN LISTS shapes)
        string(REPLACE "x" ";" numbers ${shape})
        list(GET numbers 0 pes)
        list(GET numbers 1 per)
        set(test multi.${name}.nodes.${shape})
        add_test(NAME ${test} COMMAND weftrun -n ${pes} ${PROJECT_SOURCE_DIR}/tests/support/nodes.sh ${per}
            $<TARGET_FILE:multi_${name}>)
        set(labels multi network)
        if(NOT name MATCHES "^(rma_order|ep_steps)$")
            list(APPEND labels slow)
        endif()
        weft_describe_test(${test} "${labels}")
        weft_set_processors(${test} 16)
        if(name MATCHES "^(rma_order|rma_traffic|world_idle)$" AND shape STREQUAL "3x2")
            set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT WEFT_PROGRESS=inline)
        endif()
        # The network's own puts and gets, from the least bytes on; 3x2 has the defaults.
        if(shape STREQUAL "4x2" OR shape STREQUAL "2x1")
            set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT WEFT_RMA_BYTES=257 WEFT_RMA_ORDER=completion)
        elseif(name STREQUAL "rma_large")
            set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT WEFT_RMA_BYTES=257 WEFT_RMA_ORDER=counted)
        elseif(name STREQUAL "rma_order")
            set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT WEFT_RMA_BYTES=257 WEFT_RMA_ORDER=provider)
        endif()
        # For each world libfabric clears 17 MB, of fresh pages under AddressSanitizer, unless connections have short
        # queues.
        if(WEFT_SANITIZE AND name STREQUAL "world_recreate")
            set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT FI_OFI_RXM_MSG_TX_SIZE=64 FI_OFI_RXM_MSG_RX_SIZE=64)
        endif()
    endforeach()
endfunction()

# Programs on support/pe_main.h also run their PEs as threads of one process, where ThreadSanitizer sees them: as test
# multi.NAME.threads.N.
function(weft_add_multi_threads_tests name source)
    file(STRINGS ${source} uses REGEX "pe_main\\(argc")
    if(NOT uses)
        return()
    endif()
    set(counts ${ARGN})
    if(counts STREQUAL "5") # see weft_read_pes
        set(counts 2)
    endif()
    foreach(pes IN LISTS counts)
        if(WEFT_SANITIZE OR pes EQUAL 5)
            set(test multi.${name}.threads.${pes})
            add_test(NAME ${test} COMMAND multi_${name} --threads ${pes})
            weft_describe_test(${test} threads)
        endif()
    endforeach()
endfunction()

# Random cases by the thousand, 25 with each of 16 numbers of ranks and 3 ways of counts; fewer where each is slow.
function(weft_add_property_tests)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/property/*.c)
    set(cases 1200)
    if(WEFT_SANITIZE STREQUAL "thread") # of which 12 with a number of ranks
        set(cases 96)
    elseif(WEFT_SANITIZE)
        set(cases 200)
    endif()
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        weft_add_test_program(property_${name} ${source})
        add_test(NAME property.${name} COMMAND property_${name} --cases ${cases})
        weft_describe_test(property.${name} threads)
        weft_set_processors(property.${name} 12)
        set_tests_properties(property.${name} PROPERTIES TIMEOUT 900)
    endforeach()
endfunction()

# tests/input: one program, whose table must name every function of the public headers.
function(weft_add_bad_input_test)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/input/*.c)
    weft_add_test_program(bad_input_test "${sources}")
    add_test(NAME bad_input_test COMMAND bad_input_test)
    weft_describe_test(bad_input_test threads)
    if(Python3_FOUND)
        add_test(NAME bad_input_names COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/input/names.py
            ${CMAKE_C_COMPILER} ${PROJECT_SOURCE_DIR}/include $<TARGET_FILE:bad_input_test>)
        weft_describe_test(bad_input_names lint)
    endif()
endfunction()

if(CMOCKA_FOUND)
    weft_add_property_tests()
    weft_add_cmocka_tests(unit ${PROJECT_SOURCE_DIR}/src/*_test.c)
    weft_add_cmocka_tests(threads ${PROJECT_SOURCE_DIR}/tests/threads/*_test.c)
    weft_add_cmocka_tests(process ${PROJECT_SOURCE_DIR}/tests/process/*_test.c)
    set_property(TEST weftrun_test APPEND PROPERTY LABELS tools)
    if(TEST ucx_test AND WEFT_SANITIZE)
        # The leak checker of gcc 12 crashes by itself at its end ("Tracer caught signal 11") in 1 of 12 runs, after all
        # checks have passed. test_leaves_nothing counts the library's allocations.
        set_property(TEST ucx_test APPEND PROPERTY ENVIRONMENT
            "ASAN_OPTIONS=detect_leaks=0:strict_string_checks=1:allocator_may_return_null=1")
    endif()
    set_property(TEST oversubscribed_test fork_test APPEND PROPERTY LABELS covered) # what only processes run, with sanitizers too
    weft_add_bad_input_test()
    if(TARGET weftrun)
        weft_add_multi_tests()
    endif()
    if(WEFT_PMIX AND NOT CMAKE_CROSSCOMPILING AND NOT WEFT_SANITIZE)
        add_test(NAME mpirun COMMAND sh ${PROJECT_SOURCE_DIR}/tests/tools/mpirun.sh ${PROJECT_BINARY_DIR}/tests
            ${PROJECT_SOURCE_DIR}/tests/support/nodes.sh)
        weft_describe_test(mpirun "multi;network;slow")
        weft_set_processors(mpirun 16)
    endif()
    # Launchers of others, on one host and on several network namespaces.
    if(NOT CMAKE_CROSSCOMPILING AND NOT WEFT_SANITIZE)
        add_executable(launched ${PROJECT_SOURCE_DIR}/tests/tools/launched.c)
        target_link_libraries(launched PRIVATE weft_flags weft_static)
        set_target_properties(launched PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
        add_test(NAME bootstrap_plugin COMMAND sh ${PROJECT_SOURCE_DIR}/tests/tools/bootstrap_plugin.sh
            ${CMAKE_C_COMPILER} ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/examples/bootstrap_plugin/files.c
            $<TARGET_FILE:launched>)
        weft_describe_test(bootstrap_plugin "process;tools")
        if(TARGET weftrun)
            weft_add_test_program(plugin_conformance ${PROJECT_SOURCE_DIR}/tests/tools/plugin_conformance.c)
            add_test(NAME transport_plugin COMMAND sh ${PROJECT_SOURCE_DIR}/tests/tools/transport_plugin.sh
                ${CMAKE_C_COMPILER} ${PROJECT_SOURCE_DIR}/include
                ${PROJECT_SOURCE_DIR}/examples/transport_plugin/sockets.c $<TARGET_FILE:plugin_conformance>
                $<TARGET_FILE:gone_hosts_test> $<TARGET_FILE:launched> $<TARGET_FILE:weftrun> ${PROJECT_SOURCE_DIR}/tests/support/nodes.sh
                $<TARGET_FILE:multi_rma_order> $<TARGET_FILE:multi_coll>)
            weft_describe_test(transport_plugin "process;tools;network")
            set_tests_properties(transport_plugin PROPERTIES PROCESSORS 4)
        endif()
        if(TARGET weft_shmem)
            add_test(NAME launchers.slurm COMMAND sh ${PROJECT_SOURCE_DIR}/tests/tools/slurm.sh $<TARGET_FILE:launched>
                ${PROJECT_BINARY_DIR}/oshrun ${PROJECT_BINARY_DIR}/tests/shmem_setup)
            weft_describe_test(launchers.slurm "multi;network;slow")
            weft_set_processors(launchers.slurm 16)
        endif()
        foreach(launcher hydra mpirun)
            foreach(hosts "" hosts)
                string(REGEX REPLACE "\\.$" "" test "launchers.${launcher}.${hosts}")
                if((WEFT_OFI OR NOT hosts) AND (WEFT_PMIX OR launcher STREQUAL "hydra"))
                    add_test(NAME ${test} COMMAND sh ${PROJECT_SOURCE_DIR}/tests/tools/launchers.sh ${launcher}
                        $<TARGET_FILE:launched> ${hosts})
                    weft_describe_test(${test} "multi;network;slow")
                    if(NOT hosts) # without a network of its own, and with a port that is fixed
                        set_tests_properties(${test} PROPERTIES RESOURCE_LOCK launcher)
                    endif()
                endif()
            endforeach()
        endforeach()
    endif()
endif()

# The examples that check themselves.
if(TARGET weftrun)
    foreach(example moe_least moe_minimal moe_train moe_decode)
        add_test(NAME example.${example} COMMAND weftrun -n 3 ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${example}>)
        weft_describe_test(example.${example} multi)
        weft_set_processors(example.${example} 16)
    endforeach()
endif()

if(TARGET weft-ep-bench AND Python3_FOUND)
    add_test(NAME weft_ep_bench COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tools/weft_ep_bench.py
        $<TARGET_FILE:weft-ep-bench> $<TARGET_FILE:weftrun> ${PROJECT_BINARY_DIR}/fake)
    weft_describe_test(weft_ep_bench tools)
endif()

if(CMAKE_C_COMPILER_ID STREQUAL GNU AND Python3_FOUND AND NOT WEFT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    add_test(NAME coverage
        COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tools/coverage.py ${CMAKE_C_COMPILER})
    weft_describe_test(coverage tools)
endif()

if(TARGET bench_host AND TARGET bench_world AND TARGET weftrun AND Python3_FOUND)
    add_test(NAME benches COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tools/benches.py
        $<TARGET_FILE:bench_host> $<TARGET_FILE:bench_world> $<TARGET_FILE:weftrun>)
    weft_describe_test(benches tools)
    weft_set_processors(benches 16)
endif()

# The OpenSHMEM face from outside, by oshcc and oshrun. (What these compile has no sanitizer.)
if(TARGET weft_shmem AND TARGET weftrun AND Python3_FOUND AND NOT WEFT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    add_test(NAME osh_commands COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tools/osh_commands.py
        ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    weft_describe_test(osh_commands tools)
    add_test(NAME static_data COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/faces/static/static_data.py
        ${PROJECT_SOURCE_DIR}/tests/faces/static ${PROJECT_BINARY_DIR})
    weft_describe_test(static_data "process;slow")
    weft_set_processors(static_data 16)
endif()

if(TARGET weft-perf AND Python3_FOUND)
    add_test(NAME weft_perf COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tools/weft_perf.py
        $<TARGET_FILE:weft-perf> $<TARGET_FILE:weftrun> ${PROJECT_BINARY_DIR}/fake)
    weft_describe_test(weft_perf tools)
endif()

# A library as if of other sources: two builds in one world are told apart. (Sanitizers cannot be loaded so.)
if(TARGET weftrun AND TARGET hello AND Python3_FOUND AND NOT WEFT_SANITIZE)
    set(weft_other_build ${PROJECT_BINARY_DIR}/generated/other_build.c)
    file(CONFIGURE OUTPUT ${weft_other_build} CONTENT
        "#define WEFTI_SOURCE_HASH 1\n#include \"${PROJECT_SOURCE_DIR}/src/world/build.c\"\n")
    add_library(weft_other_build SHARED ${weft_other_build}
        $<FILTER:$<TARGET_OBJECTS:weft_objects>,EXCLUDE,world/build\\.c>)
    target_link_libraries(weft_other_build PRIVATE weft_flags Threads::Threads ${CMAKE_DL_LIBS} m)
    target_link_options(weft_other_build PRIVATE LINKER:--version-script=${weft_map})
    set_target_properties(weft_other_build PROPERTIES OUTPUT_NAME weft VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/other_build)
    add_test(NAME builds COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tools/builds.py ${PROJECT_SOURCE_DIR}
        $<TARGET_FILE:weftrun> $<TARGET_FILE:hello> $<TARGET_FILE:weft_other_build> ${CMAKE_COMMAND})
    weft_describe_test(builds tools)
endif()

if(TARGET weft-info AND Python3_FOUND)
    add_test(NAME weft_info COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tools/weft_info.py
        $<TARGET_FILE:weft-info> $<TARGET_FILE:weftrun>)
    weft_describe_test(weft_info tools)
    add_test(NAME weft_info_topo COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tools/weft_info_topo.py
        $<TARGET_FILE:weft-info> ${PROJECT_SOURCE_DIR}/tests/topo
        $<$<TARGET_EXISTS:fake_nvml>:${PROJECT_BINARY_DIR}/fake>)
    weft_describe_test(weft_info_topo tools)
    if(WEFT_OFI AND TARGET multi_rma_order AND NOT CMAKE_CROSSCOMPILING)
        set(weft_nics_gpu_arguments)
        if(TARGET gpu_programs) # then cuda_tests.cmake makes it
            set(weft_nics_gpu_arguments ${PROJECT_BINARY_DIR}/tests/domain_on_host ${PROJECT_BINARY_DIR}/fake)
        endif()
        add_test(NAME nics COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tools/nics.py $<TARGET_FILE:weft-info>
            $<TARGET_FILE:weftrun> ${PROJECT_SOURCE_DIR}/tests/support/nodes.sh $<TARGET_FILE:multi_rma_order>
            ${weft_nics_gpu_arguments})
        weft_describe_test(nics "tools;network")
    endif()
    if(TARGET ofi_test AND NOT CMAKE_CROSSCOMPILING)
        add_executable(rails ${PROJECT_SOURCE_DIR}/tests/tools/rails.c)
        target_link_libraries(rails PRIVATE weft_flags weft_static)
        set_target_properties(rails PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
        # With sanitizers only ofi_test runs the conformance suite: by rails it takes four fifths of the test.
        set(weft_rails_suite 1)
        if(WEFT_SANITIZE)
            set(weft_rails_suite 0)
        endif()
        add_test(NAME rails COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tools/rails.py $<TARGET_FILE:rails>
            $<TARGET_FILE:ofi_test> ${PROJECT_BINARY_DIR}/tests/provider $<BOOL:${WEFT_UCX}>
            ${weft_rails_suite})
        weft_add_provider(ports)
        weft_describe_test(rails "tools;network;slow")
        weft_set_processors(rails 12)
        set_tests_properties(rails PROPERTIES TIMEOUT 600)
    endif()
    if(TARGET ofi_test)
        weft_add_strict_tests()
    endif()
    if(WEFT_OFI AND WEFT_UCX AND NOT CMAKE_CROSSCOMPILING)
        add_test(NAME networks COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tools/networks.py
            $<TARGET_FILE:weft-info> $<TARGET_FILE:weftrun> ${PROJECT_SOURCE_DIR}/tests/support/nodes.sh
            ${PROJECT_BINARY_DIR}/tests/provider/strict)
        weft_describe_test(networks "tools;network")
    endif()
    if(WEFT_UCX AND TARGET gone_hosts_test)
        add_test(NAME gone_hosts_test.ucx COMMAND gone_hosts_test ucx)
        weft_describe_test(gone_hosts_test.ucx "process;network")
    endif()
    add_test(NAME weftrun_terminal COMMAND ${Python3_EXECUTABLE}
        ${PROJECT_SOURCE_DIR}/tests/tools/weftrun_terminal.py $<TARGET_FILE:weftrun>)
    weft_describe_test(weftrun_terminal tools)
    if(TARGET multi_coll)
        set(weft_nvtx_listener none)
        if(WEFT_CUDA_INCLUDE AND EXISTS ${WEFT_CUDA_INCLUDE}/nvtx3/nvToolsExt.h)
            add_library(nvtx_listener MODULE ${PROJECT_SOURCE_DIR}/tests/tools/nvtx_listener.c)
            target_include_directories(nvtx_listener SYSTEM PRIVATE ${WEFT_CUDA_INCLUDE})
            target_link_libraries(nvtx_listener PRIVATE weft_flags)
            set_target_properties(nvtx_listener PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
            set(weft_nvtx_listener $<TARGET_FILE:nvtx_listener>)
        endif()
        add_test(NAME timeline COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tools/timeline.py
            $<TARGET_FILE:weftrun> $<TARGET_FILE:hello> $<TARGET_FILE:multi_coll> $<TARGET_FILE:multi_ep_steps> ${weft_nvtx_listener})
        weft_describe_test(timeline tools)
    endif()
endif()

include(${CMAKE_CURRENT_LIST_DIR}/lint.cmake)

# The Python packages: with the standard library alone, with numpy, and with torch. What is not there makes a skip, with
# its name.
if(TARGET weft_python)
    # The first Python here that has numpy: the system's has that of Debian's package. The extension is for all.
    set(weft_test_python ${Python3_EXECUTABLE})
    foreach(python ${Python3_EXECUTABLE} /usr/bin/python3)
        execute_process(COMMAND ${python} -c "import sys, numpy; sys.exit(sys.version_info < (3, 10))"
            RESULT_VARIABLE lacks_numpy OUTPUT_QUIET ERROR_QUIET)
        if(lacks_numpy EQUAL 0)
            set(weft_test_python ${python})
            break()
        endif()
    endforeach()
    foreach(what world numpy torch)
        set(weft_python_test ${PROJECT_SOURCE_DIR}/python/tests/test_${what}.py)
        if(what STREQUAL "torch")
            set(weft_python_test ${PROJECT_SOURCE_DIR}/python/tests/run_torch.py)
        endif()
        add_test(NAME python.${what} COMMAND ${weft_test_python} -B ${weft_python_test})
        weft_describe_test(python.${what} "process;python")
        set_property(TEST python.${what} APPEND PROPERTY ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/python")
    endforeach()
    weft_set_processors(python.torch 16)
    set_tests_properties(python.torch PROPERTIES TIMEOUT 900)
endif()
