/* bootstrap/unix/name.c: abstract unix sockets at names that follow from a key. */
#include "bootstrap/unix/name.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "os/os.h"
#include "os/socket.h"

#define BACKLOG 1024
#define PREFIX "weft-"

/* How often, and how long apart, a name is tried at which nobody listens: who bound it may be about to. */
#define PROBES 4
#define PROBE_PAUSE_NS UINT64_C(1000000)

/* How long the names that the system lists are tried in one look, at most. */
#define SEARCH_NS UINT64_C(100000000)
#define SEARCHED_MAX 1000u /* names */
#define NONCE_BYTES 8

/* Of the passes over the names of a key the n-th goes over 2^n of them, up to this one. */
#define PASS_MAX 4u

_Static_assert(1u << PASS_MAX == WEFTI_UNIX_NAMES_MAX, "the longest pass goes over all names");

static const size_t path_at = offsetof(struct sockaddr_un, sun_path);

/* ---- names ---- */

static size_t append_hex(struct sockaddr_un *address, size_t used, const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(address->sun_path + used, sizeof address->sun_path - used, "%02x", bytes[i]);
    }
    return used;
}

/* The name of what tells it from the key's others. Returns how many bytes of the path are used. */
static size_t write_name(const unsigned char key[WEFTI_HASH_BYTES], const void *what, size_t bytes,
                         struct sockaddr_un *address)
{
    unsigned char hash[WEFTI_HASH_BYTES];
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    wefti_hash(key, what, bytes, hash);
    memcpy(address->sun_path + 1, PREFIX, sizeof PREFIX - 1); /* the zero before it makes it abstract */
    return append_hex(address, sizeof PREFIX, hash, sizeof hash);
}

static socklen_t name_address(const unsigned char key[WEFTI_HASH_BYTES], uint32_t number, struct sockaddr_un *address)
{
    return (socklen_t)(path_at + write_name(key, &number, sizeof number, address));
}

/* The name of a random number, which stands in it, so that who knows the key can tell that it is one. */
static socklen_t hidden_address(const unsigned char key[WEFTI_HASH_BYTES], const unsigned char nonce[NONCE_BYTES],
                                struct sockaddr_un *address)
{
    size_t used = write_name(key, nonce, NONCE_BYTES, address);
    address->sun_path[used++] = '-';
    return (socklen_t)(path_at + append_hex(address, used, nonce, NONCE_BYTES));
}

void wefti_unix_contact_set(wefti_tree_contact *contact, wefti_unix_contact_kind kind, uint32_t number,
                            const void *bytes, size_t count)
{
    wefti_unix_contact own = {.kind = kind, .number = number};
    memcpy(own.bytes, bytes, count);
    memset(contact, 0, sizeof *contact);
    contact->bytes = sizeof own;
    memcpy(contact->data, &own, sizeof own);
}

/* Which name besides the first is tried in a round. */
static uint32_t number_of(unsigned round)
{
    unsigned pass = 0;
    while (pass < PASS_MAX && round >= 1u << pass) {
        round -= 1u << pass++;
    }
    return round % (1u << pass);
}

static void add(wefti_tree_address *addresses, size_t *count, const struct sockaddr_un *address, socklen_t bytes)
{
    addresses[*count].bytes = bytes;
    memset(addresses[*count].sockaddr, 0, sizeof addresses[*count].sockaddr);
    memcpy(addresses[*count].sockaddr, address, bytes);
    (*count)++;
}

/* ---- the name that nobody knows beforehand ---- */

/* Whether a process of this user listens at an address. */
static int is_own(const struct sockaddr_un *address, socklen_t bytes)
{
    int caller = wefti_os_socket_open(AF_UNIX);
    int found = caller >= 0 && wefti_os_socket_connect(caller, (const struct sockaddr *)address, bytes) == 0 &&
                wefti_os_socket_is_own_user(caller, NULL);
    if (caller >= 0) {
        wefti_os_socket_close(caller);
    }
    return found;
}

static int read_nonce(const char *name, unsigned char nonce[NONCE_BYTES])
{
    const char *text = strrchr(name, '-');
    int used = 0;
    for (size_t i = 0; text != NULL && i < NONCE_BYTES; i++) {
        unsigned byte;
        if (sscanf(text + 1 + 2 * i, "%2x%n", &byte, &used) != 1 || used != 2) {
            return 0;
        }
        nonce[i] = (unsigned char)byte;
    }
    return text != NULL && text[1 + 2 * NONCE_BYTES] == '\0';
}

