# Fuzzing of the messages by which PEs meet (tests/fuzz):
#   fuzz.replay     the inputs that are kept and variations of them, by the library as it is built here (label unit)
#   fuzz.tree       libFuzzer, where clang has it, else a skip (label fuzz); the same inputs each time, so that what is found is
#                   found again (times and addresses do not guide it); tests/fuzz/run.sh without these options tries others
add_executable(fuzz_replay ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.c ${PROJECT_SOURCE_DIR}/tests/fuzz/tree_fuzz.c
    ${PROJECT_SOURCE_DIR}/tests/fuzz/wire.c)
target_include_directories(fuzz_replay PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(fuzz_replay PRIVATE weft_flags weft_static)
set_target_properties(fuzz_replay PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_test(NAME fuzz.replay COMMAND fuzz_replay ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus 100)
weft_describe_test(fuzz.replay unit)

if(NOT WEFT_SANITIZE)
    add_test(NAME fuzz.tree
        COMMAND ${PROJECT_SOURCE_DIR}/tests/fuzz/run.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} -seed=1
            -runs=250000 -entropic=0 -use_cmp=0)
    weft_describe_test(fuzz.tree fuzz)
    set_tests_properties(fuzz.tree PROPERTIES TIMEOUT 400)
endif()
