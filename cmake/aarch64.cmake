# Toolchain: aarch64 programs, built on another machine and run there by qemu-user. Debian has the compiler and the C
# library (gcc-aarch64-linux-gnu) and the emulator (qemu-user); scripts/aarch64.sh fetches cmocka and libsodium.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

get_filename_component(weft_sysroot ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-packages ABSOLUTE)
set(ENV{PKG_CONFIG_LIBDIR} ${weft_sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${weft_sysroot})
set(CMAKE_FIND_ROOT_PATH ${weft_sysroot} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)

set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=${weft_sysroot}/usr/lib/aarch64-linux-gnu)
set(CMAKE_CUDA_COMPILER NOTFOUND)

# qemu keeps a record of every page that is mapped, touched or not: heaps and simulations get few addresses.
set(weft_aarch64_environment "WEFT_HEAP_MAX=16M")
add_compile_definitions(WEFT_SIM_ARENA_BITS=32)
