/* Goal: what comes from outside by other ways than connections (an embedder's messages, ids, variables) does no harm:
 * nothing is read or written where it should not be, nothing leaks, and each is taken or refused with a status.
 * Method: the first byte of the input chooses what reads the rest. Worlds that would form meet nobody: the network is
 * that of wire.h, without anybody at its other ends. */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/hash.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/tcp/contact.h"
#include "bootstrap/tcp/interfaces.h"
#include "bootstrap/uid/id.h"
#include "bootstrap/unix/name.h"
#include "fuzz/wire.h"
#include "os/os.h"
#include "world/directory.h"
#include "world/tuning.h"

#define TEXT_BYTES 600
#define HELLOS_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

static size_t shorter(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- ids ---- */

static void read_id(const uint8_t *input, size_t bytes)
{
    weft_uid uid;
    wefti_uid_body body;
    wefti_bootstrap bootstrap;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    memset(&uid, 0, sizeof uid);
    memcpy(uid.bytes, input, shorter(bytes, sizeof uid.bytes));
    if (wefti_uid_read(&uid, &body) != WEFT_OK) { /* then with the right beginning */
        memcpy(&body, uid.bytes, sizeof body);
        body.magic = WEFTI_UID_MAGIC;
        body.version = WEFTI_UID_VERSION;
        memcpy(uid.bytes, &body, sizeof body);
    }
    config.bootstrap = WEFT_BOOTSTRAP_UID;
    config.uid = &uid;
    config.deadline_ns = 1000000;
    config.pes = 2;
    config.pe = (int)(bytes & 1);
    if (wefti_bootstrap_open(&config, &bootstrap) == WEFT_OK) {
        abort(); /* nobody is there */
    }
}

static void read_contact(const uint8_t *input, size_t bytes)
{
    static const unsigned char node[16] = "this node";
    wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX];
    wefti_tree_contact contact;
    wefti_tcp_contact tcp;
    char text[256];
    memset(&contact, 0, sizeof contact);
    memset(&tcp, 0, sizeof tcp);
    memcpy(&contact, input, shorter(bytes, sizeof contact));
    memcpy(&tcp, input, shorter(bytes, sizeof tcp));
    if (wefti_unix_contact_resolve(&contact, (unsigned)bytes, addresses) > 0) {
        wefti_unix_print(&addresses[0], text, sizeof text);
    }
    contact.bytes = sizeof(wefti_unix_contact);
    if (wefti_unix_contact_resolve(&contact, (unsigned)bytes, addresses) > 0) {
        wefti_unix_print(&addresses[0], text, sizeof text);
    }
    (void)wefti_tcp_contact_resolve(&tcp, node, addresses);
}

/* A name that the system lists, of a socket of whoever likes: as it is, and with the right hash of its end. */
static void read_name(const uint8_t *input, size_t bytes)
{
    static const char prefix[] = "weft-";
    static const unsigned char key[WEFTI_HASH_BYTES] = "a world's";
    char name[sizeof prefix + 2 * WEFTI_HASH_BYTES + TEXT_BYTES];
    unsigned char nonce[8];
    unsigned char hash[WEFTI_HASH_BYTES];
    wefti_tree_contact contact;
    wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX];
    size_t used = sizeof prefix - 1;
    memcpy(name, prefix, used);
    if (bytes >= sizeof nonce && (input[0] & 1) != 0) {
        memcpy(nonce, input, sizeof nonce);
        wefti_hash(key, nonce, sizeof nonce, hash);
        for (size_t i = 0; i < sizeof hash; i++) {
            used += (size_t)snprintf(name + used, sizeof name - used, "%02x", hash[i]);
        }
        name[used++] = '-';
        for (size_t i = 0; i < sizeof nonce; i++) {
            used += (size_t)snprintf(name + used, sizeof name - used, "%02x", nonce[i]);
        }
    } else {
        used += shorter(bytes, TEXT_BYTES - 1);
        memcpy(name + sizeof prefix - 1, input, used - (sizeof prefix - 1));
    }
    name[used] = '\0';
    wire_list(name);
    wefti_unix_contact_set(&contact, WEFTI_UNIX_ANY, 0, key, sizeof key);
    (void)wefti_unix_contact_resolve(&contact, WEFTI_TREE_SEARCHES | 1, addresses);
}

/* ---- variables ---- */

static void read_variable(const uint8_t *input, size_t bytes)
{
    char text[TEXT_BYTES];
    uint64_t value;
    size_t count = shorter(bytes - 1, sizeof text - 1);
    wefti_env_id id = (wefti_env_id)(input[0] % WEFTI_ENV_COUNT);
    memcpy(text, input + 1, count);
    text[count] = '\0';
    const char *name = wefti_env_entry_of(id)->name;
    (void)setenv(name, text, 1);
    (void)wefti_env_size(id, &value);
    (void)wefti_env_seconds_ns(id, &value);
    (void)wefti_env_count(id, &value);
    (void)unsetenv(name);
}

/* What WEFT_UID_INTERFACE says. */
static void read_interfaces(const uint8_t *input, size_t bytes)
{
    wefti_tcp_address addresses[WEFTI_TCP_ADDRESSES_MAX];
    char text[TEXT_BYTES];
    int count = 0;
    size_t length = shorter(bytes, sizeof text - 1);
    memcpy(text, input, length);
    text[length] = '\0';
    if (wefti_interfaces_choose(text, addresses, &count) == WEFT_OK && (count < 1 || count > WEFTI_TCP_ADDRESSES_MAX)) {
        abort();
    }
}

