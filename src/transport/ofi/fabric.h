/* transport/ofi/fabric.h: libfabric, loaded when a world spans nodes, and what is opened of it for one PE. */
#ifndef WEFTI_TRANSPORT_OFI_FABRIC_H
#define WEFTI_TRANSPORT_OFI_FABRIC_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <stddef.h>

#include "transport/am/wire.h"
#include "transport/ofi/interface.h"
#include "weft/status.h"

#define WEFTI_FABRIC_NAME_MAX 64 /* bytes of an endpoint's address */
#define WEFTI_FABRIC_PROVIDER_MAX 32
/* Bytes that a provider is asked to take without telling when they have gone; it may take fewer. Many take 64 unless
 * asked for more, which is less than a word and its header. */
#define WEFTI_FABRIC_INJECT 192

/* Two endpoints a rail (message.h), each with a queue of completions. A rail that is there for writes and reads alone
 * has the first. */
enum { WEFTI_FABRIC_REQUESTS, WEFTI_FABRIC_REPLIES, WEFTI_FABRIC_ENDPOINTS };

/* Whether a PE may read and write another's memory by itself. */
typedef enum wefti_fabric_rma {
    WEFTI_FABRIC_NO_RMA,
    WEFTI_FABRIC_RMA_COMPLETES, /* a write is complete when it is in the other's memory, and has no order */
    WEFTI_FABRIC_RMA_COUNTED, /* the other is told of each write that is in its memory; they have no order */
    WEFTI_FABRIC_RMA_ORDERED, /* what goes to a PE keeps its order, be it a message, a write or a read */
} wefti_fabric_rma;

/* Memory that others may read and write by any of this PE's own rails. */
typedef struct wefti_fabric_range {
    struct fid_mr *registrations[WEFTI_TOPO_RAILS_MAX];
    wefti_wire_told told[WEFTI_WIRE_RAILS_MAX];
} wefti_fabric_range;

typedef struct wefti_fabric_name {
    uint32_t slot; /* of its rail */
    uint32_t bytes; /* 0: there is none */
    unsigned char name[WEFTI_FABRIC_NAME_MAX];
} wefti_fabric_name;

/* Where a PE's endpoints are: messages go to the first rail's. */
typedef struct wefti_fabric_address {
    char provider[WEFTI_FABRIC_PROVIDER_MAX];
    wefti_fabric_name replies;
    wefti_fabric_name requests[WEFTI_WIRE_RAILS_MAX]; /* of its own rails, for writes and reads, too */
    wefti_wire_key rings[WEFTI_FABRIC_ENDPOINTS]; /* into which others write (ring.h), by the number of the PE */
    uint64_t has_rings;
} wefti_fabric_address;

/* What is opened of one interface. */
typedef struct wefti_fabric_rail {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *addresses;
    int endpoint_count;
    struct fid_cq *completions[WEFTI_FABRIC_ENDPOINTS];
    struct fid_ep *endpoints[WEFTI_FABRIC_ENDPOINTS];
    /* Registrations of the memory for messages, where the provider needs one, or one for each endpoint. */
    struct fid_mr *buffers[WEFTI_FABRIC_ENDPOINTS];
    void *descriptors[WEFTI_FABRIC_ENDPOINTS]; /* of that memory */
    struct fid_mr *rings[WEFTI_FABRIC_ENDPOINTS]; /* registrations of rings into which others write by that endpoint */
    uint64_t *mapped; /* keys made of others' long ones */
    size_t mapped_count;
    int wake[WEFTI_FABRIC_ENDPOINTS]; /* readable when something completes, once fi_trywait says so; or -1 */
    int slot;
    int port; /* of a NIC that has several; 0: it has one, or which it is is not known */
} wefti_fabric_rail;

typedef struct wefti_fabric {
    wefti_fabric_rail rails[WEFTI_TOPO_RAILS_MAX];
    int count;
    int own; /* the first of them, by which others reach this PE */
    wefti_topo_rails_wish wish;
    wefti_fabric_rma rma;
    char reason[WEFTI_TOPO_NIC_REASON_BYTES]; /* why these interfaces */
} wefti_fabric;

typedef struct wefti_fabric_wish {
    wefti_topo_pe pe; /* near which the interface is to be */
    int can_wake; /* if not, there are no wake descriptors, which the provider would see to at each completion */
    wefti_fabric_rma rma; /* at best */
} wefti_fabric_wish;

/* Load the library, choose the PE's interfaces and open all but the others' addresses. Several rails have no order in
 * common. Blocks as long as the library looks for networks. On failure nothing is left behind: WEFT_ERR_UNREACHABLE
 * says what was tried; else the status of wefti_ofi_interfaces_choose. */
weft_status wefti_fabric_open(wefti_fabric *fabric, const wefti_fabric_wish *wish, void *memory, size_t bytes,
                              wefti_fabric_address *address);
/* Close the endpoints only: nothing is under way any more. Safe on zeroed memory, as the next. */
void wefti_fabric_close_endpoints(wefti_fabric *fabric);
/* Close all; the caller has closed what it shared before. */
void wefti_fabric_close(wefti_fabric *fabric);

/* Make the endpoint `name` of another PE known to this rail. */
weft_status wefti_fabric_insert(wefti_fabric_rail *rail, const wefti_fabric_name *name, fi_addr_t *at);

/* Let others read and write memory. Whether the provider has taken it. */
int wefti_fabric_share(wefti_fabric *fabric, void *memory, size_t bytes, wefti_fabric_range *range);
void wefti_fabric_unshare(wefti_fabric_range *range);

/* Whether a PE may send messages by writing them where the other looks: short writes are copied, keep behind writes and
 * messages, are made in ascending order and only while this PE looks for completions, and what comes ends its sleep. */
int wefti_fabric_takes_rings(const wefti_fabric *fabric);
/* Whether what is registered can be written to by each endpoint. */
int wefti_fabric_has_common_keys(const wefti_fabric *fabric);
/* Let others write to rings, by one endpoint. Whether the provider has taken them. */
int wefti_fabric_share_rings(wefti_fabric *fabric, int which, void *memory, size_t bytes, wefti_wire_key *told);

/* Make a key for this rail of a long one (FI_MR_RAW), until the rail is closed. Whether the provider has taken it. */
int wefti_fabric_map(wefti_fabric_rail *rail, const wefti_wire_told *told, uint64_t *key);

#endif
