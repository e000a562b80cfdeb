# What of the GPU part is tested without a GPU (label cuda, and fake for what runs on the fake driver; exit 77 where
# nvcc, g++ or NVRTC is absent):
#   cuda.compile.*      every device call compiles, for sm_80, sm_90 and sm_100; the PTX has the orders meant, and
#                       kernels that are launched early wait first; those of expert parallelism meet between
#                       an acquire and a vote
#   cuda.nvrtc*         the device headers, and the kernel of examples/gpu, compile at run time
#   cuda.on_host.*      tests/gpu/*.cu with kernels as functions of one thread, on a fake driver whose device memory is
#                       this machine's: PEs as processes and as threads, with virtual memory and with cudaIpc. Those of
#                       expert parallelism run as grids whose threads are coroutines (src/testing/fake_driver/grid.h)
set(weft_nvcc ${CMAKE_CUDA_COMPILER})
if(NOT weft_nvcc)
    set(weft_nvcc nvcc)
endif()
foreach(part calls early ep programs)
    set(read_fatbins) # whose PTX is read as the build has made it
    if(part STREQUAL "early")
        set(read_fatbins ${weft_fatbin})
    elseif(part STREQUAL "ep")
        set(read_fatbins ${weft_ep_fatbins})
    endif()
    add_test(NAME cuda.compile.${part}
        COMMAND ${PROJECT_SOURCE_DIR}/tests/gpu/compile.sh ${weft_nvcc} ${part} ${PROJECT_SOURCE_DIR} ${read_fatbins})
    weft_describe_test(cuda.compile.${part} cuda)
    set_tests_properties(cuda.compile.${part} PROPERTIES TIMEOUT 400)
endforeach()

if(NOT WEFT_CUDA_INCLUDE)
    return()
endif()

add_executable(gpu_nvrtc ${PROJECT_SOURCE_DIR}/tests/gpu/nvrtc.c)
target_include_directories(gpu_nvrtc SYSTEM PRIVATE ${WEFT_CUDA_INCLUDE})
target_link_libraries(gpu_nvrtc PRIVATE weft_flags ${CMAKE_DL_LIBS})
set_target_properties(gpu_nvrtc PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_test(NAME cuda.nvrtc COMMAND gpu_nvrtc ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests/gpu/calls/calls.cu)
weft_describe_test(cuda.nvrtc cuda)
set_property(TEST cuda.nvrtc APPEND PROPERTY ENVIRONMENT "LD_LIBRARY_PATH=${WEFT_CUDA_INCLUDE}/../lib64")
add_test(NAME cuda.nvrtc.example
    COMMAND gpu_nvrtc ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/examples/gpu/nvrtc_ring.cu)
weft_describe_test(cuda.nvrtc.example cuda)
set_property(TEST cuda.nvrtc.example APPEND PROPERTY ENVIRONMENT "LD_LIBRARY_PATH=${WEFT_CUDA_INCLUDE}/../lib64")
if(WEFT_SANITIZE)
    set_tests_properties(cuda.nvrtc cuda.nvrtc.example PROPERTIES DISABLED TRUE) # the library's own leaks
endif()

find_program(WEFT_CXX NAMES g++ c++)
if(NOT WEFT_CXX OR WEFT_SANITIZE STREQUAL "thread")
    return()
endif()
set(weft_on_host_debug -g1) # functions and lines; with variables compiling takes half as long again
if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT WEFT_SANITIZE)
    set(weft_on_host_debug -g)
endif()
set(weft_on_host_flags -std=c++17 -O1 ${weft_on_host_debug} -DWEFT_DEVICE_ON_HOST -Wall -Wextra -Wno-missing-field-initializers
    -Wno-unknown-pragmas)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    list(APPEND weft_on_host_flags -DWEFT_DEVICE_CHECKS)
endif()
if(WEFT_SANITIZE)
    list(APPEND weft_on_host_flags -fsanitize=${WEFT_SANITIZE} -fno-sanitize-recover=all)
endif()
# For kernels that take longer to optimise under sanitizers than to run: those of collectives, of tests and of tools.
set(weft_on_host_plain_flags ${weft_on_host_flags})
if(WEFT_SANITIZE)
    list(APPEND weft_on_host_plain_flags -O0)