/* Names that the system lists and that look right, by their numbers. Others may hold many of these: of more than there
 * is room for, some by chance. */
typedef struct search {
    const unsigned char *key;
    uint32_t count;
    uint64_t random;
    unsigned char nonces[SEARCHED_MAX][NONCE_BYTES];
} search;

static int note_name(void *context, const char *name)
{
    search *now = context;
    unsigned char nonce[NONCE_BYTES];
    struct sockaddr_un address;
    if (!read_nonce(name, nonce)) {
        return 0;
    }
    (void)hidden_address(now->key, nonce, &address);
    if (strcmp(address.sun_path + 1, name) == 0) {
        now->random = now->random * UINT64_C(6364136223846793005) + 1;
        uint64_t at = now->count < SEARCHED_MAX ? now->count : (now->random >> 32) % now->count;
        now->count++;
        if (at < SEARCHED_MAX) {
            memcpy(now->nonces[at], nonce, sizeof nonce);
        }
    }
    return 0;
}

/* Returns the bytes of the address, 0 when there is none. */
static socklen_t find_hidden(const unsigned char key[WEFTI_HASH_BYTES], struct sockaddr_un *address)
{
    search now = {.key = key};
    (void)!wefti_os_random(&now.random, sizeof now.random); /* else always the same */
    wefti_os_socket_list_unix(PREFIX, note_name, &now);
    const uint64_t until_ns = wefti_os_now_ns() + SEARCH_NS;
    const uint32_t names = now.count < SEARCHED_MAX ? now.count : SEARCHED_MAX;
    for (uint32_t i = 0; i < names && wefti_os_now_ns() < until_ns; i++) { /* from any on: the next look sees others */
        socklen_t bytes = hidden_address(key, now.nonces[((now.random >> 32) + i) % names], address);
        if (is_own(address, bytes)) {
            return bytes;
        }
    }
    return 0;
}

size_t wefti_unix_contact_resolve(const wefti_tree_contact *contact, unsigned round, wefti_tree_address *addresses)
{
    wefti_unix_contact own;
    struct sockaddr_un address;
    size_t count = 0;
    if (contact->bytes != sizeof own) {
        return 0;
    }
    memcpy(&own, contact->data, sizeof own);
    if (own.kind == WEFTI_UNIX_ANY) {
        socklen_t bytes = name_address(own.bytes, 0, &address);
        add(addresses, &count, &address, bytes);
        bytes = round & WEFTI_TREE_SEARCHES ? find_hidden(own.bytes, &address) : 0;
        bytes = bytes != 0
                    ? bytes
                    : name_address(own.bytes, 1 + number_of(round & ~WEFTI_TREE_SEARCHES) % (WEFTI_UNIX_NAMES_MAX - 1),
                                   &address);
        add(addresses, &count, &address, bytes);
    } else if (own.kind == WEFTI_UNIX_ONE) {
        socklen_t bytes = name_address(own.bytes, own.number, &address);
        add(addresses, &count, &address, bytes);
    } else if (own.kind == WEFTI_UNIX_FREE && own.number > 0 && own.number <= sizeof own.bytes) {
        memset(&address, 0, sizeof address);
        address.sun_family = AF_UNIX;
        memcpy(address.sun_path + 1, own.bytes, own.number);
        add(addresses, &count, &address, (socklen_t)(path_at + 1 + own.number));
    }
    return count;
}

void wefti_unix_print(const wefti_tree_address *address, char *text, size_t bytes)
{
    const char *path = (const char *)address->sockaddr + path_at;
    (void)snprintf(text, bytes, "the abstract socket \"%.*s\"", (int)(address->bytes - path_at - 1), path + 1);
}

/* ---- listening ---- */

/* Returns a descriptor, or -1 with errno set. */
static int listen_at(const struct sockaddr_un *address, socklen_t bytes)
{
    int listener = wefti_fault("socket", EMFILE) ? -1 : wefti_os_socket_open(AF_UNIX);
    if (listener < 0) {
        return -1;
    }
    int failed =
        wefti_fault("bind", EACCES) || wefti_os_socket_bind(listener, (const struct sockaddr *)address, bytes) != 0;
    failed = failed || wefti_fault("listen", EACCES) || wefti_os_socket_listen(listener, BACKLOG) != 0;
    if (failed) {
        int error = errno;
        wefti_os_socket_close(listener);
        errno = error;
        return -1;
    }
    return listener;
}

