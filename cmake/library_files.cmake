# What the library is made of, relative to the folder of the sources, in the order of the names: public headers, and all
# of src/ but tests, tools, faces, the simulator and the fake driver. The same for every build: with CUDA and without.
function(weft_library_files root result)
    file(GLOB_RECURSE files RELATIVE ${root}
        ${root}/include/*.h ${root}/include/*.cuh ${root}/src/*.c ${root}/src/*.h ${root}/src/*.cu ${root}/src/*.cuh)
    list(FILTER files EXCLUDE REGEX "_test\\.c$|conformance\\.[ch]$|^src/(tools|testing|faces)/")
    list(SORT files)
    set(${result} ${files} PARENT_SCOPE)
endfunction()