endif()
set(weft_on_host_coverage) # of what is in src/
if(WEFT_COVERAGE)
    set(weft_on_host_coverage --coverage)
    list(APPEND weft_on_host_flags --coverage)
endif()

# The library's kernels, for the CPU: what the fake driver launches.
set(weft_fake_kernels ${PROJECT_BINARY_DIR}/fake/kernels.o)
add_custom_command(OUTPUT ${weft_fake_kernels}
    COMMAND ${WEFT_CXX} -x c++ ${weft_on_host_plain_flags} ${weft_on_host_coverage} -fPIC -fvisibility=hidden -fno-exceptions
        -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src -c ${PROJECT_SOURCE_DIR}/src/cuda/kernels.cu -o ${weft_fake_kernels}
    DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/kernels.cu ${weft_kernel_parts} ${weft_device_headers}
    VERBATIM)
# Those of expert parallelism, whose threads are coroutines, and the table of their names.
set(weft_fake_ep_kernels)
foreach(source ${weft_ep_kernel_sources} kernels_ep.cpp)
    string(REPLACE "/" "_" object ${source})
    set(object ${PROJECT_BINARY_DIR}/fake/ep_${object}.o)
    set(path ${PROJECT_SOURCE_DIR}/src/cuda/ep/${source})
    if(source STREQUAL "kernels_ep.cpp")
        set(path ${PROJECT_SOURCE_DIR}/src/testing/fake_driver/${source})
    endif()
    add_custom_command(OUTPUT ${object}
        COMMAND ${WEFT_CXX} -x c++ ${weft_on_host_flags} -fPIC -fvisibility=hidden -fno-exceptions -fno-threadsafe-statics -Wno-maybe-uninitialized
            -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src -include ${PROJECT_SOURCE_DIR}/src/testing/fake_driver/simt.h
            -MD -MF ${object}.d -MT ${object} -c ${path} -o ${object}
        DEPENDS ${path} DEPFILE ${object}.d
        VERBATIM)
    list(APPEND weft_fake_ep_kernels ${object})
endforeach()
# Those of tools.
set(weft_fake_tool_kernels ${PROJECT_BINARY_DIR}/fake/tool_kernels.o)
add_custom_command(OUTPUT ${weft_fake_tool_kernels}
    COMMAND ${WEFT_CXX} -x c++ ${weft_on_host_plain_flags} ${weft_on_host_coverage} -fPIC -fvisibility=hidden -fno-exceptions
        -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src -c ${weft_tool_kernels} -o ${weft_fake_tool_kernels}
    DEPENDS ${weft_tool_kernel_sources}
    VERBATIM)
add_library(fake_nvml SHARED ${PROJECT_SOURCE_DIR}/src/testing/fake_driver/libnvml.c
    ${PROJECT_SOURCE_DIR}/src/testing/fake_driver/fabric.c)
target_link_libraries(fake_nvml PRIVATE weft_flags)
set_target_properties(fake_nvml PROPERTIES OUTPUT_NAME nvidia-ml SUFFIX .so.1
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake)
set(weft_fake_cuda_sources devices.c memory.c streams.c graphs.c kernels.c grid.c fabric.c)
list(TRANSFORM weft_fake_cuda_sources PREPEND ${PROJECT_SOURCE_DIR}/src/testing/fake_driver/)
add_library(fake_cuda SHARED ${weft_fake_cuda_sources}
    ${PROJECT_SOURCE_DIR}/src/testing/sim/coroutine.c ${PROJECT_SOURCE_DIR}/src/testing/sim/stacks.c
    ${weft_fake_kernels} ${weft_fake_ep_kernels} ${weft_fake_tool_kernels})
target_include_directories(fake_cuda SYSTEM PRIVATE ${WEFT_CUDA_INCLUDE})
target_link_libraries(fake_cuda PRIVATE weft_flags Threads::Threads m)
# The variables of a thread are looked at in each switch between coroutines; by a call, as libraries do without this,
# that takes a fifth of the time of a kernel under AddressSanitizer.
target_compile_options(fake_cuda PRIVATE -ftls-model=initial-exec)
add_dependencies(fake_cuda fake_nvml)
set_target_properties(fake_cuda PROPERTIES OUTPUT_NAME cuda SUFFIX .so.1
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake)

