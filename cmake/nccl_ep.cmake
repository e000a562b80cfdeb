# The NCCL EP face: libweft_nccl_ep on the public headers of libweft alone, and the same again as libnccl_ep, in folders
# nccl_ep of include/ and lib/, for programs that link or load it by that name.
#
# It loads CUDA's driver and NCCL at run time and needs neither's headers: src/faces/nccl_ep/abi has what it uses.
set(weft_nccl_ep_source ${PROJECT_SOURCE_DIR}/src/faces/nccl_ep)
set(weft_nccl_ep_include ${weft_nccl_ep_source}/include)
file(GLOB weft_nccl_ep_sources CONFIGURE_DEPENDS ${weft_nccl_ep_source}/*.c)
list(FILTER weft_nccl_ep_sources EXCLUDE REGEX "_test\\.c$")

add_library(weft_nccl_ep_objects OBJECT ${weft_nccl_ep_sources})
target_link_libraries(weft_nccl_ep_objects PRIVATE weft_flags Threads::Threads)
target_include_directories(weft_nccl_ep_objects PRIVATE ${weft_nccl_ep_include} ${weft_nccl_ep_source}/abi)
target_compile_definitions(weft_nccl_ep_objects PRIVATE _GNU_SOURCE)
# Declared without an attribute, as a user's header is.
target_compile_options(weft_nccl_ep_objects PRIVATE -fvisibility=default)
weft_cover(weft_nccl_ep_objects)

set(weft_nccl_ep_map ${weft_nccl_ep_source}/nccl_ep.map)
function(weft_add_nccl_ep_library name output folder version)
    add_library(${name} SHARED $<TARGET_OBJECTS:weft_nccl_ep_objects>)
    add_library(${name}_static STATIC $<TARGET_OBJECTS:weft_nccl_ep_objects>)
    foreach(target ${name} ${name}_static)
        target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:weft_flags>)
        target_include_directories(${target} INTERFACE
            $<BUILD_INTERFACE:${weft_nccl_ep_include}> $<INSTALL_INTERFACE:include/nccl_ep>)
        set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME ${output}
            LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder} ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
    endforeach()
    target_link_libraries(${name} PRIVATE weft Threads::Threads ${CMAKE_DL_LIBS})
    target_link_libraries(${name}_static PUBLIC weft_static)
    target_link_options(${name} PRIVATE LINKER:--version-script=${weft_nccl_ep_map})
    set_target_properties(${name} PROPERTIES VERSION ${version} SOVERSION 0 LINK_DEPENDS ${weft_nccl_ep_map})
endfunction()
weft_add_nccl_ep_library(weft_nccl_ep weft_nccl_ep . ${PROJECT_VERSION})
weft_add_nccl_ep_library(nccl_ep nccl_ep nccl_ep 0.2.0)
set_target_properties(weft_nccl_ep PROPERTIES EXPORT_NAME nccl_ep INSTALL_RPATH "$ORIGIN")
set_target_properties(weft_nccl_ep_static PROPERTIES EXPORT_NAME nccl_ep_static)
set_target_properties(nccl_ep PROPERTIES EXPORT_NAME nccl_ep_by_name INSTALL_RPATH "$ORIGIN/..")
set_target_properties(nccl_ep_static PROPERTIES EXPORT_NAME nccl_ep_by_name_static)
