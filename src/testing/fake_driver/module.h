/* testing/fake_driver/module.h: what a test gives cuModuleLoadData, or takes for a CUlibrary, as a module that has one
 * variable. */
#ifndef WEFTI_FAKE_MODULE_H
#define WEFTI_FAKE_MODULE_H

#include <stddef.h>

#define FAKE_MODULE_MARK "a fake module"

typedef struct fake_module {
    char mark[16]; /* FAKE_MODULE_MARK */
    const char *name;
    void *variable;
    size_t bytes;
} fake_module;

#endif
