/* world/nvtx.c: the spans of the timeline as NVTX ranges, for NVIDIA's tools. */
#include "world/nvtx.h"

#include "base/log.h"
#include "world/world.h"

#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAS_NVTX 1
#endif
#endif

#ifdef HAS_NVTX

void *wefti_nvtx_open(const weft_world *world)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("weft");
    if (domain == NULL) {
        wefti_log(WEFTI_LOG_INFO, "world \"%s\" PE %u: WEFT_NVTX is set, but no tool listens", world->name,
                  world->view.pe);
    }
    return (void *)domain;
}

void wefti_nvtx_close(void *domain)
{
    if (domain != NULL) {
        nvtxDomainDestroy((nvtxDomainHandle_t)domain);
    }
}

uint64_t wefti_nvtx_range_start(void *domain, const char *name)
{
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
    return nvtxDomainRangeStartEx((nvtxDomainHandle_t)domain, &attributes);
}

void wefti_nvtx_range_end(void *domain, uint64_t range)
{
    nvtxDomainRangeEnd((nvtxDomainHandle_t)domain, range);
}

#else

void *wefti_nvtx_open(const weft_world *world)
{
    wefti_log(WEFTI_LOG_WARN, "world \"%s\" PE %u: WEFT_NVTX is set, but this build had no nvtx3/nvToolsExt.h",
              world->name, world->view.pe);
    return NULL;
}

void wefti_nvtx_close(void *domain)
{
    (void)domain;
}

uint64_t wefti_nvtx_range_start(void *domain, const char *name)
{
    (void)domain;
    (void)name;
    return 0;
}

void wefti_nvtx_range_end(void *domain, uint64_t range)
{
    (void)domain;
    (void)range;
}

#endif
