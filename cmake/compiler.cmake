# Language, warnings and sanitizers: everything links weft_flags, privately.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_FLAGS_RELEASE "-O3 -g -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")
if(WEFT_SANITIZE) # reports name lines, not variables
    string(APPEND CMAKE_C_FLAGS_DEBUG " -fno-var-tracking")
endif()

add_library(weft_flags INTERFACE)
target_include_directories(weft_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(weft_flags INTERFACE _GNU_SOURCE)
target_compile_options(weft_flags INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wvla -Wundef
    -Wpointer-arith -Wwrite-strings -Wformat=2)
if(WEFT_WERROR)
    target_compile_options(weft_flags INTERFACE -Werror)
endif()
if(WEFT_FAULTS)
    target_compile_definitions(weft_flags INTERFACE WEFT_FAULTS)
endif()
if(WEFT_SANITIZE)
    target_compile_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE})
endif()
if(WEFT_COVERAGE)
    target_link_options(weft_flags INTERFACE --coverage)
    target_compile_definitions(weft_flags INTERFACE WEFT_COVERAGE)
endif()

# Targets whose sources are in src/ and no tests.
function(weft_cover)
    if(WEFT_COVERAGE)
        foreach(target IN LISTS ARGN)
            target_compile_options(${target} PRIVATE --coverage -fprofile-abs-path)
        endforeach()
    endif()
endfunction()

# Functions that are generated for every type and each of which is a call of the library: what debuggers read of their
# variables takes a quarter of the time in which they compile; and under sanitizers, where nothing is timed, to optimise
# them takes half of it.
function(weft_compile_generated)
    set(options "$<$<CONFIG:Release>:-g1>")
    if(WEFT_SANITIZE)
        list(APPEND options -O0)
    endif()
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS "${options}")
endfunction()
