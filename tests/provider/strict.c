/* A libfabric that asks of its user all that a provider may ask, over the provider that is there: loaded in place of
 * libfabric.so.1 by tests. All PEs must be threads of one process, since keys are translated in its table.
 *
 *   memory     registered, with pages, before anything is sent from, received into, written or read there, for the
 *              endpoint that uses it (FI_MR_LOCAL, FI_MR_ALLOCATED, FI_MR_ENDPOINT); remote memory by its address there
 *              and the provider's key (FI_MR_VIRT_ADDR, FI_MR_PROV_KEY), within one registration
 *   contexts   nobody else's while the operation is under way (FI_CONTEXT2)
 *   queues     one operation to send at a time an endpoint (STRICT_QUEUE: so many), ended when its completion has been
 *              read; else, and sometimes for no reason, -FI_EAGAIN
 *   order      a write is complete before it goes, and goes behind later messages, unless FI_ORDER_SAW was asked for,
 *              or FI_DELIVERY_COMPLETE of it
 *   keys       with STRICT_KEYS=long they have more than 64 bits (FI_MR_RAW): who writes or reads by one has made one
 *              of its own of it for its domain, and takes back all that it made before it closes that; with
 *              STRICT_KEYS=longer nobody has room for them, and nothing is to be written or read
 *   inject     nothing can be given away; with STRICT_INJECT=n messages and writes of at most n bytes can, writes
 *              with a completion only, and a process that ends gave away some messages, and writes if n is 128 and more
 *   progress   completions come when the queue is read, some reads later, and in another order than the operations,
 *              but for those of messages received where FI_ORDER_STRICT was asked of them
 *   interface  with STRICT_CLOSED no endpoint can be opened
 *
 * What does not keep to it ends the process, and so does a process that ends and never wrote or read. */
#include "provider/library.h"

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MODES (FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT)
#define HELD_MAX 256 /* completions that are late */
#define OPEN_MAX 512
#define DEFERRED_MAX 16 /* writes */
#define LATE_MAX 4 /* reads */
#define RING_SLOT_BYTES 128 /* transport/ofi/ring.h */
#define KEY_BASE UINT64_C(0x5000000000000000)
#define MAPPED_BASE UINT64_C(0x3000000000000000)
#define LONGER_BYTES 4096 /* of a key that nobody has room for */

typedef struct network {
    struct fid_fabric face;
    struct fid_fabric *real;
} network;

typedef struct interface {
    struct fid_domain face;
    struct fid_domain *real;
    size_t mapped; /* keys */
} interface;

/* What FI_MR_RAW has others carry. */
typedef struct long_key {
    unsigned char mark[8];
    uint64_t number;
    uint64_t not_number;
} long_key;

/* A key that a domain has made of a long one. */
typedef struct mapping {
    const interface *domain;
    uint64_t key;
    uint64_t number; /* of the registration */
    struct mapping *next;
} mapping;

typedef struct end end;

typedef struct held {
    struct fi_cq_data_entry entry;
    unsigned reads; /* until it is told */
} held;

typedef struct queue {
    struct fid_cq face;
    struct fid_cq *real;
    end *user; /* one endpoint has it */
    held held[HELD_MAX];
    size_t count;
} queue;

/* A write that has been completed and has not been done. */
typedef struct deferred {
    struct fi_context2 context; /* the provider's; first */
    struct fi_msg_rma message;
    struct iovec local;
    struct fi_rma_iov remote;
    uint64_t flags;
    unsigned reads; /* until it goes */
    int is_gone;
} deferred;

struct end {
    struct fid_ep face;
    struct fid_ep *real;
    const interface *domain;
    queue *completions;
    int keeps_order; /* of messages received */
    int orders_writes;
    int sending;
    int sending_max;
    deferred *deferred[DEFERRED_MAX];
    size_t deferred_count;
    void *open[OPEN_MAX]; /* contexts */
    size_t open_count;
};

