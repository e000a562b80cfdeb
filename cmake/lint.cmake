# Tests that read the source instead of running it: the order of the layers, and each public header by itself.
if(Python3_FOUND)
    add_test(NAME lint.layers COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/lint/layers.py ${PROJECT_SOURCE_DIR})
    add_test(NAME lint.layers_test COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/lint/layers_test.py)
    weft_describe_test(lint.layers lint)
    weft_describe_test(lint.layers_test lint)
    add_test(NAME lint.symbols COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/lint/symbols.py ${PROJECT_SOURCE_DIR}
        ${PROJECT_BINARY_DIR})
    add_test(NAME lint.symbols_test COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/lint/symbols_test.py)
    weft_describe_test(lint.symbols lint)
    weft_describe_test(lint.symbols_test lint)
    add_test(NAME lint.excerpts COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/lint/excerpts.py ${PROJECT_SOURCE_DIR})
    weft_describe_test(lint.excerpts lint)
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
