# Executables, one a file, all in the top of the build directory. `programs` builds those of the demo, `benches` those
# of the benchmarks.
add_custom_target(programs)
add_custom_target(benches)

# Executables are named after their file; `prefix` comes before.
function(weft_add_programs pattern library group prefix)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${pattern})
    list(FILTER sources EXCLUDE REGEX "_test\\.c$")
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        string(PREPEND name "${prefix}")
        # A program may keep its parts in a folder of its name.
        string(REGEX REPLACE "\\.c$" "/*.c" parts ${source})
        file(GLOB parts CONFIGURE_DEPENDS ${parts})
        list(FILTER parts EXCLUDE REGEX "_test\\.c$")
        add_executable(${name} ${source} ${parts})
        target_link_libraries(${name} PRIVATE weft_flags ${library} m)
        set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
        add_dependencies(${group} ${name})
    endforeach()
endfunction()

# What the tools share, src/tools/part; with its kernels, for those that measure inside kernels, when nvcc is here.
file(GLOB weft_tool_part_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tools/part/*.c)
add_library(weft_tool_parts STATIC ${weft_tool_part_sources})
target_link_libraries(weft_tool_parts PRIVATE weft_flags PUBLIC weft_static ${CMAKE_DL_LIBS})
if(TARGET weft_tool_fatbin_made)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/tools/part/kernels.c PROPERTIES
        COMPILE_DEFINITIONS "TOOL_FATBIN=\"${weft_tool_fatbin}\"" OBJECT_DEPENDS ${weft_tool_fatbin})
    add_dependencies(weft_tool_parts weft_tool_fatbin_made)
endif()

weft_add_programs(src/tools/*.c weft_tool_parts programs "")
get_property(weft_tools TARGET programs PROPERTY MANUALLY_ADDED_DEPENDENCIES)
weft_cover(${weft_tools} weft_tool_parts)
weft_add_programs(examples/*.c weft programs "")

# What weft-info says of the build.
if(TARGET weft-info)
    string(TOUPPER "${CMAKE_BUILD_TYPE}" weft_build_type)
    string(STRIP "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${weft_build_type}}" weft_info_options)
    set(weft_info_sanitizer none)
    if(WEFT_SANITIZE)
        set(weft_info_sanitizer ${WEFT_SANITIZE})
    endif()
    set(weft_info_cuda 0)
    if(WEFT_CUDA_INCLUDE)
        set(weft_info_cuda 1)
    endif()
    target_compile_definitions(weft-info PRIVATE WEFT_INFO_OPTIONS="${weft_info_options}"
        WEFT_INFO_SANITIZER="${weft_info_sanitizer}" WEFT_INFO_CUDA=${weft_info_cuda})
endif()

# The benchmarks share bench/part, included as "part/NAME.h", and use the shared library, as most users do. The peers in
# bench/peers are built by scripts/bench.sh.
file(GLOB weft_bench_part_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/part/*.c)
add_library(weft_bench_parts STATIC ${weft_bench_part_sources})
target_include_directories(weft_bench_parts PUBLIC ${PROJECT_SOURCE_DIR}/bench)
target_link_libraries(weft_bench_parts PRIVATE weft_flags PUBLIC weft)
weft_add_programs(bench/*.c weft_bench_parts benches bench_)
add_dependencies(benches programs)