typedef struct region {
    struct fid_mr face;
    struct fid_mr *real;
    const unsigned char *base;
    size_t bytes;
    uint64_t number;
    end *user;
    int is_enabled;
    struct region *next;
} region;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static region *regions;
static uint64_t regions_made;
static mapping *mappings;
static uint64_t mappings_made;
static uint64_t moves; /* writes and reads */
static uint64_t injected_messages;
static uint64_t injected_writes;
static uint64_t drawn = 0x9e3779b97f4a7c15;
/* What the provider itself asks and has. */
static int real_modes;
static size_t real_key;
static size_t real_queue;
static size_t real_inject;

int strict_provider(void); /* for tests to see which library they have */

int strict_provider(void)
{
    return 1;
}

static unsigned draw(unsigned below)
{
    pthread_mutex_lock(&lock);
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    const unsigned value = (unsigned)(drawn >> 33) % below;
    pthread_mutex_unlock(&lock);
    return value;
}

static void *allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);
    expect(memory != NULL, "no memory");
    return memory;
}

/* ---- long keys ---- */

static size_t long_key_bytes(void)
{
    const char *keys = getenv("STRICT_KEYS");
    return keys == NULL ? 0 : strcmp(keys, "longer") == 0 ? LONGER_BYTES : sizeof(long_key);
}

static size_t inject_max(void)
{
    const char *most = getenv("STRICT_INJECT");
    return most == NULL ? 0 : (size_t)atoi(most);
}

static __attribute__((destructor)) void check_moves(void)
{
    expect((injected_messages + injected_writes > 0) == (inject_max() > 0), "a process gives away messages if it can");
    expect((injected_writes > 0) == (inject_max() >= RING_SLOT_BYTES), "a process writes into rings if it can");
    expect((moves > 0) == (long_key_bytes() < LONGER_BYTES), "a process writes and reads, unless keys are too long");
}

static int tell_long_key(region *of, const struct fi_mr_raw_attr *told)
{
    const long_key key = {.mark = "strict", .number = of->number, .not_number = ~of->number};
    expect(long_key_bytes() > 0, "keys are not long");
    expect(*told->key_size >= sizeof key, "a long key has room");
    memcpy(told->raw_key, &key, sizeof key);
    *told->key_size = sizeof key;
    *told->base_addr = (uint64_t)(uintptr_t)of->base;
    return 0;
}

static int map_long_key(interface *domain, const struct fi_mr_map_raw *given)
{
    long_key key;
    expect(given->key_size == sizeof key, "a long key comes whole");
    memcpy(&key, given->raw_key, sizeof key);
    expect(memcmp(key.mark, "strict", 7) == 0 && key.not_number == ~key.number, "a long key is one of this provider's");
    mapping *made = allocate(sizeof *made);
    pthread_mutex_lock(&lock);
    *made = (mapping){.domain = domain, .key = MAPPED_BASE + ++mappings_made, .number = key.number, .next = mappings};
    mappings = made;
    domain->mapped++;
    pthread_mutex_unlock(&lock);
    *given->key = made->key;
    return 0;
}

static int unmap_key(interface *domain, uint64_t key)
{
    pthread_mutex_lock(&lock);
    mapping **link = &mappings;
    while (*link != NULL && ((*link)->key != key || (*link)->domain != domain)) {
        link = &(*link)->next;
    }
    mapping *ended = *link;
    expect(ended != NULL, "a key that is taken back was made for that domain");
    *link = ended->next;
    domain->mapped--;
    pthread_mutex_unlock(&lock);
    free(ended);
    return 0;
}

/* Which registration a key means to an endpoint; under the lock. 0: none. */
static uint64_t number_of(const end *user, uint64_t key)
{
    if (long_key_bytes() == 0) {
        return key - KEY_BASE;
    }
    const mapping *of = mappings;
    while (of != NULL && (of->key != key || of->domain != user->domain)) {
        of = of->next;
    }
    return of != NULL ? of->number : 0;
}

