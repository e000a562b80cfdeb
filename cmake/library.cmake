# libweft: compiled once; `weft` is the shared library, which exports what src/weft.map lists, `weft_static` the
# archive, through which tests reach internal symbols. Users of an installed weft know them as weft::weft and
# weft::static.
file(GLOB_RECURSE weft_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.c)
list(FILTER weft_sources EXCLUDE REGEX "_test\\.c$")
list(FILTER weft_sources EXCLUDE REGEX "conformance\\.c$")
list(FILTER weft_sources EXCLUDE REGEX "/src/(tools|cuda|testing|faces)/")

if(NOT WEFT_OFI)
    list(FILTER weft_sources EXCLUDE REGEX "/src/transport/ofi/")
endif()
if(NOT WEFT_UCX)
    list(FILTER weft_sources EXCLUDE REGEX "/src/transport/ucx/")
endif()
if(NOT WEFT_PMIX)
    list(FILTER weft_sources EXCLUDE REGEX "/src/bootstrap/pmix/")
endif()

# Sums and products have the same bits on every processor: no multiplication is fused with an addition.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/coll/fold.c PROPERTIES COMPILE_OPTIONS -ffp-contract=off)

# src/world/build.c has a hash of the sources. `weft_source_hash_made` brings it up to date.
include(cmake/library_files.cmake)
set(weft_source_hash ${PROJECT_BINARY_DIR}/generated/weft_source_hash.h)
weft_library_files(${PROJECT_SOURCE_DIR} weft_hashed)
list(TRANSFORM weft_hashed PREPEND ${PROJECT_SOURCE_DIR}/)
add_custom_command(OUTPUT ${weft_source_hash}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DHEADER=${weft_source_hash}
        -P ${PROJECT_SOURCE_DIR}/cmake/source_hash.cmake
    DEPENDS ${weft_hashed} ${PROJECT_SOURCE_DIR}/cmake/source_hash.cmake ${PROJECT_SOURCE_DIR}/cmake/library_files.cmake
    VERBATIM)
add_custom_target(weft_source_hash_made DEPENDS ${weft_source_hash})
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/world/build.c PROPERTIES
    COMPILE_OPTIONS "-include;${weft_source_hash}" OBJECT_DEPENDS ${weft_source_hash})

if(WEFT_SANITIZE) # every inline call as a function: the longest to compile
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/ffi/inlines.c PROPERTIES COMPILE_OPTIONS -O0)
endif()
add_library(weft_objects OBJECT ${weft_sources})
add_dependencies(weft_objects weft_source_hash_made)
target_link_libraries(weft_objects PRIVATE weft_flags Threads::Threads)
if(WEFT_OFI)
    target_compile_definitions(weft_objects PRIVATE WEFT_HAVE_OFI)
endif()
if(WEFT_UCX)
    target_compile_definitions(weft_objects PRIVATE WEFT_HAVE_UCX)
endif()
if(WEFT_HWLOC)
    target_compile_definitions(weft_objects PRIVATE WEFT_HAVE_HWLOC)
endif()
if(WEFT_PMIX)
    target_compile_definitions(weft_objects PRIVATE WEFT_HAVE_PMIX)
endif()
weft_cover(weft_objects)

add_library(weft SHARED $<TARGET_OBJECTS:weft_objects>)
add_library(weft_static STATIC $<TARGET_OBJECTS:weft_objects>)
foreach(target weft weft_static)
    target_include_directories(${target} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:weft_flags>)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME weft)
endforeach()
target_link_libraries(weft PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
target_link_libraries(weft_static PUBLIC Threads::Threads ${CMAKE_DL_LIBS} m)
set_target_properties(weft PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME weft)
set_target_properties(weft_static PROPERTIES EXPORT_NAME static)

set(weft_map ${PROJECT_SOURCE_DIR}/src/weft.map)
target_link_options(weft PRIVATE LINKER:--version-script=${weft_map})
set_property(TARGET weft PROPERTY LINK_DEPENDS ${weft_map})
