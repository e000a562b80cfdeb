/* topo/domain.h: link domains of GPUs: who loads and stores whose memory, from what PEs tell of their GPUs.
 *
 * Two PEs are in one domain if each reaches the other: on one host by peer access, else by multi-node NVLink. For that
 * both GPUs are of one fabric cluster and clique, and each fabric's state is completed, its status success, its UUID
 * not zero, the driver has fabric handles, and a trial export and import worked. In a domain access is mutual; for PEs
 * that are left out the reason is reported. A few bytes a PE, and any number of PEs: the work grows as PEs log PEs. */
#ifndef WEFTI_TOPO_DOMAIN_H
#define WEFTI_TOPO_DOMAIN_H

#include "topo/machine.h"

#define WEFTI_TOPO_GPUS_OF_HOST_MAX 64

/* What a PE tells all others of its GPU. */
typedef struct wefti_topo_gpu_of_pe {
    unsigned char host[16]; /* equal for PEs of one node */
    uint64_t reaches; /* GPUs of the host whose memory this PE's can access, by their ordinal, as bits */
    uint8_t has_gpu;
    uint8_t ordinal; /* of this PE's GPU on its host, in PCI order */
    uint8_t unused[2];
    wefti_topo_fabric fabric;
} wefti_topo_gpu_of_pe;

/* Why a fabric does not count, or NULL. */
const char *wefti_topo_fabric_refusal(const wefti_topo_fabric *fabric);

/* Called for each thing that a person should know: who is not with whom, and why. */
typedef void wefti_topo_tell(void *context, const char *text);

/* Whether `pe` imported and mapped the memory of `other`, of another host and the same clique. */
typedef int wefti_topo_imports(void *context, int pe, int other);

/* Whether any two PEs are of different hosts and of one clique that counts; -1: no memory. */
int wefti_topo_spans_hosts(const wefti_topo_gpu_of_pe *gpus, int pes);

/* domain_of[i] becomes the lowest PE of PE i's domain; of a PE without a GPU itself. Every PE gets the same result
 * from the same `gpus`. `imports` NULL: none were tried, and all are taken to work. Returns how many domains there are,
 * or -1: no memory. */
int wefti_topo_domains(const wefti_topo_gpu_of_pe *gpus, int pes, int32_t *domain_of, wefti_topo_imports *imports,
                       wefti_topo_tell *tell, void *context);

/* The GPUs of a described machine, one PE a GPU, hosts in order and GPUs in PCI order. GPUs of a host reach each other
 * unless the machine says otherwise or one is divided (MIG). The caller frees *gpus (wefti_free), and
 * *objects, the machine's objects. Returns how many, or -1 with this thread's error. */
int wefti_topo_gpus_of(const wefti_topo *topo, wefti_topo_gpu_of_pe **gpus, int **objects);

#endif