/* ---- the library ---- */

/* What the caller gets to see: the modes of a strict provider, an order of completions only if it was asked for. */
static void tighten(struct fi_info *info, const struct fi_info *hints)
{
    real_modes = info->domain_attr->mr_mode;
    real_key = info->domain_attr->mr_key_size;
    real_queue = info->tx_attr->size;
    real_inject = info->tx_attr->inject_size;
    info->domain_attr->mr_mode = long_key_bytes() > 0 ? MODES | FI_MR_RAW : MODES;
    info->domain_attr->mr_key_size = long_key_bytes() > 0 ? long_key_bytes() : info->domain_attr->mr_key_size;
    info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    info->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    info->mode = FI_CONTEXT | FI_CONTEXT2;
    info->tx_attr->mode = info->rx_attr->mode = info->mode;
    info->tx_attr->inject_size = inject_max();
    info->tx_attr->size = 1;
    info->tx_attr->msg_order &= hints->tx_attr->msg_order; /* what is not asked for is not there */
    info->rx_attr->comp_order = hints->rx_attr->comp_order & FI_ORDER_STRICT;
    info->tx_attr->comp_order = FI_ORDER_NONE;
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
               struct fi_info **info)
{
    load_once();
    const int is_rma = (hints->caps & FI_RMA) != 0;
    const int raw = long_key_bytes() > 0 ? FI_MR_RAW : 0;
    if (hints->tx_attr->inject_size > inject_max()) {
        return -FI_ENODATA;
    }
    const int needed = is_rma ? MODES | raw : FI_MR_LOCAL | FI_MR_ENDPOINT;
    if ((hints->domain_attr->mr_mode & needed) != needed || (hints->mode & FI_CONTEXT2) == 0) {
        return -FI_ENODATA;
    }
    int error = real.getinfo(version, node, service, flags, hints, info);
    for (struct fi_info *i = error == 0 ? *info : NULL; i != NULL; i = i->next) {
        tighten(i, hints);
    }
    return error;
}

/* The provider's own, to open it with. */
static struct fi_info *loosen(const struct fi_info *info)
{
    struct fi_info *loose = real.dupinfo(info);
    expect(loose != NULL, "no memory");
    loose->domain_attr->mr_mode = real_modes;
    loose->domain_attr->mr_key_size = real_key;
    loose->tx_attr->size = real_queue;
    loose->tx_attr->inject_size = real_inject;
    return loose;
}

/* ---- memory ---- */

static int close_region(struct fid *fid)
{
    region *closed = (region *)(void *)fid;
    pthread_mutex_lock(&lock);
    region **link = &regions;
    while (*link != closed) {
        link = &(*link)->next;
    }
    *link = closed->next;
    pthread_mutex_unlock(&lock);
    int error = fi_close(&closed->real->fid);
    free(closed);
    return error;
}

static int bind_region(struct fid *fid, struct fid *to, uint64_t flags)
{
    region *bound = (region *)(void *)fid;
    (void)flags;
    expect(to->fclass == FI_CLASS_EP && bound->user == NULL, "a registration is bound to one endpoint");
    bound->user = (end *)(void *)to;
    return 0;
}

static int control_region(struct fid *fid, int command, void *argument)
{
    region *enabled = (region *)(void *)fid;
    if (command == FI_GET_RAW_MR) {
        expect(enabled->is_enabled, "a registration is enabled before it is told");
        return tell_long_key(enabled, argument);
    }
    expect(command == FI_ENABLE && enabled->user != NULL, "a registration is bound before it is enabled");
    enabled->is_enabled = 1;
    enabled->face.key = long_key_bytes() > 0 ? FI_KEY_NOTAVAIL : KEY_BASE + enabled->number;
    return 0;
}

static struct fi_ops region_ops = {
    .size = sizeof(struct fi_ops), .close = close_region, .bind = bind_region, .control = control_region};

