# Executables, one a file, all in the top of the build directory. `programs` builds those of the demo, `benches` those
# of the benchmarks.
add_custom_target(programs)
add_custom_target(benches)

function(weft_add_programs pattern library group)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${pattern})
    list(FILTER sources EXCLUDE REGEX "_test\\.c$")
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        # A program may keep its parts in a folder of its name.
        string(REGEX REPLACE "\\.c$" "/*.c" parts ${source})
        file(GLOB parts CONFIGURE_DEPENDS ${parts})
        list(FILTER parts EXCLUDE REGEX "_test\\.c$")
        add_executable(${name} ${source} ${parts})
        target_link_libraries(${name} PRIVATE weft_flags ${library})
        set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
        add_dependencies(${group} ${name})
    endforeach()
endfunction()

weft_add_programs(src/tools/*.c weft_static programs)
weft_add_programs(examples/*.c weft programs)

# What several benchmarks share: bench/part, included as "part/NAME.h".
file(GLOB weft_bench_part_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/part/*.c)
if(weft_bench_part_sources)
    add_library(weft_bench_parts STATIC ${weft_bench_part_sources})
    target_include_directories(weft_bench_parts PUBLIC ${PROJECT_SOURCE_DIR}/bench)
    target_link_libraries(weft_bench_parts PRIVATE weft_flags PUBLIC weft_static)
    weft_add_programs(bench/*.c weft_bench_parts benches)
else()
    weft_add_programs(bench/*.c weft_static benches)
endif()
add_dependencies(benches programs)
