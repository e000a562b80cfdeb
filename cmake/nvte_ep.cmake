# The face of TransformerEngine's calls of expert parallelism: libweft_nvte_ep, which has the NCCL EP face's objects
# inside and exports TransformerEngine's names and weft_nvte.h's alone. Its headers are in folder nvte_ep of include/.
set(weft_nvte_ep_source ${PROJECT_SOURCE_DIR}/src/faces/nvte)
set(weft_nvte_ep_include ${weft_nvte_ep_source}/include)
file(GLOB weft_nvte_ep_sources CONFIGURE_DEPENDS ${weft_nvte_ep_source}/*.c)
list(FILTER weft_nvte_ep_sources EXCLUDE REGEX "_test\\.c$")

add_library(weft_nvte_ep_objects OBJECT ${weft_nvte_ep_sources})
target_link_libraries(weft_nvte_ep_objects PRIVATE weft_flags Threads::Threads)
target_include_directories(weft_nvte_ep_objects PRIVATE ${weft_nvte_ep_include} ${weft_nccl_ep_include}
    ${weft_nccl_ep_source}/abi)
target_compile_definitions(weft_nvte_ep_objects PRIVATE _GNU_SOURCE WEFT_NVTE_WITHOUT_CUDA)
target_compile_options(weft_nvte_ep_objects PRIVATE -fvisibility=default)
weft_cover(weft_nvte_ep_objects)

set(weft_nvte_ep_map ${weft_nvte_ep_source}/nvte_ep.map)
set(weft_nvte_ep_all $<TARGET_OBJECTS:weft_nvte_ep_objects> $<TARGET_OBJECTS:weft_nccl_ep_objects>)
add_library(weft_nvte_ep SHARED ${weft_nvte_ep_all})
add_library(weft_nvte_ep_static STATIC ${weft_nvte_ep_all})
foreach(target weft_nvte_ep weft_nvte_ep_static)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:weft_flags>)
    target_include_directories(${target} INTERFACE
        $<BUILD_INTERFACE:${weft_nvte_ep_include}> $<INSTALL_INTERFACE:include/nvte_ep>)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME weft_nvte_ep)
endforeach()
target_link_libraries(weft_nvte_ep PUBLIC weft PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
target_link_libraries(weft_nvte_ep_static PUBLIC weft_static)
target_link_options(weft_nvte_ep PRIVATE LINKER:--version-script=${weft_nvte_ep_map})
set_target_properties(weft_nvte_ep PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 EXPORT_NAME nvte_ep
    LINK_DEPENDS ${weft_nvte_ep_map} INSTALL_RPATH "$ORIGIN")
set_target_properties(weft_nvte_ep_static PROPERTIES EXPORT_NAME nvte_ep_static)