# tests/gpu/NAME.cu, which may include what lies in tests/gpu/NAME, with its kernels as functions of one thread:
# tests/NAME_on_host.
file(GLOB weft_gpu_support_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/gpu/support/*.h
    ${PROJECT_SOURCE_DIR}/tests/support/*.h
    ${PROJECT_SOURCE_DIR}/tests/gpu/*/*.cuh)
add_custom_target(gpu_on_host ALL)
add_dependencies(gpu_on_host fake_cuda)
function(weft_add_on_host_program name)
    set(program ${PROJECT_BINARY_DIR}/tests/${name}_on_host)
    add_custom_command(OUTPUT ${program}.o # apart, so that it need not come after the library
        COMMAND ${WEFT_CXX} -x c++ ${weft_on_host_plain_flags} -I${PROJECT_SOURCE_DIR}/include
            -I${PROJECT_SOURCE_DIR}/tests/gpu -I${PROJECT_SOURCE_DIR}/tests -isystem ${WEFT_CUDA_INCLUDE} -c ${PROJECT_SOURCE_DIR}/tests/gpu/${name}.cu
            -o ${program}.o
        DEPENDS ${PROJECT_SOURCE_DIR}/tests/gpu/${name}.cu ${weft_gpu_support_headers} ${weft_device_headers}
        VERBATIM)
    add_custom_command(OUTPUT ${program}
        COMMAND ${WEFT_CXX} ${weft_on_host_flags} ${program}.o
            $<TARGET_FILE:weft_gpu_support> $<TARGET_FILE:weft_static> -ldl -lm -lpthread -o ${program}
        DEPENDS ${program}.o weft_static weft_gpu_support
        VERBATIM)
    add_custom_target(${name}_on_host DEPENDS ${program})
    add_dependencies(gpu_on_host ${name}_on_host)
endfunction()

function(weft_add_on_host_test name environment)
    add_test(NAME cuda.on_host.${name} COMMAND ${ARGN})
    weft_describe_test(cuda.on_host.${name} "cuda;fake")
    set_property(TEST cuda.on_host.${name} APPEND PROPERTY ENVIRONMENT
        "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake;WEFT_LOG=none;${environment}")
    # Of one processor those of expert parallelism use more, others less. Two of the former run together in less time
    # than one after the other; beside many ranks there is room for what waits only.
    set(eighths 6)
    if(name MATCHES "^(ep.threads.(33|72)|domain.(trays|two_cliques))$")
        set(eighths 12)
    elseif(name MATCHES "^(ep|domain)")
        set(eighths 8)
    endif()
    weft_set_processors(cuda.on_host.${name} ${eighths})
endfunction()
# The places of PEs are divided between the builds, which run the same code: those of one process with odd numbers of
# PEs and of far PEs under sanitizers, the others without.
foreach(program device collective)
    weft_add_on_host_program(${program})
    set(on_host ${PROJECT_BINARY_DIR}/tests/${program}_on_host)
    if(WEFT_SANITIZE)
        foreach(pes 1 3)
            weft_add_on_host_test(${program}.threads.${pes} "" ${on_host} -t ${pes})
        endforeach()
        weft_add_on_host_test(${program}.threads.ipc "WEFT_CUDA_VMM=0" ${on_host} -t 3)
        weft_add_on_host_test(${program}.threads.far "WEFT_CUDA_DOMAIN=1" ${on_host} -t 3)
    else()
        weft_add_on_host_test(${program}.threads.2 "" ${on_host} -t 2)
        weft_add_on_host_test(${program}.threads.4 "" ${on_host} -t 4)
        # Some by the proxy, some by load and store, on a GPU that takes its time: what nobody waits for shows.
        weft_add_on_host_test(${program}.threads.mixed "WEFT_CUDA_DOMAIN=2;WEFT_FAKE_DELAY_US=20" ${on_host} -t 4)
    endif()
    if(TARGET weftrun AND WEFT_SANITIZE)
        weft_add_on_host_test(${program}.processes.ipc "WEFT_CUDA_VMM=0" $<TARGET_FILE:weftrun> -n 3 ${on_host})
        weft_add_on_host_test(${program}.processes.far "WEFT_CUDA_DOMAIN=2" $<TARGET_FILE:weftrun> -n 3 ${on_host})
    elseif(TARGET weftrun)
        foreach(pes 2 4)
            weft_add_on_host_test(${program}.processes.${pes} "" $<TARGET_FILE:weftrun> -n ${pes} ${on_host})
        endforeach()
        weft_add_on_host_test(${program}.processes.mixed "" $<TARGET_FILE:weftrun> -n 2 ${on_host} -t 2)
    endif()
