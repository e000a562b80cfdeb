/* What NVIDIA's tools are to NVTX: a library that the process loads because NVTX_INJECTION64_PATH names it. Appends
 * each range of the domain "weft" to the file NVTX_LISTENER_FILE, as "start NAME" and "end". */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tell(const char *what, const char *name)
{
    const char *path = getenv("NVTX_LISTENER_FILE");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file != NULL) {
        fprintf(file, "%s %s\n", what, name);
        fclose(file);
    }
}

static nvtxDomainHandle_t create(const char *name)
{
    static int weft;
    return strcmp(name, "weft") == 0 ? (nvtxDomainHandle_t)(void *)&weft : NULL;
}

static nvtxRangeId_t start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes)
{
    if (domain != NULL) {
        tell("start", attributes->message.ascii);
    }
    return 1;
}

static void end(nvtxDomainHandle_t domain, nvtxRangeId_t range)
{
    if (domain != NULL && range == 1) {
        tell("end", "");
    }
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table)
{
    const NvtxExportTableCallbacks *callbacks = get_export_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (callbacks == NULL || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) {
        return 0;
    }
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *table[NVTX_CBID_CORE2_DomainRangeStartEx] = (NvtxFunctionPointer)start;
    *table[NVTX_CBID_CORE2_DomainRangeEnd] = (NvtxFunctionPointer)end;
    return 1;
}