/* Who holds a name that is taken. */
typedef enum holder {
    HOLDER_SILENT, /* nobody listens there: it was left by a parent to its children, say */
    HOLDER_BUSY, /* who listens takes nobody in: another PE 0 with a crowd at its door, or anybody */
    HOLDER_OWN, /* a process of this user listens */
    HOLDER_OTHER /* one of another user does */
} holder;

static holder probe_once(const struct sockaddr_un *address, socklen_t bytes)
{
    int caller = wefti_os_socket_open(AF_UNIX);
    if (caller < 0) {
        return HOLDER_SILENT;
    }
    holder found = HOLDER_OWN; /* until shown to be otherwise */
    if (wefti_os_socket_connect(caller, (const struct sockaddr *)address, bytes) == 0) {
        found = wefti_os_socket_is_own_user(caller, NULL) ? HOLDER_OWN : HOLDER_OTHER;
    } else if (errno == ECONNREFUSED || errno == ENOENT) {
        found = HOLDER_SILENT;
    } else if (errno == EAGAIN) {
        found = HOLDER_BUSY;
    }
    wefti_os_socket_close(caller);
    return found;
}

/* Another PE 0 that has bound a name is about to listen. */
static holder probe(const struct sockaddr_un *address, socklen_t bytes)
{
    holder found = probe_once(address, bytes);
    for (int i = 1; i < PROBES && found == HOLDER_SILENT; i++) {
        wefti_os_sleep_ns(PROBE_PAUSE_NS);
        found = probe_once(address, bytes);
    }
    return found;
}

static weft_status refuse_name(const struct sockaddr_un *address)
{
    return wefti_error(WEFT_ERR_SYSTEM, "cannot listen at the abstract socket \"%s\": %s%s", address->sun_path + 1,
                       strerror(errno),
                       errno == EMFILE || errno == ENFILE ? "; allow more open files (ulimit -n)" : "");
}

static weft_status listen_hidden(const unsigned char key[WEFTI_HASH_BYTES], int *listener)
{
    unsigned char nonce[NONCE_BYTES];
    struct sockaddr_un address;
    WEFT_TRY(wefti_os_random(nonce, sizeof nonce));
    socklen_t bytes = hidden_address(key, nonce, &address);
    *listener = listen_at(&address, bytes);
    return *listener >= 0 ? WEFT_OK : refuse_name(&address);
}

weft_status wefti_unix_listen(const unsigned char key[WEFTI_HASH_BYTES], unsigned first, int *listener,
                              unsigned *number)
{
    for (*number = first; *number < WEFTI_UNIX_NAMES_MAX; (*number)++) {
        struct sockaddr_un address;
        socklen_t bytes = name_address(key, *number, &address);
        *listener = listen_at(&address, bytes);
        if (*listener >= 0) {
            return WEFT_OK;
        }
        if (errno != EADDRINUSE) {
            return refuse_name(&address);
        }
        holder found = probe(&address, bytes);
        if (found == HOLDER_OWN || (found == HOLDER_BUSY && first == 0)) {
            return WEFT_ERR_STATE;
        }
    }
    *number = WEFTI_UNIX_NAMES_MAX;
    return listen_hidden(key, listener);
}

weft_status wefti_unix_listen_anywhere(int *listener, wefti_tree_contact *contact)
{
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    struct sockaddr_un chosen;
    socklen_t bytes = sizeof chosen;
    *listener = listen_at(&any, sizeof any.sun_family);
    if (*listener < 0 || wefti_os_socket_name(*listener, (struct sockaddr *)&chosen, &bytes) != 0 ||
        bytes <= path_at + 1 || bytes - path_at - 1 > sizeof((wefti_unix_contact){0}.bytes)) {
        return wefti_error(WEFT_ERR_SYSTEM,
                           "cannot listen at an abstract socket: %s; allow more open files (ulimit -n)",
                           strerror(errno));
    }
    uint32_t count = (uint32_t)(bytes - path_at - 1);
    wefti_unix_contact_set(contact, WEFTI_UNIX_FREE, count, chosen.sun_path + 1, count);
    return WEFT_OK;
}
