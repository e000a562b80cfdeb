/* bootstrap/uid/id.h: what a weft_uid holds, and the socket behind it. */
#ifndef WEFTI_BOOTSTRAP_UID_ID_H
#define WEFTI_BOOTSTRAP_UID_ID_H

#include "bootstrap/tcp/contact.h"
#include "weft/bootstrap.h"

#define WEFTI_UID_MAGIC UINT32_C(0x44495557) /* "WUID" */
#define WEFTI_UID_VERSION 1

typedef struct wefti_uid_body {
    uint32_t magic;
    uint32_t version;
    uint64_t cookie; /* of the listening socket */
    int32_t descriptor; /* of it, in the process that made it */
    uint32_t is_of_host; /* PEs meet by unix sockets: no port and no libsodium are needed, and nobody else is reached */
    unsigned char process[16]; /* of wefti_os_identity */
    unsigned char tag[8]; /* names the claim (below) */
    unsigned char secret[WEFTI_TREE_SECRET_BYTES];
    wefti_tcp_contact contact;
} wefti_uid_body;

_Static_assert(sizeof(wefti_uid_body) <= WEFT_UID_BYTES, "an id has room for what it holds");

/* Read an id; WEFT_ERR_ARGUMENT for bytes that are none. */
weft_status wefti_uid_read(const weft_uid *uid, wefti_uid_body *body);

/* Take the listening socket over, so that nobody else uses or closes it, and with it *claim, a descriptor to close
 * after the socket. The process that made the id only, else WEFT_ERR_ARGUMENT, also when the id was used.
 * WEFT_ERR_STATE, without an error being decided: another thread has it just now. */
weft_status wefti_uid_claim(const wefti_uid_body *body, int *claim);

/* This process is not the one that made the id, and says that it is PE 0 all the same, as the maker does: make of it an
 * id whose claim is WEFT_ERR_STATE, so that PE 0 and all others hear of the second one. */
void wefti_uid_disown(weft_uid *uid);

/* Close the socket of an id that nobody but the caller knows in this process, if no world has taken it over. No error,
 * and no last error, comes of it. */
void wefti_uid_drop(const weft_uid *uid);

#endif