static int is_address(const char *text)
{
    const struct addrinfo wanted = {.ai_flags = AI_NUMERICHOST};
    struct addrinfo *found;
    if (getaddrinfo(text, NULL, &wanted, &found) != 0) {
        return 0;
    }
    freeaddrinfo(found);
    return 1;
}

/* What WEFT_COLL says. */
static void read_preferences(const uint8_t *input, size_t bytes)
{
    wefti_preferences preferences;
    char text[TEXT_BYTES];
    const size_t length = shorter(bytes, sizeof text - 1);
    memcpy(text, input, length);
    text[length] = '\0';
    (void)setenv("WEFT_COLL", text, 1);
    if (wefti_preferences_read(&preferences) == WEFT_OK && text[0] == '\0' &&
        wefti_preferences_key(&preferences) != 0) {
        abort();
    }
    (void)unsetenv("WEFT_COLL");
}

/* As weftrun, or torchrun, sets it. */
static void read_place(const uint8_t *input, size_t bytes)
{
    static const char *const names[] = {"WEFT_LOCAL_JOB", "MASTER_ADDR", "WEFT_SECRET"};
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    wefti_bootstrap bootstrap;
    char text[TEXT_BYTES];
    const char *name = names[input[0] % 3];
    size_t count = shorter(bytes - 1, sizeof text - 1);
    memcpy(text, input + 1, count);
    text[count] = '\0';
    if (strcmp(name, "MASTER_ADDR") == 0 && !is_address(text)) {
        return; /* no name service is asked */
    }
    (void)setenv("MASTER_ADDR", "127.0.0.1", 1);
    (void)setenv("WEFT_PORT", "7", 1);
    (void)setenv(name, text, 1);
    config.bootstrap = input[0] % 3 == 0 ? WEFT_BOOTSTRAP_LOCAL : WEFT_BOOTSTRAP_ENV;
    config.deadline_ns = 1000000;
    config.pes = 2;
    config.pe = 1;
    if (wefti_bootstrap_open(&config, &bootstrap) == WEFT_OK) {
        abort();
    }
    (void)unsetenv(name);
}

/* ---- what an embedder's allgather hands over, and what PE 0 sends ---- */

#define DIRECTORY_MAX (sizeof(wefti_directory) + HELLOS_MAX * sizeof(wefti_directory_pe))

/* What creation does with a directory. */
static void use_directory(const wefti_directory *directory, int pes)
{
    int32_t *members = NULL;
    int count;
    int number;
    if (directory->verdict.status != WEFT_OK || directory->status != WEFT_OK ||
        wefti_directory_check(directory, pes) != WEFT_OK) {
        return;
    }
    (void)!wefti_directory_expect_heaps(directory, pes, pes - 1, &(wefti_os_memory_left){1000, 1000, 1}, 10);
    if (wefti_directory_same_slot(directory, pes, pes - 1, &members, &count, &number) == WEFT_OK) {
        if (count < 1 || count > pes || number < 0 || number >= count) {
            abort();
        }
        free(members);
    }
}

/* A directory of PEs on one node, spoilt. */
static void read_directory(const uint8_t *input, size_t bytes)
{
    union {
        wefti_directory directory;
        unsigned char room[DIRECTORY_MAX];
    } sent = {0};
    int pes = 1 + input[0] % HELLOS_MAX;
    for (int pe = 0; pe < pes; pe++) {
        sent.directory.pes[pe].cores_count = 1;
    }
    for (size_t i = 1; i + 3 < bytes; i += 4) { /* {place, value} over what is right */
        size_t at = ((size_t)input[i] << 16 | (size_t)input[i + 1] << 8 | input[i + 2]) % wefti_directory_bytes(pes);
        sent.room[at] ^= input[i + 3];
    }
    use_directory(&sent.directory, pes);
}

static void read_hellos(const uint8_t *input, size_t bytes)
{
    wefti_hello *all = calloc(HELLOS_MAX, sizeof *all);
    int pes = 1 + input[0] % HELLOS_MAX;
    union {
        wefti_directory directory;
        unsigned char room[DIRECTORY_MAX];
    } made;
    if (all == NULL) {
        return;
    }
    for (int pe = 0; pe < pes; pe++) {
        all[pe].pe = (uint32_t)pe;
        all[pe].pes = (uint32_t)pes;
    }
    for (size_t i = 1; i + 3 < bytes; i += 4) { /* {place, value} over what is right */
        size_t at = ((size_t)input[i] << 16 | (size_t)input[i + 1] << 8 | input[i + 2]) % ((size_t)pes * sizeof *all);
        ((unsigned char *)all)[at] ^= input[i + 3];
    }
    if (wefti_directory_make(all, pes, &made) != WEFT_OK ||
        (made.directory.status == WEFT_OK && made.directory.verdict.status == WEFT_OK &&
         wefti_directory_check(&made.directory, pes) != WEFT_OK)) {
        abort();
    }
    use_directory(&made.directory, pes);
    free(all);
}

static void read_meeting(const uint8_t *input, size_t bytes)
{
    if (input[0] & 0x80) {
        read_directory(input, bytes);
    } else {
        read_hellos(input, bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes)
{
    static void (*const readers[])(const uint8_t *, size_t) = {
        read_id, read_contact, read_variable, read_place, read_meeting, read_interfaces, read_preferences, read_name};
    if (bytes < 3) {
        return 0;
    }
    wire_begin(input, 0);
    readers[input[0] % (sizeof readers / sizeof *readers)](input + 1, bytes - 1);
    if (wire_open_count() != 0) {
        abort();
    }
    return 0;
}
