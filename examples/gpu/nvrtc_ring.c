/* A kernel that is compiled when the program runs, by NVRTC: weft's device API is headers only, and needs no other.
 * Run: weftrun -n 4 nvrtc_ring INCLUDE KERNEL   INCLUDE: the folder of weft's headers; KERNEL: nvrtc_ring.cu
 * Exit 77: no GPU. */
#include <cuda.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

static void check(weft_status status, const char *what)
{
    if (status != WEFT_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, weft_status_name(status), weft_last_error());
        exit(1);
    }
}

static void check_cuda(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s: CUDA error %d\n", what, (int)result);
        exit(1);
    }
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 16);
    if (file == NULL || text == NULL || fread(text, 1, (1 << 16) - 1, file) == 0) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
    return text;
}

static void print_log(nvrtcProgram program)
{
    size_t bytes = 0;
    nvrtcGetProgramLogSize(program, &bytes);
    char *log = calloc(1, bytes + 1);
    nvrtcGetProgramLog(program, log);
    fprintf(stderr, "%s\n", log);
    free(log);
}

/* The kernel "ring" of a source, for this GPU. */
static CUfunction compile(CUdevice device, const char *include, const char *path)
{
    nvrtcProgram program;
    CUmodule module;
    CUfunction kernel;
    int major = 0;
    int minor = 0;
    size_t bytes = 0;
    char folder[1024];
    char architecture[32];
    char *source = read_file(path);
    check_cuda(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device), "the GPU's kind");
    check_cuda(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device), "the GPU's kind");
    snprintf(folder, sizeof folder, "-I%s", include);
    snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%d", major, minor);
    const char *options[] = {folder, architecture, "--std=c++17"};
    if (nvrtcCreateProgram(&program, source, path, 0, NULL, NULL) != NVRTC_SUCCESS ||
        nvrtcCompileProgram(program, 3, options) != NVRTC_SUCCESS) {
        print_log(program);
        exit(1);
    }
    nvrtcGetCUBINSize(program, &bytes);
    char *image = malloc(bytes);
    nvrtcGetCUBIN(program, image);
    check_cuda(cuModuleLoadData(&module, image), "loading the kernel");
    check_cuda(cuModuleGetFunction(&kernel, module, "ring"), "finding the kernel");
    nvrtcDestroyProgram(&program);
    free(image);
    free(source);
    return kernel;
}

/* This PE's GPU, its context current. */
static CUdevice open_gpu(void)
{
    const char *number = getenv("WEFT_LOCAL_PE");
    CUdevice device;
    CUcontext context;
    int gpus = 0;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&gpus) != CUDA_SUCCESS || gpus == 0) {
        printf("no GPU here\n");
        exit(77);
    }
    check_cuda(cuDeviceGet(&device, number != NULL ? atoi(number) % gpus : 0), "the GPU");
    check_cuda(cuDevicePrimaryCtxRetain(&context, device), "the context");
    check_cuda(cuCtxSetCurrent(context), "the context");
    return device;
}

int main(int argc, char **argv)
{
    weft_world *world;
    weft_dev_team team;
    weft_launch launch = WEFT_LAUNCH_INIT;
    void *block;
    int *words; /* on the GPU: who wrote, and the kernel's status */
    int seen[2] = {-1, -1};
    if (argc != 3) {
        fprintf(stderr, "usage: weftrun -n 4 nvrtc_ring INCLUDE KERNEL\n");
        return 2;
    }
    CUdevice device = open_gpu();
    CUfunction kernel = compile(device, argv[1], argv[2]); /* before anybody waits for this PE */
    check(weft_world_create(NULL, &world), "world");
    check(weft_device_attach(world, NULL), "device");
    check(weft_device_malloc(world, 2 * sizeof(int), &block), "memory");
    check(weft_team_dev(weft_team_world(world), &team), "team");
    words = block;
    int *status = words + 1;
    void *arguments[] = {&team, &words, &status};
    launch.blocks = 1;
    launch.threads = 128;
    check(weft_device_launch(world, (const weft_kernel *)kernel, &launch, arguments, NULL), "launch");
    check_cuda(cuStreamSynchronize(NULL), "the kernel");
    int pe = weft_world_pe(world);
    int pes = weft_world_pes(world);
    check(weft_getmem(world, seen, words, sizeof seen, pe), "reading");
    printf("PE %d of %d heard from PE %d, status %s\n", pe, pes, seen[0], weft_status_name((weft_status)seen[1]));
    int is_right = seen[0] == (pe + pes - 1) % pes && seen[1] == WEFT_OK;
    check(weft_barrier(world), "barrier"); /* nobody reads or writes here any more */
    check(weft_device_free(world, block), "memory");
    check(weft_world_destroy(world), "world");
    return is_right ? 0 : 1;
}
