/* bootstrap/unix/name.h: abstract unix sockets at names that follow from a key.
 *
 * Any user of a host may bind any name, and a process that was forked keeps the names of its parent. So a key has some
 * names, numbered from 0: who listens takes the first that it can, passing over those that others hold, and who
 * connects tries one after another; the system tells each which user is at the other end. Who does not know the key
 * cannot tell beforehand which names to hold. Without a secret everybody knows it, and may hold them all: then who
 * listens takes a name that follows from the key and a random number, which nobody can hold beforehand, and who
 * connects finds it, now and then, among those that the system lists. */
#ifndef WEFTI_BOOTSTRAP_UNIX_NAME_H
#define WEFTI_BOOTSTRAP_UNIX_NAME_H

#include <sys/un.h>

#include "base/hash.h"
#include "bootstrap/tree/net.h"

#define WEFTI_UNIX_NAMES_MAX 16u /* that are numbered */

/* What the contacts (tree/message.h) of unix sockets hold. */
typedef enum wefti_unix_contact_kind {
    WEFTI_UNIX_ANY = 1, /* any name of the key */
    WEFTI_UNIX_ONE, /* the name `number` of the key */
    WEFTI_UNIX_FREE /* a name that the system chose, of `number` bytes */
} wefti_unix_contact_kind;

typedef struct wefti_unix_contact {
    uint32_t kind;
    uint32_t number;
    unsigned char bytes[WEFTI_HASH_BYTES]; /* the key, or the name */
} wefti_unix_contact;

_Static_assert(sizeof(wefti_unix_contact) == 8 + WEFTI_HASH_BYTES, "contacts are sent as they are");

void wefti_unix_contact_set(wefti_tree_contact *contact, wefti_unix_contact_kind kind, uint32_t number,
                            const void *bytes, size_t count);

/* The addresses of such a contact to be tried in the attempt `round`, counted from 0: of any name the first, and
 * another one each time: all of those that are numbered in the course of time, low ones most often, and with
 * WEFTI_TREE_SEARCHES the one that is not, if a process of this user listens there. Returns how many, at most
 * WEFTI_UNIX_ADDRESSES_MAX; 0 for a contact that makes no sense. */
#define WEFTI_UNIX_ADDRESSES_MAX 2
size_t wefti_unix_contact_resolve(const wefti_tree_contact *contact, unsigned round, wefti_tree_address *addresses);

/* Listen at the first name of a key, from `first` on, that nobody holds; *number is its number, WEFTI_UNIX_NAMES_MAX
 * where all are held. WEFT_ERR_STATE, without a text of the error: a process of this user listens at name *number
 * already; or, at the first name only, some process that does not accept connections, whose user cannot be seen. */
weft_status wefti_unix_listen(const unsigned char key[WEFTI_HASH_BYTES], unsigned first, int *listener,
                              unsigned *number);

/* Listen at a name that the system chooses. */
weft_status wefti_unix_listen_anywhere(int *listener, wefti_tree_contact *contact);

/* Write an address as a person reads it. */
void wefti_unix_print(const wefti_tree_address *address, char *text, size_t bytes);

#endif
