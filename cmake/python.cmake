# The Python extension, which has the library inside and is one for all versions of Python from 3.10 on. pip builds it
# into a wheel (pyproject.toml, WEFT_PYTHON); for tests it lies in <build>/python/weft beside links to the package.
if(NOT WEFT_PYTHON AND (NOT WEFT_TESTS OR WEFT_SANITIZE OR CMAKE_CROSSCOMPILING))
    return()
endif()

# Without its headers there is the interpreter still, for all else.
find_package(Python3 QUIET COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)
if(NOT Python3_Development.Module_FOUND OR Python3_VERSION VERSION_LESS 3.10)
    if(WEFT_PYTHON)
        message(FATAL_ERROR "weft: no Python.h of Python 3.10 or later (Debian: python3-dev)")
    endif()
    message(WARNING "weft: no Python.h (Debian: python3-dev), so the tests of the Python package are LEFT OUT")
    return()
endif()

# Its limited API is none of free-threaded Python's, whose header would say so less clearly.
execute_process(COMMAND ${Python3_EXECUTABLE} -c
    "import sysconfig; print(int(sysconfig.get_config_var('Py_GIL_DISABLED') or 0), end='')"
    OUTPUT_VARIABLE weft_python_is_free_threaded)
if(weft_python_is_free_threaded STREQUAL "1")
    set(weft_python_refusal "weft: ${Python3_EXECUTABLE} is a free-threaded Python; weft's extension needs the lock: take another")
    if(WEFT_PYTHON)
        message(FATAL_ERROR "${weft_python_refusal}")
    endif()
    message(WARNING "${weft_python_refusal}; the tests of the Python package are LEFT OUT")
    return()
endif()

add_library(weft_python MODULE ${PROJECT_SOURCE_DIR}/python/_weft.c)
target_include_directories(weft_python SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
target_link_libraries(weft_python PRIVATE weft_static)
set(weft_python_tree ${PROJECT_BINARY_DIR}/python)
set_target_properties(weft_python PROPERTIES PREFIX "" OUTPUT_NAME _weft SUFFIX .abi3.so C_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${weft_python_tree}/weft)
target_link_options(weft_python PRIVATE -Wl,--exclude-libs,ALL)
if(WEFT_PYTHON)
    install(TARGETS weft_python DESTINATION weft COMPONENT python)
endif()

if(WEFT_TESTS)
    file(GLOB weft_python_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/weft/*.py)
    file(MAKE_DIRECTORY ${weft_python_tree}/weft)
    foreach(source IN LISTS weft_python_sources)
        get_filename_component(name ${source} NAME)
        file(CREATE_LINK ${source} ${weft_python_tree}/weft/${name} SYMBOLIC)
    endforeach()
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/deep_ep ${weft_python_tree}/deep_ep SYMBOLIC)
endif()
