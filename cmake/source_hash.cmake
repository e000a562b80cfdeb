# What tells builds of different sources apart: a header with a hash of all that the library is made of. Layouts of
# shared memory, the steps by which PEs meet and the tuning tables follow from the sources, so that nobody has to list
# them.
#   cmake -DROOT=SOURCE-FOLDER -DHEADER=FILE -P source_hash.cmake     writes FILE
cmake_minimum_required(VERSION 3.21)
include(${CMAKE_CURRENT_LIST_DIR}/library_files.cmake)

weft_library_files(${ROOT} files)
set(text "")
foreach(file IN LISTS files)
    file(SHA256 ${ROOT}/${file} hash)
    string(APPEND text "${file} ${hash}\n")
endforeach()
string(SHA256 hash "${text}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${HEADER} "#define WEFTI_SOURCE_HASH UINT64_C(0x${hash})\n")
