# The commands of the OpenSHMEM face: oshcc, oshc++ (also as oshcxx and oshCC) and oshrun, scripts made of
# src/tools/osh. Each finds headers, libraries and weftrun from where it lies itself, so that there is one for the build
# directory and one to be installed, in osh/.
if(NOT TARGET weft_shmem)
    return()
endif()

set(weft_osh_source ${PROJECT_SOURCE_DIR}/src/tools/osh)

# One of them, for a folder of headers and one of libraries, relative to its own.
function(weft_osh_command name template folder include library)
    set(osh_command ${name})
    set(osh_include ${include})
    set(osh_library ${library})
    configure_file(${weft_osh_source}/${template} ${folder}/${name} @ONLY
        FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endfunction()

function(weft_osh_commands folder include library)
    set(osh_language C)
    set(osh_own OSHCC)
    set(osh_variable CC)
    set(osh_default cc)
    weft_osh_command(oshcc oshcc.in ${folder} ${include} ${library})
    set(osh_language C++)
    set(osh_own OSHCXX)
    set(osh_variable CXX)
    set(osh_default c++)
    weft_osh_command(oshc++ oshcc.in ${folder} ${include} ${library})
    weft_osh_command(oshrun oshrun.in ${folder} ${include} ${library})
    foreach(name oshcxx oshCC)
        file(CREATE_LINK oshc++ ${folder}/${name} SYMBOLIC)
    endforeach()
endfunction()

set(weft_osh_commands oshcc oshc++ oshrun)
file(RELATIVE_PATH weft_osh_up ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
file(RELATIVE_PATH weft_osh_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
weft_osh_commands(${PROJECT_BINARY_DIR} include .)
weft_osh_commands(${PROJECT_BINARY_DIR}/osh ${weft_osh_up} ${weft_osh_libraries})