static int has_pages(const void *memory, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)memory / page * page;
    const size_t length = (uintptr_t)memory + bytes - first;
    unsigned char *told = malloc(length / page + 1);
    const int has = told != NULL && mincore((void *)first, length, told) == 0;
    free(told);
    return has;
}

static int register_memory(struct fid *fid, const void *memory, size_t bytes, uint64_t access, uint64_t offset,
                           uint64_t key, uint64_t flags, struct fid_mr **registration, void *context)
{
    interface *domain = (interface *)(void *)fid;
    region *made = allocate(sizeof *made);
    (void)key; /* the provider's */
    expect(has_pages(memory, bytes), "what is registered has pages");
    pthread_mutex_lock(&lock);
    const uint64_t number = ++regions_made;
    pthread_mutex_unlock(&lock);
    int error = fi_mr_reg(domain->real, memory, bytes, access, offset, number, flags, &made->real, context);
    if (error != 0) {
        free(made);
        return error;
    }
    made->base = memory;
    made->bytes = bytes;
    made->face.fid = (struct fid){.fclass = FI_CLASS_MR, .ops = &region_ops};
    made->face.mem_desc = made;
    made->number = number;
    made->face.key = FI_KEY_NOTAVAIL;
    pthread_mutex_lock(&lock);
    made->next = regions;
    regions = made;
    pthread_mutex_unlock(&lock);
    *registration = &made->face;
    return 0;
}

static struct fi_ops_mr memory_ops = {.size = sizeof(struct fi_ops_mr), .reg = register_memory};

/* Returns the provider's descriptor. */
static void *check_local(const end *user, const void *memory, size_t bytes, const void *descriptor)
{
    const region *in = descriptor;
    expect(in != NULL, "local memory has a descriptor");
    expect(in->is_enabled && in->user == user, "local memory is registered for the endpoint that uses it");
    expect((const unsigned char *)memory >= in->base && (const unsigned char *)memory + bytes <= in->base + in->bytes,
           "local memory lies in what was registered");
    return fi_mr_desc(in->real);
}

static void translate(const end *user, struct fi_rma_iov *remote)
{
    pthread_mutex_lock(&lock);
    const uint64_t number = number_of(user, remote->key);
    const region *of = regions;
    while (of != NULL && (!of->is_enabled || of->number != number)) {
        of = of->next;
    }
    moves++;
    pthread_mutex_unlock(&lock);
    expect(of != NULL, "the key is one of a registration that is enabled");
    const uint64_t at = remote->addr - (uint64_t)(uintptr_t)of->base;
    expect(at <= of->bytes && remote->len <= of->bytes - at, "remote memory lies in what was registered");
    remote->addr = (real_modes & FI_MR_VIRT_ADDR) != 0 ? remote->addr : at;
    remote->key = fi_mr_key(of->real);
}

/* ---- operations ---- */

static void open_context(end *user, void *context)
{
    expect(context != NULL, "an operation has a context");
    for (size_t i = 0; i < user->open_count; i++) {
        expect(user->open[i] != context, "a context belongs to one operation");
    }
    expect(user->open_count < OPEN_MAX, "too many operations");
    user->open[user->open_count++] = context;
}

static void close_context(end *user, const void *context)
{
    size_t i = 0;
    while (i < user->open_count && user->open[i] != context) {
        i++;
    }
    expect(i < user->open_count, "the provider completed what was not begun");
    user->open[i] = user->open[--user->open_count];
}

static int is_unwilling(const end *user, int sends)
{
    return (sends && user->sending == user->sending_max) || draw(4) == 0;
}

static ssize_t begun(end *user, ssize_t error, int sends, void *context)
{
    if (error == 0) {
        open_context(user, context);
        user->sending += sends;
    }
    return error;
}

