# Which tests run on aarch64, under qemu-user (label aarch64; the target aarch64_tests builds them): the unit tests, a
# few of PEs as threads and as processes, the simulator. Left out is what the emulator cannot do or takes too long for.
set(weft_aarch64_not
    socket_test uid_test      # qemu 7.2 knows no cookies of sockets
    _bootstrap_test           # threads are gone later than they were joined, which the ledger counts
    sim_run_test sim_litmus_test local_bootstrap_test sim_campaign arithmetic_test) # minutes
set(weft_aarch64_also team_test onesided_test ep_test timeline_test
    multi.rma_atomics.3 multi.rma_order.2 multi.rma_order.3 multi.rma_types.2 multi.world_recreate.3)

string(REPLACE ";" "|" weft_aarch64_not "(${weft_aarch64_not})$")
add_custom_target(aarch64_tests)
get_property(weft_all_tests DIRECTORY PROPERTY TESTS)
foreach(test IN LISTS weft_all_tests)
    get_property(label TEST ${test} PROPERTY LABELS)
    if((label STREQUAL "unit" AND NOT test MATCHES "${weft_aarch64_not}") OR test IN_LIST weft_aarch64_also)
        string(REGEX REPLACE "^multi\\.([^.]*)\\..*" "multi_\\1" program ${test})
        if(TARGET ${program})
            set_property(TEST ${test} APPEND PROPERTY LABELS aarch64)
            add_dependencies(aarch64_tests ${program})
        endif()
    endif()
endforeach()

add_test(NAME sim_campaign.aarch64 COMMAND campaign --seeds 12)
weft_describe_test(sim_campaign.aarch64 aarch64)
add_dependencies(aarch64_tests campaign weftrun)
