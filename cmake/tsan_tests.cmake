# What runs under ThreadSanitizer: tests of units and of threads, without the simulator (scripts/test.sh). The target
# tsan_tests builds them and nothing else.
add_custom_target(tsan_tests)
get_property(weft_all_tests DIRECTORY PROPERTY TESTS)
foreach(test IN LISTS weft_all_tests)
    get_property(labels TEST ${test} PROPERTY LABELS)
    if(("unit" IN_LIST labels OR "threads" IN_LIST labels) AND NOT "sim" IN_LIST labels)
        string(REGEX REPLACE "^([a-z]+)\\.([^.]*).*" "\\1_\\2" program ${test}) # multi.coll.threads.2: multi_coll
        string(REGEX REPLACE "^fuzz_replay_" "fuzz_" program ${program})
        add_dependencies(tsan_tests ${program})
    endif()
endforeach()