static ssize_t receive(struct fid_ep *face, void *memory, size_t bytes, void *descriptor, fi_addr_t from, void *context)
{
    end *user = (end *)(void *)face;
    descriptor = check_local(user, memory, bytes, descriptor);
    return is_unwilling(user, 0)
               ? -FI_EAGAIN
               : begun(user, fi_recv(user->real, memory, bytes, descriptor, from, context), 0, context);
}

static ssize_t send_message(struct fid_ep *face, const void *memory, size_t bytes, void *descriptor, fi_addr_t to,
                            void *context)
{
    end *user = (end *)(void *)face;
    descriptor = check_local(user, memory, bytes, descriptor);
    return is_unwilling(user, 1) ? -FI_EAGAIN
                                 : begun(user, fi_send(user->real, memory, bytes, descriptor, to, context), 1, context);
}

/* The memory is the caller's again at once. */
static ssize_t inject_message(struct fid_ep *face, const void *memory, size_t bytes, fi_addr_t to)
{
    end *user = (end *)(void *)face;
    expect(bytes <= inject_max(), "what is given away is short");
    const ssize_t error = is_unwilling(user, 0) ? -FI_EAGAIN : fi_inject(user->real, memory, bytes, to);
    pthread_mutex_lock(&lock);
    injected_messages += error == 0;
    pthread_mutex_unlock(&lock);
    return error;
}

/* Its data is taken, and it is completed. */
static void defer(end *user, const struct fi_msg_rma *message, const struct fi_rma_iov *remote, uint64_t flags)
{
    queue *q = user->completions;
    deferred *one = allocate(sizeof *one);
    *one = (deferred){.message = *message,
                      .local = {.iov_base = allocate(remote->len), .iov_len = remote->len},
                      .remote = *remote,
                      .flags = flags,
                      .reads = draw(3 * LATE_MAX)};
    memcpy(one->local.iov_base, message->msg_iov->iov_base, remote->len);
    one->message.msg_iov = &one->local;
    one->message.desc = NULL;
    one->message.rma_iov = &one->remote;
    one->message.context = &one->context;
    user->deferred[user->deferred_count++] = one;
    q->held[q->count++] = (held){.entry = {.op_context = message->context, .flags = FI_RMA | FI_WRITE}};
}

/* Those that are due go, behind what has been sent meanwhile. */
static void send_deferred(end *user)
{
    for (size_t i = 0; i < user->deferred_count; i++) {
        deferred *one = user->deferred[i];
        if (one->reads > 0) {
            one->reads--;
        } else if (!one->is_gone) { /* perhaps tried again */
            one->is_gone = fi_writemsg(user->real, &one->message, one->flags) == 0;
        }
    }
}

/* Whether it is the provider's completion of such a write, of which its user has been told. */
static int forget_deferred(end *user, const void *context)
{
    for (size_t i = 0; i < user->deferred_count; i++) {
        deferred *one = user->deferred[i];
        if (context == &one->context) {
            user->deferred[i] = user->deferred[--user->deferred_count];
            free(one->local.iov_base);
            free(one);
            return 1;
        }
    }
    return 0;
}

