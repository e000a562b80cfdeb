/* Kernels of a module that gpus.cu loads while it runs: in relocatable device code of two units, whose calls must find
 * the same state; PART is 1 or 2. Without it of one unit, PART 0. */
#include <nvshmem.h>

#if PART != 1
__device__ void tell(int *data, int pe)
{
    nvshmem_int_p(data, 100 + nvshmem_my_pe(), pe);
}
#else
extern __device__ void tell(int *data, int pe);
#endif

#if PART != 2
extern "C" __global__ void tell_next(int *data)
{
    tell(data, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
}
#endif