endforeach()

# Copies are done when their stream is waited for, and not before.
if(NOT WEFT_SANITIZE)
    weft_add_on_host_test(device.threads.late "WEFT_FAKE_LATE=1" ${PROJECT_BINARY_DIR}/tests/device_on_host -t 4)
endif()

# Many bytes beyond the link domain; late copies show a mark that nobody looks at.
weft_add_on_host_program(far)
set(on_host ${PROJECT_BINARY_DIR}/tests/far_on_host)
if(WEFT_SANITIZE)
    weft_add_on_host_test(far.threads.3 "WEFT_CUDA_DOMAIN=1" ${on_host} -t 3 -c 8)
else()
    weft_add_on_host_test(far.threads.2 "WEFT_CUDA_DOMAIN=1;WEFT_FAKE_LATE=1" ${on_host} -t 2)
    weft_add_on_host_test(far.threads.mixed "WEFT_CUDA_DOMAIN=2;WEFT_FAKE_DELAY_US=20;WEFT_FAKE_FREE_WAITS=1" ${on_host} -t 4)
    if(TARGET weftrun)
        weft_add_on_host_test(far.processes "WEFT_CUDA_DOMAIN=1;WEFT_FAKE_LATE=1" $<TARGET_FILE:weftrun> -n 3
            ${on_host})
        weft_add_on_host_test(far.stuck "WEFT_CUDA_DOMAIN=1;TEST_FAR_STUCK=1" $<TARGET_FILE:weftrun> -n 2 ${on_host})
        if(WEFT_OFI)
            weft_add_on_host_test(far.nodes "FI_PROVIDER=tcp;WEFT_CUDA_DOMAIN=1" $<TARGET_FILE:weftrun> -n 3
                ${PROJECT_SOURCE_DIR}/tests/support/nodes.sh 2+1 ${on_host} -c 12)
        endif()
    endif()
endif()

# Collectives by copy engines; late copies show a sync that is missing.
set(on_host ${PROJECT_BINARY_DIR}/tests/collective_on_host)
if(WEFT_SANITIZE)
    weft_add_on_host_test(collective.threads.copies "WEFT_CUDA_COPY=1;WEFT_FAKE_DELAY_US=20" ${on_host} -t 3)
elseif(TARGET weftrun)
    weft_add_on_host_test(collective.processes.copies "WEFT_CUDA_COPY=1" $<TARGET_FILE:weftrun> -n 3 ${on_host})
endif()

# Expert parallelism: random cases. A grid is large, so the multiprocessors are few. With sanitizers each kernel runs,
# for few ranks and for many. Other numbers of ranks, and random cases around the epoch where they begin again, run the
# same code, so they are tried without; with them ep_soak.wrap and ep_wrap_test have epochs that begin again.
set(weft_ep_on_host_pes 1 2 4)
set(weft_ep_many_on_host_pes 2 3)
if(WEFT_SANITIZE)
    set(weft_ep_on_host_pes 3)
    set(weft_ep_many_on_host_pes 3)
endif()
foreach(program ep ep_halves)
    weft_add_on_host_program(${program})
    foreach(pes IN LISTS weft_ep_on_host_pes)
        weft_add_on_host_test(${program}.threads.${pes} "WEFT_FAKE_SMS=6"
            ${PROJECT_BINARY_DIR}/tests/${program}_on_host -t ${pes})
    endforeach()
    if(NOT WEFT_SANITIZE)
        weft_add_on_host_test(${program}.wrap "WEFT_FAKE_SMS=6;WEFT_EP_FIRST_CALL=2147483644;WEFT_TEST_WORKERS=3"
            ${PROJECT_BINARY_DIR}/tests/${program}_on_host -t 2 -c 12)
    endif()
endforeach()
if(NOT WEFT_SANITIZE) # of two pairs the second's epochs are 2^30 ahead
    weft_add_on_host_test(ep_halves.wrap.second "WEFT_FAKE_SMS=6;WEFT_EP_FIRST_CALL=1073741820"
        ${PROJECT_BINARY_DIR}/tests/ep_halves_on_host -t 2 -c 2)