/* Memory that is the caller's again at once has no descriptor. */
static void *check_given_away(const end *user, const struct fi_rma_iov *remote, uint64_t flags)
{
    expect(remote->len <= inject_max(), "what is given away is short");
    expect((flags & FI_COMPLETION) != 0, "a write that is given away has a completion");
    expect(user->orders_writes, "a write that is given away keeps an order");
    pthread_mutex_lock(&lock);
    injected_writes++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static ssize_t move(struct fid_ep *face, const struct fi_msg_rma *message, uint64_t flags, int is_write)
{
    end *user = (end *)(void *)face;
    struct fi_msg_rma loose = *message;
    struct fi_rma_iov remote = *message->rma_iov;
    expect(message->iov_count == 1 && message->rma_iov_count == 1, "a write or read has one piece");
    void *descriptor = (flags & FI_INJECT) != 0
                           ? check_given_away(user, &remote, flags)
                           : check_local(user, message->msg_iov->iov_base, message->msg_iov->iov_len, message->desc[0]);
    translate(user, &remote);
    loose.desc = &descriptor;
    loose.rma_iov = &remote;
    if (is_unwilling(user, 1)) {
        return -FI_EAGAIN;
    }
    if (is_write && !user->orders_writes && (flags & FI_DELIVERY_COMPLETE) == 0 &&
        user->deferred_count < DEFERRED_MAX && user->completions->count < HELD_MAX) {
        defer(user, message, &remote, flags);
        return begun(user, 0, 1, message->context);
    }
    return begun(user, is_write ? fi_writemsg(user->real, &loose, flags) : fi_readmsg(user->real, &loose, flags), 1,
                 message->context);
}

static ssize_t write_memory(struct fid_ep *face, const struct fi_msg_rma *message, uint64_t flags)
{
    return move(face, message, flags, 1);
}

static ssize_t read_memory(struct fid_ep *face, const struct fi_msg_rma *message, uint64_t flags)
{
    return move(face, message, flags, 0);
}

/* libfabric 1.17 follows the context of a write that fails, and this has none. */
static ssize_t inject_write(struct fid_ep *face, const void *memory, size_t bytes, fi_addr_t to, uint64_t at,
                            uint64_t key)
{
    (void)face;
    (void)memory;
    (void)bytes;
    (void)to;
    (void)at;
    (void)key;
    expect(0, "a write that is given away has a completion");
    return -FI_ENOSYS;
}

static struct fi_ops_msg message_ops = {
    .size = sizeof(struct fi_ops_msg), .recv = receive, .send = send_message, .inject = inject_message};
static struct fi_ops_rma rma_ops = {
    .size = sizeof(struct fi_ops_rma), .writemsg = write_memory, .readmsg = read_memory, .inject = inject_write};

/* ---- completions ---- */

static int is_received(const held *one)
{
    return (one->entry.flags & FI_RECV) != 0;
}

static void hold(queue *q)
{
    struct fi_cq_data_entry entry;
    while (q->count < HELD_MAX && fi_cq_read(q->real, &entry, 1) == 1) {
        if (!forget_deferred(q->user, entry.op_context)) {
            q->held[q->count++] = (held){entry, draw(LATE_MAX)};
        }
    }
    for (size_t i = 0; i < q->count; i++) {
        q->held[i].reads -= q->held[i].reads > 0;
    }
}

/* One that is due: any, but the first of those that keep their order. Returns q->count if there is none. */
static size_t choose(const queue *q)
{
    const size_t start = q->count > 0 ? draw((unsigned)q->count) : 0;
    size_t first_received = 0;
    while (first_received < q->count && !is_received(&q->held[first_received])) {
        first_received++;
    }
    for (size_t step = 0; step < q->count; step++) {
        const size_t i = (start + step) % q->count;
        const int waits = is_received(&q->held[i]) && q->user->keeps_order && i != first_received;
        if (q->held[i].reads == 0 && !waits) {
            return i;
        }
    }
    return q->count;
}

static ssize_t read_queue(struct fid_cq *face, void *entries, size_t count)
{
    queue *q = (queue *)(void *)face;
    size_t told = 0;
    send_deferred(q->user);
    hold(q);
    for (size_t i = choose(q); told < count && i < q->count; i = choose(q)) {
        const struct fi_cq_data_entry entry = q->held[i].entry;
        memmove(&q->held[i], &q->held[i + 1], (q->count - i - 1) * sizeof *q->held);
        q->count--;
        if ((entry.flags & FI_REMOTE_WRITE) == 0) { /* which is another PE's */
            close_context(q->user, entry.op_context);
            q->user->sending -= (entry.flags & FI_RECV) == 0;
        }
        ((struct fi_cq_data_entry *)entries)[told++] = entry;
    }
    if (told == 0) {
        const ssize_t error = fi_cq_read(q->real, NULL, 0);
        return error == -FI_EAVAIL ? error : -FI_EAGAIN;
    }
    return (ssize_t)told;
}

static ssize_t read_error(struct fid_cq *face, struct fi_cq_err_entry *entry, uint64_t flags)
{
    queue *q = (queue *)(void *)face;
    const ssize_t count = fi_cq_readerr(q->real, entry, flags);
    if (count > 0 && entry->op_context != NULL && forget_deferred(q->user, entry->op_context)) {
        entry->op_context = NULL;
    } else if (count > 0 && entry->op_context != NULL) {
        close_context(q->user, entry->op_context);
        q->user->sending -= (entry->flags & FI_RECV) == 0;
    }
    return count;
}

static struct fi_ops_cq queue_ops = {.size = sizeof(struct fi_ops_cq), .read = read_queue, .readerr = read_error};

static int close_queue(struct fid *fid)
{
    queue *q = (queue *)(void *)fid;
    int error = fi_close(&q->real->fid);
    free(q);
    return error;
}

static int control_queue(struct fid *fid, int command, void *argument)
{
    return fi_control(&((queue *)(void *)fid)->real->fid, command, argument);
}

static struct fi_ops queue_fid_ops = {.size = sizeof(struct fi_ops), .close = close_queue, .control = control_queue};

static int open_queue(struct fid_domain *face, struct fi_cq_attr *attributes, struct fid_cq **out, void *context)
{
    queue *q = allocate(sizeof *q);
    expect(attributes->format == FI_CQ_FORMAT_DATA, "completions have the format FI_CQ_FORMAT_DATA");
    int error = fi_cq_open(((interface *)(void *)face)->real, attributes, &q->real, context);
    if (error != 0) {
        free(q);
        return error;
    }
    q->face.fid = (struct fid){.fclass = FI_CLASS_CQ, .ops = &queue_fid_ops};
    q->face.ops = &queue_ops;
    *out = &q->face;
    return 0;
}

/* ---- endpoints ---- */

static int close_end(struct fid *fid)
{
    end *closed = (end *)(void *)fid;
    int error = fi_close(&closed->real->fid);
    while (closed->deferred_count > 0) {
        (void)forget_deferred(closed, &closed->deferred[0]->context);
    }
    free(closed);
    return error;
}

static int bind_end(struct fid *fid, struct fid *to, uint64_t flags)
{
    end *user = (end *)(void *)fid;
    if (to->fclass == FI_CLASS_CQ) {
        user->completions = (queue *)(void *)to;
        expect(user->completions->user == NULL, "a queue of completions has one endpoint");
        user->completions->user = user;
        to = &user->completions->real->fid;
    }
    return fi_ep_bind(user->real, to, flags);
}

static int control_end(struct fid *fid, int command, void *argument)
{
    return fi_control(&((end *)(void *)fid)->real->fid, command, argument);
}

static int name_end(struct fid *fid, void *name, size_t *bytes)
{
    return fi_getname(&((end *)(void *)fid)->real->fid, name, bytes);
}

static struct fi_ops end_ops = {
    .size = sizeof(struct fi_ops), .close = close_end, .bind = bind_end, .control = control_end};
static struct fi_ops_cm name_ops = {.size = sizeof(struct fi_ops_cm), .getname = name_end};

static int open_end(struct fid_domain *face, struct fi_info *info, struct fid_ep **out, void *context)
{
    if (getenv("STRICT_CLOSED") != NULL) {
        return -FI_EBADF;
    }
    end *made = allocate(sizeof *made);
    struct fi_info *loose = loosen(info);
    int error = fi_endpoint(((interface *)(void *)face)->real, loose, &made->real, context);
    real.freeinfo(loose);
    if (error != 0) {
        free(made);
        return error;
    }
    const char *queue_of = getenv("STRICT_QUEUE");
    made->sending_max = queue_of != NULL ? atoi(queue_of) : 1;
    made->orders_writes = (info->tx_attr->msg_order & FI_ORDER_SAW) != 0;
    made->keeps_order = (info->rx_attr->comp_order & FI_ORDER_STRICT) != 0;
    made->domain = (const interface *)(const void *)face;
    made->face.fid = (struct fid){.fclass = FI_CLASS_EP, .ops = &end_ops};
    made->face.cm = &name_ops;
    made->face.msg = &message_ops;
    made->face.rma = &rma_ops;
    *out = &made->face;
    return 0;
}

/* ---- domains and fabrics ---- */

static int open_addresses(struct fid_domain *face, struct fi_av_attr *attributes, struct fid_av **out, void *context)
{
    return fi_av_open(((interface *)(void *)face)->real, attributes, out, context);
}

static int close_domain(struct fid *fid)
{
    interface *closed = (interface *)(void *)fid;
    expect(closed->mapped == 0, "what was made of long keys is taken back before its domain is closed");
    int error = fi_close(&closed->real->fid);
    free(closed);
    return error;
}

static int control_domain(struct fid *fid, int command, void *argument)
{
    interface *of = (interface *)(void *)fid;
    expect(command == FI_MAP_RAW_MR || command == FI_UNMAP_KEY, "a domain is asked for keys alone");
    return command == FI_MAP_RAW_MR ? map_long_key(of, argument) : unmap_key(of, *(const uint64_t *)argument);
}

static struct fi_ops domain_fid_ops = {.size = sizeof(struct fi_ops), .close = close_domain, .control = control_domain};
static struct fi_ops_domain domain_ops = {
    .size = sizeof(struct fi_ops_domain), .av_open = open_addresses, .cq_open = open_queue, .endpoint = open_end};

static int open_domain(struct fid_fabric *face, struct fi_info *info, struct fid_domain **out, void *context)
{
    interface *made = allocate(sizeof *made);
    struct fi_info *loose = loosen(info);
    int error = fi_domain(((network *)(void *)face)->real, loose, &made->real, context);
    real.freeinfo(loose);
    if (error != 0) {
        free(made);
        return error;
    }
    made->face.fid = (struct fid){.fclass = FI_CLASS_DOMAIN, .ops = &domain_fid_ops};
    made->face.ops = &domain_ops;
    made->face.mr = &memory_ops;
    *out = &made->face;
    return 0;
}

/* Nobody may sleep while there is something to tell. */
static int try_wait(struct fid_fabric *face, struct fid **fids, int count)
{
    struct fid *loose[8];
    expect(count <= 8, "too many queues to wait for");
    for (int i = 0; i < count; i++) {
        queue *q = (queue *)(void *)fids[i];
        if (q->count > 0 || q->user->deferred_count > 0) {
            return -FI_EAGAIN;
        }
        loose[i] = &q->real->fid;
    }
    return fi_trywait(((network *)(void *)face)->real, loose, count);
}

static int close_network(struct fid *fid)
{
    network *closed = (network *)(void *)fid;
    int error = fi_close(&closed->real->fid);
    free(closed);
    return error;
}

static struct fi_ops network_fid_ops = {.size = sizeof(struct fi_ops), .close = close_network};
static struct fi_ops_fabric network_ops = {
    .size = sizeof(struct fi_ops_fabric), .domain = open_domain, .trywait = try_wait};

int fi_fabric(struct fi_fabric_attr *attributes, struct fid_fabric **out, void *context)
{
    load_once();
    network *made = allocate(sizeof *made);
    int error = real.fabric(attributes, &made->real, context);
    if (error != 0) {
        free(made);
        return error;
    }
    made->face.fid = (struct fid){.fclass = FI_CLASS_FABRIC, .ops = &network_fid_ops};
    made->face.ops = &network_ops;
    made->face.api_version = made->real->api_version;
    *out = &made->face;
    return 0;
}
