# The OpenSHMEM face: libweft_shmem, on the public headers of libweft alone. Users of an installed weft know it as
# weft::shmem, the archive as weft::shmem_static.
file(GLOB weft_shmem_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/faces/shmem/*.c)
list(FILTER weft_shmem_sources EXCLUDE REGEX "_test\\.c$")

add_library(weft_shmem_objects OBJECT ${weft_shmem_sources})
target_link_libraries(weft_shmem_objects PRIVATE weft_flags Threads::Threads)
weft_cover(weft_shmem_objects)

add_library(weft_shmem SHARED $<TARGET_OBJECTS:weft_shmem_objects>)
add_library(weft_shmem_static STATIC $<TARGET_OBJECTS:weft_shmem_objects>)
foreach(target weft_shmem weft_shmem_static)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:weft_flags>)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME weft_shmem)
endforeach()
target_link_libraries(weft_shmem PRIVATE weft Threads::Threads)
target_link_libraries(weft_shmem_static PUBLIC weft_static)
set_target_properties(weft_shmem PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME shmem)
set_target_properties(weft_shmem_static PROPERTIES EXPORT_NAME shmem_static)

set(weft_shmem_map ${PROJECT_SOURCE_DIR}/src/faces/shmem/shmem.map)
target_link_options(weft_shmem PRIVATE LINKER:--version-script=${weft_shmem_map})
set_property(TARGET weft_shmem PROPERTY LINK_DEPENDS ${weft_shmem_map})