endif()
# Many calls of one group, whose epochs begin again on the way.
weft_add_on_host_program(ep_soak)
weft_add_on_host_test(ep_soak.wrap "WEFT_FAKE_SMS=4;WEFT_EP_FIRST_CALL=2147483616"
    ${PROJECT_BINARY_DIR}/tests/ep_soak_on_host -t 2)
# Ranks that have not all in common: as processes, which map what they share.
weft_add_on_host_program(ep_apart)
if(TARGET weftrun AND NOT WEFT_SANITIZE)
    weft_add_on_host_test(ep_apart.processes.2 "WEFT_FAKE_SMS=4" $<TARGET_FILE:weftrun> -n 2
        ${PROJECT_BINARY_DIR}/tests/ep_apart_on_host)
    weft_add_on_host_test(ep_apart.many.2 "WEFT_FAKE_SMS=4;WEFT_EP_FEW_RANKS=0" $<TARGET_FILE:weftrun> -n 2
        ${PROJECT_BINARY_DIR}/tests/ep_apart_on_host)
endif()
# Two libraries of one process, with worlds and groups of their own.
weft_add_on_host_program(ep_modules)
weft_add_on_host_test(ep_modules.threads.3 "WEFT_FAKE_SMS=4" ${PROJECT_BINARY_DIR}/tests/ep_modules_on_host -t 3)
if(TARGET weftrun AND NOT WEFT_SANITIZE)
    weft_add_on_host_test(ep_modules.processes.2 "WEFT_FAKE_SMS=4" $<TARGET_FILE:weftrun> -n 2
        ${PROJECT_BINARY_DIR}/tests/ep_modules_on_host)
    weft_add_on_host_test(ep_modules.processes.mixed "WEFT_FAKE_SMS=4" $<TARGET_FILE:weftrun> -n 2
        ${PROJECT_BINARY_DIR}/tests/ep_modules_on_host -t 2)
endif()
# Ranks of several link domains. Those that are absent in a part of it wait for what the others do there. Kernels here
# are optimised alike in all builds, and under sanitizers take three times as long: there two shapes run, which have
# domains of one rank and of several, slots by forwarders and rows directly; the others without.
weft_add_on_host_program(ep_domains)
function(weft_add_domains_test name environment)
    weft_add_on_host_test(ep_domains.threads.${name} "WEFT_DEADLINE=100;${environment}"
        ${PROJECT_BINARY_DIR}/tests/ep_domains_on_host -t ${ARGN})
endfunction()
# Directly by rings that are full all the time.
weft_add_domains_test(rows "WEFT_FAKE_SMS=8;WEFT_EP_DIRECT=256;WEFT_CUDA_DOMAIN=1;WEFT_EP_MAPPED=0;WEFT_EP_CHUNK_ROWS=1" 2 -c 3)
# Slots of few tokens by forwarders, too.
weft_add_domains_test(forwarded "WEFT_FAKE_SMS=8;WEFT_CUDA_DOMAIN=2;WEFT_EP_DIRECT=0" 4 -c 2)
if(NOT WEFT_SANITIZE)
    weft_add_domains_test(1x2 "WEFT_FAKE_SMS=4;WEFT_EP_DIRECT=256;WEFT_CUDA_DOMAIN=1" 2)
    weft_add_domains_test(2x2 "WEFT_FAKE_SMS=8;WEFT_EP_DIRECT=256;WEFT_CUDA_DOMAIN=2" 4)
    # Of three domains two go on without the third.
    weft_add_domains_test(1x3 "WEFT_FAKE_SMS=8;WEFT_EP_DIRECT=256;WEFT_CUDA_DOMAIN=1" 3 -c 2)
    # Domains of three ranks, whose order of addition shows.
    weft_add_domains_test(3x2 "WEFT_FAKE_SMS=12;WEFT_EP_DIRECT=256;WEFT_CUDA_DOMAIN=3" 6 -c 1)
    # Where kernels do not store to the others' host heaps.
    weft_add_domains_test(proxy "WEFT_FAKE_SMS=4;WEFT_EP_DIRECT=256;WEFT_CUDA_DOMAIN=1;WEFT_EP_MAPPED=0;WEFT_EP_CHANNELS=2" 2)
