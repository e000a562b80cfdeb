/* bootstrap/env/master.c: where PE 0 is. */
#include "bootstrap/env/master.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/durations.h"
#include "base/env.h"
#include "base/error.h"
#include "os/os.h"
#include "os/socket.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

/* Between two questions for a name. */
#define AGAIN_NS UINT64_C(100000000)
#define OWN_NAME_NS UINT64_C(1000000000) /* for the name service to say what this host is */
/* The longest name, with its final zero, that a host can have. */
#define NAME_BYTES 256

static weft_status read_port(unsigned *port)
{
    uint64_t own = 0;
    uint64_t master = 0;
    WEFT_TRY(wefti_env_count(WEFTI_ENV_PORT, &own));
    WEFT_TRY(wefti_env_count(WEFTI_ENV_MASTER_PORT, &master));
    if (own == 0 && master == 0) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "the bootstrap \"env\" needs a port: set WEFT_PORT, or MASTER_PORT, of which "
                           "the next is taken, to the same value on all PEs");
    }
    uint64_t chosen = own != 0 ? own : master + 1;
    if (chosen > UINT16_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s=%s leads to port %llu, which is no port; set WEFT_PORT",
                           own != 0 ? "WEFT_PORT" : "MASTER_PORT",
                           wefti_env_word(own != 0 ? WEFTI_ENV_PORT : WEFTI_ENV_MASTER_PORT),
                           (unsigned long long)chosen);
    }
    *port = (unsigned)chosen;
    return WEFT_OK;
}

/* ---- names ---- */

/* A question for a name that the system is at. Where the deadline passes first it is left to the system with all that
 * it writes to: a few hundred bytes are lost then, as nothing can end it. */
typedef struct question {
    struct gaicb item;
    struct addrinfo wanted;
    char host[NAME_BYTES];
} question;

/* What the question came to; EAI_INPROGRESS: the deadline passed, and the question must not be freed. */
static int await(question *asked, uint64_t until_ns)
{
    const struct gaicb *const items[] = {&asked->item};
    int error;
    while ((error = gai_error(&asked->item)) == EAI_INPROGRESS && wefti_os_now_ns() < until_ns) {
        uint64_t left_ns = until_ns - wefti_os_now_ns();
        struct timespec wait = {.tv_sec = (time_t)(left_ns / WEFTI_SECOND_NS),
                                .tv_nsec = (long)(left_ns % WEFTI_SECOND_NS)};
        (void)gai_suspend(items, 1, &wait);
    }
    return error == EAI_INPROGRESS && gai_cancel(&asked->item) == EAI_CANCELED ? EAI_AGAIN : error;
}

/* Ask the system for a name. Returns 0 or an error number of getaddrinfo, EAI_INPROGRESS when it says nothing in
 * time. */
static int look_up(const char *host, uint64_t until_ns, struct addrinfo **found)
{
    question *asked = wefti_fault("getaddrinfo", 0) ? NULL : wefti_alloc_zeroed(1, sizeof *asked);
    struct gaicb *items[1];
    if (asked == NULL) {
        return EAI_MEMORY;
    }
    (void)snprintf(asked->host, sizeof asked->host, "%s", host);
    asked->wanted.ai_socktype = SOCK_STREAM;
    asked->item.ar_name = asked->host;
    asked->item.ar_request = &asked->wanted;
    items[0] = &asked->item;
    int error = getaddrinfo_a(GAI_NOWAIT, items, 1, NULL);
    if (error == 0) {
        error = await(asked, until_ns);
    }
    if (error == 0) {
        *found = asked->item.ar_result;
    }
    if (error != EAI_INPROGRESS) {
        wefti_free(asked);
        return error;
    }
#ifdef __SANITIZE_ADDRESS__
    __lsan_ignore_object(asked);
#endif
    return error;
}

/* Those that can be used, in the order of the system. */
static void keep_addresses(const struct addrinfo *found, wefti_tcp_contact *contact)
{
    for (; found != NULL && contact->count < WEFTI_TCP_ADDRESSES_MAX; found = found->ai_next) {
        struct sockaddr_storage copy = {0};
        wefti_tcp_address address;
        memcpy(&copy, found->ai_addr, found->ai_addrlen < sizeof copy ? found->ai_addrlen : sizeof copy);
        int is_usable = wefti_tcp_address_from(&address, &copy);
        if (is_usable && !(address.family == 6 && wefti_tcp_address_is_link_local(&address))) {
            contact->addresses[contact->count++] = address;
        }
    }
}

/* Where this host reaches itself. */
static void keep_loopback(wefti_tcp_contact *contact)
{
    static const wefti_tcp_address loopback[] = {{.family = 4, .bytes = {127, 0, 0, 1}},
                                                 {.family = 6, .bytes = {[15] = 1}}};
    memcpy(contact->addresses, loopback, sizeof loopback);
    contact->count = 2;
}

