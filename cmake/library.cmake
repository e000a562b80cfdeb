# libweft: compiled once; `weft` is the shared library, `weft_static` what tests link to reach internal symbols.
file(GLOB_RECURSE weft_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.c)
list(FILTER weft_sources EXCLUDE REGEX "_test\\.c$")
list(FILTER weft_sources EXCLUDE REGEX "/conformance\\.c$")
list(FILTER weft_sources EXCLUDE REGEX "/src/(tools|cuda|sim|transport/sim)/")

add_library(weft_objects OBJECT ${weft_sources})
target_link_libraries(weft_objects PRIVATE weft_flags Threads::Threads)

foreach(target weft weft_static)
    if(target STREQUAL "weft")
        add_library(${target} SHARED $<TARGET_OBJECTS:weft_objects>)
    else()
        add_library(${target} STATIC $<TARGET_OBJECTS:weft_objects>)
    endif()
    target_include_directories(${target} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
    target_link_libraries(${target} PUBLIC Threads::Threads ${CMAKE_DL_LIBS} m)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:weft_flags>)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
endforeach()
set_target_properties(weft PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
