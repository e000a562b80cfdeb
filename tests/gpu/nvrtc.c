/* Goal: the device API compiles at run time, by NVRTC, with no other header in reach.
 * Method: compile tests/gpu/calls/calls.cu with libnvrtc, as PTX. Usage: nvrtc INCLUDE_DIR SOURCE.
 * Exit 77: no libnvrtc. */
#include <dlfcn.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

static void *find(const char *name)
{
    void *function = dlsym(library, name);
    if (function == NULL) {
        printf("libnvrtc has no %s\n", name);
        exit(77);
    }
    return function;
}

#define NVRTC(name) ((__typeof__(&name))find(#name))

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    if (file == NULL || text == NULL || fread(text, 1, (1 << 20) - 1, file) == 0) {
        printf("cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
    return text;
}

static int compile(const char *source, const char *include, const char *architecture)
{
    nvrtcProgram program;
    char include_option[1024];
    char architecture_option[64];
    size_t bytes = 0;
    snprintf(include_option, sizeof include_option, "-I%s", include);
    snprintf(architecture_option, sizeof architecture_option, "--gpu-architecture=%s", architecture);
    int major = 0;
    int minor = 0;
    (void)NVRTC(nvrtcVersion)(&major, &minor);
    const char *options[] = {include_option, architecture_option, "--std=c++17", "--Ofast-compile=max"};
    const int has_quick = major >= 13; /* the code is not read, so it need not be good */
    if (NVRTC(nvrtcCreateProgram)(&program, source, "calls.cu", 0, NULL, NULL) != NVRTC_SUCCESS) {
        return 1;
    }
    nvrtcResult result = NVRTC(nvrtcCompileProgram)(program, has_quick ? 4 : 3, options);
    NVRTC(nvrtcGetProgramLogSize)(program, &bytes);
    char *log = calloc(1, bytes + 1);
    NVRTC(nvrtcGetProgramLog)(program, log);
    printf("%s: %s\n%s\n", architecture, NVRTC(nvrtcGetErrorString)(result), log);
    free(log);
    NVRTC(nvrtcDestroyProgram)(&program);
    return result != NVRTC_SUCCESS || bytes > 1; /* a warning fails as well */
}

int main(int argc, char **argv)
{
    library = dlopen("libnvrtc.so.13", RTLD_NOW);
    library = library != NULL ? library : dlopen("libnvrtc.so", RTLD_NOW);
    if (library == NULL || argc != 3) {
        printf("no libnvrtc here\n");
        return 77;
    }
    char *source = read_file(argv[2]);
    int failed = compile(source, argv[1], "compute_90");
    free(source);
    return failed != 0;
}
