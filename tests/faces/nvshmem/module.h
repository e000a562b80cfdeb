/* faces/nvshmem/module.h: what modules.c tells module.c. */
#ifndef FACES_NVSHMEM_MODULE_H
#define FACES_NVSHMEM_MODULE_H

typedef struct module_meeting {
    void *id; /* a nvshmemx_uniqueid_t; NULL: as the launcher started the PEs */
    int rank;
    int ranks;
} module_meeting;

/* 0: done. */
__attribute__((visibility("default"))) int module_begin(const module_meeting *meeting);
__attribute__((visibility("default"))) int module_exchange(void);
__attribute__((visibility("default"))) void module_end(void);

#endif
