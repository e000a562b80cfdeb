/* transport/ofi/fabric.h: libfabric, loaded when a world spans nodes, and what is opened of it for one PE. */
#ifndef WEFTI_TRANSPORT_OFI_FABRIC_H
#define WEFTI_TRANSPORT_OFI_FABRIC_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <stddef.h>

#include "transport/ofi/interface.h"
#include "weft/status.h"

#define WEFTI_FABRIC_NAME_MAX 64 /* bytes of an endpoint's address */
#define WEFTI_FABRIC_PROVIDER_MAX 32

/* Two endpoints (message.h), each with a queue of completions. */
enum { WEFTI_FABRIC_REQUESTS, WEFTI_FABRIC_REPLIES, WEFTI_FABRIC_ENDPOINTS };

/* Where a PE's endpoints are. */
typedef struct wefti_fabric_address {
    uint32_t bytes[WEFTI_FABRIC_ENDPOINTS]; /* 0: this PE has none */
    unsigned char name[WEFTI_FABRIC_ENDPOINTS][WEFTI_FABRIC_NAME_MAX];
    char provider[WEFTI_FABRIC_PROVIDER_MAX];
} wefti_fabric_address;

typedef struct wefti_fabric {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *addresses;
    struct fid_cq *completions[WEFTI_FABRIC_ENDPOINTS];
    struct fid_ep *endpoints[WEFTI_FABRIC_ENDPOINTS];
    struct fid_mr *buffers; /* registration of the memory for messages, where the provider needs it */
    void *descriptor; /* of that */
    int wake[WEFTI_FABRIC_ENDPOINTS]; /* readable when something completes, once fi_trywait says so; or -1 */
    char reason[WEFTI_TOPO_REASON_BYTES]; /* why this interface */
} wefti_fabric;

/* Load the library, choose the PE's interface and open all but the endpoints' addresses. Without `can_wake` there are
 * no wake descriptors, and the provider need not see to them at each completion. Blocks as long as the library
 * looks for networks. On failure nothing is left behind: WEFT_ERR_UNREACHABLE says what was tried; else the status of
 * wefti_ofi_interface_choose. */
weft_status wefti_fabric_open(wefti_fabric *fabric, const wefti_topo_pe *pe, int can_wake, void *memory, size_t bytes,
                              wefti_fabric_address *address);
/* Safe on zeroed memory. */
void wefti_fabric_close(wefti_fabric *fabric);

/* `name` is an endpoint of another PE. */
weft_status wefti_fabric_insert(wefti_fabric *fabric, const void *name, fi_addr_t *at);

/* The library's words for an error number. */
const char *wefti_fabric_error(int error);

#endif
