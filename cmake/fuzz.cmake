# Fuzzing of what comes from outside (tests/fuzz); TARGET is tree (the messages by which PEs meet), topo
# (descriptions of machines, lists of NICs), launcher (what launchers and plugins say), network (messages of PEs of
# other nodes), watch (what they say of who is gone), node (files of control groups, the socket at which memory is
# handed over, sizes in variables of the faces) or outside (the rest):
#   fuzz.replay_TARGET  the inputs that are kept and variations of them, by the library as it is built here (label unit)
#   fuzz.TARGET         libFuzzer, where clang has it, else a skip (label fuzz); the same inputs each time, so that what
#                       is found is found again (times and addresses do not guide it); tests/fuzz/run.sh without these
#                       options tries others. Runs end where new inputs have become rare: the last new edge comes before
#                       the 200th of tree and watch, and is among the kept inputs of network (found-*)
#   fuzz.shared         compiles for libFuzzer what all targets have, before them: else each would wait for the first
if(NOT WEFT_SANITIZE)
    add_test(NAME fuzz.shared
        COMMAND ${PROJECT_SOURCE_DIR}/tests/fuzz/run.sh shared ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    weft_describe_test(fuzz.shared "fuzz;slow")
    set_tests_properties(fuzz.shared PROPERTIES TIMEOUT 400 FIXTURES_SETUP fuzz_shared)
endif()

function(weft_add_fuzzing target runs)
    add_executable(fuzz_${target} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.c
        ${PROJECT_SOURCE_DIR}/tests/fuzz/${target}_fuzz.c ${PROJECT_SOURCE_DIR}/tests/fuzz/wire.c)
    target_include_directories(fuzz_${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(fuzz_${target} PRIVATE weft_flags weft_static)
    set_target_properties(fuzz_${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_test(NAME fuzz.replay_${target}
        COMMAND fuzz_${target} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${target} 100)
    weft_describe_test(fuzz.replay_${target} unit)
    if(NOT WEFT_SANITIZE)
        add_test(NAME fuzz.${target}
            COMMAND ${PROJECT_SOURCE_DIR}/tests/fuzz/run.sh ${target} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} -seed=1
                -runs=${runs} -entropic=0 -use_cmp=0)
        weft_describe_test(fuzz.${target} "fuzz;slow")
        set_tests_properties(fuzz.${target} PROPERTIES TIMEOUT 400 FIXTURES_REQUIRED fuzz_shared)
    endif()
endfunction()

weft_add_fuzzing(tree 5000)
weft_add_fuzzing(outside 100000)
weft_add_fuzzing(topo 50000)
weft_add_fuzzing(launcher 100000)
weft_add_fuzzing(node 100000)
weft_add_fuzzing(network 20000)
weft_add_fuzzing(watch 5000)