/* An address as text, and "localhost", which is loopback whatever the system knows of names. Returns whether it is one
 * of these, for which no name service is asked, also where the address cannot be used. */
static int read_literal(const char *host, wefti_tcp_contact *contact)
{
    const struct addrinfo wanted = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (strcasecmp(host, "localhost") == 0) {
        keep_loopback(contact);
        return 1;
    }
    if (getaddrinfo(host, NULL, &wanted, &found) != 0) {
        return 0;
    }
    keep_addresses(found, contact);
    freeaddrinfo(found);
    return 1;
}

static int is_own_name(const char *host)
{
    char own[NAME_BYTES];
    own[sizeof own - 1] = '\0';
    return gethostname(own, sizeof own - 1) == 0 && strcasecmp(host, own) == 0;
}

/* Another host may not be up yet. This one reaches itself also by a name that the name service does not know. */
static weft_status read_name(const char *host, uint64_t until_ns, wefti_tcp_contact *contact)
{
    struct addrinfo *found = NULL;
    const int is_own = is_own_name(host);
    const uint64_t own_until_ns = wefti_os_now_ns() + OWN_NAME_NS;
    int error;
    until_ns = is_own && own_until_ns < until_ns ? own_until_ns : until_ns;
    while ((error = look_up(host, until_ns, &found)) == EAI_AGAIN || error == EAI_NONAME) {
        if (is_own || wefti_os_now_ns() >= until_ns) {
            break;
        }
        wefti_os_sleep_ns(AGAIN_NS);
    }
    if (error != 0 && is_own) {
        keep_loopback(contact);
        return WEFT_OK;
    }
    if (error == EAI_INPROGRESS) {
        return wefti_error(WEFT_ERR_TIMEOUT,
                           "MASTER_ADDR=%.200s: this host's name service said nothing until the deadline; give an "
                           "address, or look at /etc/resolv.conf",
                           host);
    }
    if (error != 0) {
        return wefti_error(WEFT_ERR_UNREACHABLE,
                           "MASTER_ADDR=%.200s cannot be found: %s; give a name that this host resolves, or an address",
                           host, gai_strerror(error));
    }
    keep_addresses(found, contact);
    freeaddrinfo(found);
    return WEFT_OK;
}

static weft_status resolve(const char *host, uint64_t until_ns, wefti_tcp_contact *contact)
{
    if (!read_literal(host, contact)) {
        WEFT_TRY(read_name(host, until_ns, contact));
    }
    if (contact->count == 0) {
        return wefti_error(
            WEFT_ERR_ARGUMENT,
            "MASTER_ADDR=%.200s has no address that can be used: give one of IPv4 or of IPv6 that is not "
            "link-local",
            host);
    }
    return WEFT_OK;
}

static int is_loopback(const char *host, const wefti_tcp_contact *contact)
{
    int is_literal = strspn(host, "0123456789.") == strlen(host) || strchr(host, ':') != NULL;
    return (is_literal || strcasecmp(host, "localhost") == 0) && !wefti_tcp_contact_is_wide(contact);
}

weft_status wefti_env_master_find(uint64_t until_ns, wefti_env_master *master)
{
    const char *host = wefti_env_word(WEFTI_ENV_MASTER_ADDR);
    unsigned port = 0;
    memset(master, 0, sizeof *master);
    if (host[0] == '\0') {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "the bootstrap \"env\" needs MASTER_ADDR, the host of PE 0: start the program "
                           "with torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
    }
    if (strlen(host) >= NAME_BYTES) {
        return wefti_error(WEFT_ERR_ARGUMENT, "MASTER_ADDR=%.80s... is longer than any host's name", host);
    }
    WEFT_TRY(read_port(&port));
    WEFT_TRY(resolve(host, until_ns, &master->contact));
    wefti_tcp_contact_set_port(&master->contact, port);
    master->is_loopback = is_loopback(host, &master->contact);
    return WEFT_OK;
}

/* ---- is it here? ---- */

static int can_bind(const wefti_tcp_address *address)
{
    struct sockaddr_storage socket_address;
    socklen_t bytes = wefti_tcp_address_to(address, 0, &socket_address);
    int descriptor = wefti_os_socket_open(socket_address.ss_family);
    int can = descriptor >= 0 && wefti_os_socket_bind(descriptor, (const struct sockaddr *)&socket_address, bytes) == 0;
    if (descriptor >= 0) {
        wefti_os_socket_close(descriptor);
    }
    return can;
}

int wefti_env_master_is_here(const wefti_env_master *master)
{
    for (int i = 0; i < master->contact.count; i++) {
        if (can_bind(&master->contact.addresses[i])) {
            return 1;
        }
    }
    return 0;
}