endif()
if(TARGET weftrun AND WEFT_OFI AND NOT WEFT_SANITIZE)
    weft_add_on_host_test(ep_domains.nodes "WEFT_FAKE_SMS=8;WEFT_DEADLINE=100;WEFT_EP_DIRECT=256;FI_PROVIDER=tcp" $<TARGET_FILE:weftrun> -n 3
        ${PROJECT_SOURCE_DIR}/tests/support/nodes.sh 2+1 ${PROJECT_BINARY_DIR}/tests/ep_domains_on_host -c 2)
endif()
# Kernels for many ranks, also of few.
foreach(pes IN LISTS weft_ep_many_on_host_pes)
    weft_add_on_host_test(ep.many.${pes} "WEFT_EP_FEW_RANKS=0;WEFT_FAKE_SMS=6"
        ${PROJECT_BINARY_DIR}/tests/ep_on_host -t ${pes} -c 8)
    weft_add_on_host_test(ep_halves.many.${pes} "WEFT_EP_FEW_RANKS=0;WEFT_FAKE_SMS=6"
        ${PROJECT_BINARY_DIR}/tests/ep_halves_on_host -t ${pes})
endforeach()
if(NOT WEFT_SANITIZE)
    foreach(pes 33 72)
        set(cases 1)
        if(pes EQUAL 33) # of which some have destinations, and positions, on all ranks
            set(cases 4)
        endif()
        weft_add_on_host_test(ep.threads.${pes} "WEFT_FAKE_SMS=${pes};WEFT_FAKE_GIB=64"
            ${PROJECT_BINARY_DIR}/tests/ep_on_host -t ${pes} -c ${cases})
    endforeach()
endif()

# Link domains that span hosts, or end at cliques: NAME HOSTS PES_A_HOST DOMAINS FABRIC.
weft_add_on_host_program(domain)
function(weft_add_domain_test name hosts pes domains fabric)
    weft_add_on_host_test(domain.${name} "" $<TARGET_FILE:weftrun> -n ${hosts}
        ${PROJECT_SOURCE_DIR}/tests/support/nodes.sh 1 ${PROJECT_BINARY_DIR}/tests/domain_on_host -t ${pes} -g 4)
    set_property(TEST cuda.on_host.domain.${name} APPEND PROPERTY ENVIRONMENT "WEFT_FAKE_GPUS=4" "WEFT_FAKE_SMS=8"
        "TEST_DOMAINS=${domains}" "WEFT_FAKE_FABRIC=${fabric}" ${ARGN})
endfunction()
if(TARGET weftrun)
    weft_add_domain_test(hosts 2 4 8 1)
    weft_add_domain_test(two_cliques 5 4 16+4 "1\;node-4:2")
    if(NOT WEFT_SANITIZE) # with which 72 PEs take 80 s
        # Short queues of connections, which libfabric clears for each: half of the time of these 72 PEs.
        weft_add_domain_test(trays 18 4 72 1 FI_OFI_RXM_MSG_TX_SIZE=64 FI_OFI_RXM_MSG_RX_SIZE=64 FI_OFI_RXM_TX_SIZE=64
            FI_OFI_RXM_RX_SIZE=64)
        set_tests_properties(cuda.on_host.domain.trays PROPERTIES TIMEOUT 400)
    endif()
    if(Python3_FOUND)
        weft_add_on_host_test(domain.reasons "" ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tools/domains.py
            $<TARGET_FILE:weftrun> ${PROJECT_SOURCE_DIR}/tests/support/nodes.sh
            ${PROJECT_BINARY_DIR}/tests/domain_on_host ${PROJECT_BINARY_DIR}/fake)
    endif()
endif()

if(CMOCKA_FOUND)
    foreach(name attach_torture attach_peers ep_alone ep_created ep_full_slab ep_graph ep_lent ep_limits ep_pad ep_passing ep_refused
            ep_route_memory ep_sms ep_statistics ep_weigh ep_wrap headers shared_streams watch)
        weft_add_test_program(${name}_test ${PROJECT_SOURCE_DIR}/tests/gpu/${name}_test.c)
        if(name MATCHES "^ep_")
            target_sources(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/gpu/support/ep_rig.c)
        endif()
        target_include_directories(${name}_test SYSTEM PRIVATE ${WEFT_CUDA_INCLUDE})
        add_dependencies(${name}_test fake_cuda)
        weft_add_on_host_test(${name} "" ${name}_test)
    endforeach()
endif()
