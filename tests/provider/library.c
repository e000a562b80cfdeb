#include "provider/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

real_library real;

void expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, PROVIDER " provider: %s\n", what);
        abort();
    }
}

static void find(void *library, const char *name, const char *version, void *function)
{
    void *found = dlvsym(library, name, version);
    expect(found != NULL, name);
    memcpy(function, &found, sizeof found);
}

static void load(void)
{
    void *library = dlopen(REAL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    expect(library != NULL, "cannot load " REAL_LIBRARY);
    find(library, "fi_getinfo", "FABRIC_1.3", &real.getinfo);
    find(library, "fi_freeinfo", "FABRIC_1.3", &real.freeinfo);
    find(library, "fi_dupinfo", "FABRIC_1.3", &real.dupinfo);
    find(library, "fi_fabric", "FABRIC_1.1", &real.fabric);
    find(library, "fi_strerror", "FABRIC_1.0", &real.strerror);
}

void load_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load);
}

const char *fi_strerror(int error)
{
    load_once();
    return real.strerror(error);
}

void fi_freeinfo(struct fi_info *info)
{
    load_once();
    real.freeinfo(info);
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
    load_once();
    return real.dupinfo(info);
}
