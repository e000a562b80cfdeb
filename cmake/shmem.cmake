# The OpenSHMEM face: libweft_shmem, on the public headers of libweft alone. Users of an installed weft know it as
# weft::shmem, the archive as weft::shmem_static.
#
# src/faces/shmem/generate.py makes its headers, in include/ of the build directory, and most of its functions, of the
# tables there.
if(NOT Python3_FOUND)
    message(STATUS "weft: no python3, so the OpenSHMEM face is left out")
    return()
endif()

set(weft_shmem_source ${PROJECT_SOURCE_DIR}/src/faces/shmem)
set(weft_shmem_include ${PROJECT_BINARY_DIR}/include)
set(weft_shmem_generated ${PROJECT_BINARY_DIR}/generated/shmem)
set(weft_shmem_generate ${Python3_EXECUTABLE} ${weft_shmem_source}/generate.py)
set(weft_shmem_tables ${weft_shmem_source}/types.table ${weft_shmem_source}/routines.table ${weft_shmem_source}/generate.py
    ${weft_shmem_source}/../tables.py ${weft_shmem_source}/shmem.h.in ${weft_shmem_source}/pshmem.h.in ${weft_shmem_source}/shmemx.h.in)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${weft_shmem_source}/routines.table)
execute_process(COMMAND ${weft_shmem_generate} sections OUTPUT_VARIABLE weft_shmem_sections COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" weft_shmem_sections "${weft_shmem_sections}")

set(weft_shmem_headers "")
foreach(header shmem.h pshmem.h shmemx.h mpp/shmem.h mpp/shmemx.h)
    list(APPEND weft_shmem_headers ${weft_shmem_include}/${header})
endforeach()
set(weft_shmem_functions ${weft_shmem_sections})
list(TRANSFORM weft_shmem_functions REPLACE "(.+)" "${weft_shmem_generated}/\\1.c")
file(MAKE_DIRECTORY ${weft_shmem_include} ${weft_shmem_generated})
add_custom_command(OUTPUT ${weft_shmem_headers} ${weft_shmem_functions} ${weft_shmem_generated}/weft_shmem_weak.h
    COMMAND ${weft_shmem_generate} headers ${weft_shmem_include}
    COMMAND ${weft_shmem_generate} functions ${weft_shmem_generated}
    DEPENDS ${weft_shmem_tables} VERBATIM)

file(GLOB weft_shmem_sources CONFIGURE_DEPENDS ${weft_shmem_source}/*.c)
list(FILTER weft_shmem_sources EXCLUDE REGEX "_test\\.c$")
list(APPEND weft_shmem_sources ${weft_shmem_functions} ${weft_shmem_headers})

# While these exchange the pages of the executable's data nobody writes there, and so no function may be bound at its
# first call, where the archive is part of the executable.
set_source_files_properties(${weft_shmem_source}/static_data.c ${weft_shmem_source}/pages.c ${weft_shmem_source}/hold.c PROPERTIES
    COMPILE_OPTIONS -fno-plt)

add_library(weft_shmem_objects OBJECT ${weft_shmem_sources})
target_link_libraries(weft_shmem_objects PRIVATE weft_flags Threads::Threads)
target_include_directories(weft_shmem_objects PRIVATE ${weft_shmem_include} ${weft_shmem_generated})
add_custom_target(weft_shmem_headers_made DEPENDS ${weft_shmem_headers})
weft_cover(weft_shmem_objects)
weft_compile_generated(${weft_shmem_functions})

add_library(weft_shmem SHARED $<TARGET_OBJECTS:weft_shmem_objects>)
add_library(weft_shmem_static STATIC $<TARGET_OBJECTS:weft_shmem_objects>)
foreach(target weft_shmem weft_shmem_static)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:weft_flags>)
    target_include_directories(${target} INTERFACE
        $<BUILD_INTERFACE:${weft_shmem_include}> $<INSTALL_INTERFACE:include>)
    add_dependencies(${target} weft_shmem_headers_made)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME weft_shmem)
endforeach()
target_link_libraries(weft_shmem PRIVATE weft Threads::Threads)
target_link_libraries(weft_shmem_static PUBLIC weft_static)
set_target_properties(weft_shmem PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME shmem)
set_target_properties(weft_shmem PROPERTIES INSTALL_RPATH "$ORIGIN") # libweft lies beside it
set_target_properties(weft_shmem_static PROPERTIES EXPORT_NAME shmem_static)

set(weft_shmem_map ${PROJECT_SOURCE_DIR}/src/faces/shmem/shmem.map)
target_link_options(weft_shmem PRIVATE LINKER:--version-script=${weft_shmem_map})
set_property(TARGET weft_shmem PROPERTY LINK_DEPENDS ${weft_shmem_map})
