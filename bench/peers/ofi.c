/* Bare calls of libfabric, of the provider that FI_PROVIDER names. */
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#include "peers/bare.h"

typedef struct contact {
    unsigned char name[64];
    uint64_t remote;
    uint64_t key;
} contact;
_Static_assert(sizeof(contact) <= sizeof(bare_contact), "a contact has room");

static struct {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    void *descriptor;
    unsigned char *memory;
    struct {
        fi_addr_t at;
        uint64_t remote; /* its memory as its provider counts it */
        uint64_t key;
    } peers[BARE_PES_MAX];
    struct fi_context contexts[BARE_OPEN_MAX + 1];
    unsigned begun;
    unsigned over;
} net;

const char *const bare_library = "libfabric";
const size_t bare_piece = (size_t)32 << 10;

static void must(ssize_t error, const char *what)
{
    if (error != 0) {
        bare_fail(what, fi_strerror((int)(error < 0 ? -error : error)));
    }
}

static void find(void)
{
    struct fi_info *hints = fi_allocinfo();
    hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
    hints->mode = FI_CONTEXT;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
    must(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &net.info), "fi_getinfo");
    while (net.info->next != NULL && strcmp(net.info->domain_attr->name, "lo") == 0) {
        net.info = net.info->next;
    }
}

void bare_open(bare_contact *mine)
{
    struct fi_cq_attr cq = {.size = 1024, .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
    struct fi_av_attr av = {0};
    contact at = {0};
    size_t bytes = sizeof at.name;
    find();
    must(fi_fabric(net.info->fabric_attr, &net.fabric, NULL), "fi_fabric");
    must(fi_domain(net.fabric, net.info, &net.domain, NULL), "fi_domain");
    must(fi_av_open(net.domain, &av, &net.av, NULL), "fi_av_open");
    must(fi_cq_open(net.domain, &cq, &net.cq, NULL), "fi_cq_open");
    must(fi_endpoint(net.domain, net.info, &net.ep, NULL), "fi_endpoint");
    must(fi_ep_bind(net.ep, &net.av->fid, 0), "fi_ep_bind");
    must(fi_ep_bind(net.ep, &net.cq->fid, FI_SEND | FI_RECV), "fi_ep_bind");
    must(fi_enable(net.ep), "fi_enable");
    net.memory = aligned_alloc(4096, BARE_MEMORY);
    memset(net.memory, 0, BARE_MEMORY);
    must(fi_mr_reg(net.domain, net.memory, BARE_MEMORY,
                   FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE | FI_SEND | FI_RECV, 0, 77, 0, &net.mr, NULL),
         "fi_mr_reg");
    net.descriptor = fi_mr_desc(net.mr);
    must(fi_getname(&net.ep->fid, at.name, &bytes), "fi_getname");
    at.remote = (net.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0 ? (uint64_t)(uintptr_t)net.memory : 0;
    at.key = fi_mr_key(net.mr);
    memcpy(mine->bytes, &at, sizeof at);
}

void bare_connect(int pe, const bare_contact *at)
{
    contact other;
    memcpy(&other, at->bytes, sizeof other);
    net.peers[pe].remote = other.remote;
    net.peers[pe].key = other.key;
    if (fi_av_insert(net.av, other.name, 1, &net.peers[pe].at, 0, NULL) != 1) {
        bare_fail("fi_av_insert", "refused");
    }
}

unsigned char *bare_memory(void)
{
    return net.memory;
}

void bare_look(void)
{
    struct fi_cq_entry entry;
    const ssize_t count = fi_cq_read(net.cq, &entry, 1);
    if (count == -FI_EAVAIL) {
        bare_fail("fi_cq_read", "an operation failed");
    }
    net.over += count == 1;
}

void bare_settle(int open)
{
    while ((int)(net.begun - net.over) > open) {
        bare_look();
    }
}

/* Of the operation that begins; they complete in their order. */
static struct fi_context *context(void)
{
    return &net.contexts[net.begun % (BARE_OPEN_MAX + 1)];
}

/* Whether it has begun; else it is tried again. */
static int has_begun(ssize_t error, const char *what)
{
    if (error == -FI_EAGAIN) {
        bare_look();
        return 0;
    }
    must(error, what);
    net.begun++;
    return 1;
}

void bare_put(int pe, size_t at, const void *from, size_t bytes)
{
    while (!has_begun(fi_write(net.ep, from, bytes, net.descriptor, net.peers[pe].at, net.peers[pe].remote + at,
                               net.peers[pe].key, context()),
                      "fi_write")) {
    }
}

void bare_get(int pe, size_t at, void *to, size_t bytes)
{
    while (!has_begun(fi_read(net.ep, to, bytes, net.descriptor, net.peers[pe].at, net.peers[pe].remote + at,
                              net.peers[pe].key, context()),
                      "fi_read")) {
    }
}

void bare_fetch_add(int pe, size_t at, const uint64_t *value, uint64_t *before)
{
    while (!has_begun(fi_fetch_atomic(net.ep, value, 1, net.descriptor, before, net.descriptor, net.peers[pe].at,
                                      net.peers[pe].remote + at, net.peers[pe].key, FI_UINT64, FI_SUM, context()),
                      "fi_fetch_atomic")) {
    }
}

/* A read comes behind the writes. */
void bare_flush(int pe)
{
    bare_get(pe, 0, net.memory + 64, 8);
    bare_settle(0);
}

void bare_send(int pe)
{
    while (
        !has_begun(fi_send(net.ep, net.memory + 256, BARE_MESSAGE_BYTES, net.descriptor, net.peers[pe].at, context()),
                   "fi_send")) {
    }
    bare_settle(0);
}

void bare_receive(void)
{
    while (!has_begun(fi_recv(net.ep, net.memory + 512, BARE_MESSAGE_BYTES, net.descriptor, FI_ADDR_UNSPEC, context()),
                      "fi_recv")) {
    }
    bare_settle(0);
}
