# Tests that read the source instead of running it: the order of the layers, and each public header by itself.
# tests/lint/<name>.py reads the source tree; with BUILD also what is built; with TESTED it has a test of its own.
function(weft_lint name)
    cmake_parse_arguments(PARSE_ARGV 1 lint "BUILD;TESTED" "" "")
    set(program ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/lint/${name}.py ${PROJECT_SOURCE_DIR})
    if(lint_BUILD)
        list(APPEND program ${PROJECT_BINARY_DIR})
    endif()
    add_test(NAME lint.${name} COMMAND ${program})
    weft_describe_test(lint.${name} lint)
    if(lint_TESTED)
        add_test(NAME lint.${name}_test COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/lint/${name}_test.py)
        weft_describe_test(lint.${name}_test lint)
    endif()
endfunction()

if(Python3_FOUND)
    weft_lint(layers TESTED)
    weft_lint(symbols BUILD TESTED)
    weft_lint(words TESTED)
    weft_lint(measures BUILD TESTED)
    weft_lint(excerpts)
    weft_lint(paths TESTED)
endif()

file(GLOB_RECURSE weft_public_headers CONFIGURE_DEPENDS
    RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/*.h)
foreach(header IN LISTS weft_public_headers)
    set(compilers gcc g++ clang)
    if(NOT header MATCHES "/") # the others are slow to compile so, and part of these
        list(APPEND compilers nvcc)
    endif()
    foreach(compiler IN LISTS compilers)
        set(test header.${compiler}.${header})
        add_test(NAME ${test} COMMAND
            ${PROJECT_SOURCE_DIR}/tests/lint/header.sh ${compiler} ${PROJECT_SOURCE_DIR}/include ${header})
        weft_describe_test(${test} lint)
        if(CMAKE_CUDA_COMPILER)
            set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "NVCC=${CMAKE_CUDA_COMPILER}")
        endif()
    endforeach()
endforeach()

foreach(compiler gcc clang)
    set(test header.deprecated.${compiler})
    add_test(NAME ${test} COMMAND
        ${PROJECT_SOURCE_DIR}/tests/lint/deprecated.sh ${compiler} ${PROJECT_SOURCE_DIR}/include)
    weft_describe_test(${test} lint)
endforeach()
