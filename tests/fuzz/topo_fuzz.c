/* Goal: descriptions of machines, hwloc's XML and lists of NICs do no harm, whatever is in them: each is taken or
 * refused with a status; what was taken can be planned.
 * Method: the first byte of the input chooses what reads the rest; an XML begins with '<', which belongs to it. Other
 * files may not be named. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/description.h"
#include "topo/domain.h"
#include "topo/hwloc_xml.h"
#include "topo/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

#define OBJECTS_MAX 2000 /* of machines that are planned: hosts can be repeated */

static const char machine[] = "weft-topology 1\nhost h\nroot r\ngpu 0000:01:00.0 parent=r\ngpu 0000:02:00.0 parent=r\n"
                              "nic mlx5_0 parent=r\nnic mlx5_0 parent=r port=2\nnic mlx5_1 parent=r\n";

static void plan_all(const wefti_topo *topo, const wefti_topo_wish *wish)
{
    wefti_topo_gpu_of_pe *facts;
    int *gpus;
    for (int i = 0; i < topo->count; i++) {
        wefti_topo_plan plan;
        if (topo->objects[i].kind == WEFTI_TOPO_HOST && wefti_topo_plan_make(&plan, topo, i, wish) == WEFT_OK) {
            (void)wefti_topo_plan_without_gpu(&plan, topo, -1, 3);
            wefti_topo_plan_fini(&plan);
        }
    }
    const int pes = wefti_topo_gpus_of(topo, &facts, &gpus);
    if (pes < 0) {
        return;
    }
    int32_t *domain_of = wefti_alloc_zeroed((size_t)pes + 1, sizeof *domain_of);
    if (domain_of != NULL && wefti_topo_domains(facts, pes, domain_of, NULL, NULL, NULL) < 0) {
        abort();
    }
    wefti_free(domain_of);
    wefti_free(facts);
    wefti_free(gpus);
}

static weft_status read_xml(wefti_topo *topo, const char *text, size_t bytes)
{
    wefti_topo_init(topo);
    const int host = wefti_topo_add(topo, WEFTI_TOPO_HOST, -1, "h");
    return host < 0 ? WEFT_ERR_MEMORY : wefti_topo_add_hwloc_xml(topo, host, "xml", text, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes)
{
    wefti_topo topo;
    wefti_topo_wish wish = {0};
    if (bytes == 0) {
        return 0;
    }
    char *text = malloc(bytes); /* of its own, so that reading beyond it shows */
    if (text == NULL) {
        return 0;
    }
    if (input[0] == '<') {
        memcpy(text, input, bytes);
        if (read_xml(&topo, text, bytes) == WEFT_OK && topo.count <= OBJECTS_MAX) {
            plan_all(&topo, &wish);
        }
        wefti_topo_fini(&topo);
        free(text);
        return 0;
    }
    memcpy(text, input + 1, bytes - 1);
    text[bytes - 1] = '\0';
    if (input[0] % 4 == 0) {
        if (wefti_topo_parse(&topo, NULL, text, bytes - 1) == WEFT_OK && topo.count <= OBJECTS_MAX) {
            plan_all(&topo, &wish);
        }
    } else if (wefti_topo_parse(&topo, NULL, machine, sizeof machine - 1) == WEFT_OK) {
        wish.list = input[0] % 4 != 2 ? text : NULL;
        wish.mapping = input[0] % 4 == 2 ? text : NULL;
        wish.is_round_robin = input[0] % 4 == 3;
        plan_all(&topo, &wish);
    }
    wefti_topo_fini(&topo);
    free(text);
    return 0;
}
