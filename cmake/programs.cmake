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

# What the tools and the benchmarks measure with, src/tools/lib, which both link beside the library, static or shared;
# with its kernels, for those that measure inside kernels, when nvcc is here.
file(GLOB weft_tool_lib_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tools/lib/*.c)
add_library(weft_tool_lib STATIC ${weft_tool_lib_sources})
target_link_libraries(weft_tool_lib PRIVATE weft_flags PUBLIC ${CMAKE_DL_LIBS})
if(TARGET weft_tool_fatbin_made)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/tools/lib/kernels.c PROPERTIES
        COMPILE_DEFINITIONS "TOOL_FATBIN=\"${weft_tool_fatbin}\"" OBJECT_DEPENDS ${weft_tool_fatbin})
    add_dependencies(weft_tool_lib weft_tool_fatbin_made)
endif()

weft_add_programs(src/tools/*.c "weft_tool_lib;weft_static" programs "")
get_property(weft_tools TARGET programs PROPERTY MANUALLY_ADDED_DEPENDENCIES)
weft_cover(${weft_tools} weft_tool_lib)
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

# The benchmarks use the shared library, as most users do. The peers in bench/peers are built by scripts/bench.sh.
add_library(weft_bench INTERFACE)
target_include_directories(weft_bench INTERFACE ${PROJECT_SOURCE_DIR}/bench)
target_link_libraries(weft_bench INTERFACE weft_tool_lib weft)
weft_add_programs(bench/*.c weft_bench benches bench_)
add_dependencies(benches programs)
