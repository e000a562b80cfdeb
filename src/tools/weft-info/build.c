/* tools/weft-info/build.c: what this build is. The build system says what the compiler cannot: WEFT_INFO_OPTIONS,
 * WEFT_INFO_SANITIZER, WEFT_INFO_CUDA. */
#include <dlfcn.h>
#include <sys/utsname.h>

#include "tools/weft-info/sections.h"
#include "world/build.h"

static void add(info_table *table, const char *name, const char *value)
{
    info_table_add(table, "%s", name);
    info_table_add(table, "%s", value);
}

/* Whether a library that weft loads when it needs it is here. */
static const char *loadable(const char *file)
{
    void *handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    if (handle == NULL) {
        return "built in, but its library is not on this machine";
    }
    (void)dlclose(handle);
    return "built in, its library is here";
}

int info_build_tables(const info_trial *trial, info_table **tables)
{
    (void)trial;
    info_table *table = tables[0] = info_table_create("build", "name value");
    struct utsname machine;
    info_table_add(table, "version");
    info_table_add(table, "%d.%d.%d", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
    info_table_add(table, "build");
    info_table_add(table, "%016llx", (unsigned long long)wefti_build_key());
    info_table_add(table, "compiler");
#ifdef __clang__
    info_table_add(table, "clang %s", __clang_version__);
#else
    info_table_add(table, "gcc %s", __VERSION__);
#endif
    add(table, "options", WEFT_INFO_OPTIONS);
#ifdef NDEBUG
    add(table, "assertions", "no");
#else
    add(table, "assertions", "yes");
#endif
#ifdef WEFT_FAULTS
    add(table, "fault points", "yes");
#else
    add(table, "fault points", "no");
#endif
    add(table, "sanitizer", WEFT_INFO_SANITIZER);
    add(table, "cuda", WEFT_INFO_CUDA ? loadable("libcuda.so.1") : "left out");
#ifdef WEFT_HAVE_SODIUM
    add(table, "libsodium", loadable("libsodium.so.23"));
#else
    add(table, "libsodium", "left out");
#endif
    if (uname(&machine) == 0) {
        info_table_add(table, "machine");
        info_table_add(table, "%s, Linux %s", machine.machine, machine.release);
    }
    return 1;
}
