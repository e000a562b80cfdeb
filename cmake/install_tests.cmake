# Tests of what is installed (label install): consumers outside the tree, manual pages, the exported symbols, other
# languages.
foreach(way pkg-config cmake)
    add_test(NAME install.${way}
        COMMAND ${PROJECT_SOURCE_DIR}/tests/install/install.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR} ${way})
    weft_describe_test(install.${way} "install;slow")
endforeach()

add_test(NAME install.ep_faces
    COMMAND ${PROJECT_SOURCE_DIR}/tests/install/ep_faces.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
weft_describe_test(install.ep_faces "install;nccl_ep;nvte_ep;slow")

if(Python3_FOUND)
    set(weft_exports ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/exports.py)
    add_test(NAME exports.headers COMMAND ${weft_exports} check ${PROJECT_SOURCE_DIR})
    add_test(NAME exports.library COMMAND ${weft_exports} check-library ${PROJECT_SOURCE_DIR} $<TARGET_FILE:weft>)
    add_test(NAME exports.ffi
        COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/install/ffi.py ${PROJECT_SOURCE_DIR} $<TARGET_FILE:weft>)
    add_test(NAME install.man
        COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/install/man.py ${PROJECT_SOURCE_DIR} ${weft_man} ${weft_tools}
            ${weft_osh_commands})
    foreach(test exports.headers exports.library exports.ffi install.man)
        weft_describe_test(${test} install)
        set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "CC=${CMAKE_C_COMPILER}")
    endforeach()
endif()
