/* bootstrap/unix/site.c: the tree's network over abstract unix sockets. */
#include "bootstrap/unix/site.h"

#include <string.h>

#include "os/socket.h"

weft_status wefti_unix_root_listen(wefti_unix_root *root, wefti_tree_site *site, wefti_tree_listeners *listeners,
                                   wefti_tree_contact *occupied)
{
    unsigned first = site->silent ? root->number + 1 : root->number;
    weft_status status = wefti_unix_listen(root->key, first, &listeners->descriptors[listeners->count], &root->number);
    listeners->count += status == WEFT_OK;
    if (status == WEFT_ERR_STATE) {
        wefti_unix_contact_set(occupied, WEFTI_UNIX_ONE, root->number, root->key, sizeof root->key);
    }
    return status;
}

void wefti_unix_site_init(wefti_unix_site *unix_site, const wefti_tree_net *net,
                          const unsigned char secret[WEFTI_TREE_SECRET_BYTES], const void *world, size_t bytes)
{
    const size_t rest = WEFTI_TREE_SECRET_BYTES - WEFTI_HASH_BYTES;
    unsigned char both[WEFTI_TREE_SECRET_BYTES - WEFTI_HASH_BYTES + WEFTI_BOOTSTRAP_NAME_BYTES] = {0};
    wefti_unix_root *root = &unix_site->root;
    memcpy(both, secret + WEFTI_HASH_BYTES, rest);
    memcpy(both + rest, world, bytes);
    wefti_hash(secret, both, sizeof both, root->key);
    explicit_bzero(both, sizeof both);
    unix_site->site.net = net;
    unix_site->site.state = root;
    memcpy(unix_site->site.secret, secret, WEFTI_TREE_SECRET_BYTES);
    wefti_unix_contact_set(&unix_site->site.root, WEFTI_UNIX_ANY, 0, root->key, sizeof root->key);
}

void wefti_unix_site_fini(wefti_unix_site *unix_site)
{
    explicit_bzero(unix_site->site.secret, sizeof unix_site->site.secret);
}

weft_status wefti_unix_site_listen_as_root(wefti_tree_site *site, wefti_tree_listeners *listeners,
                                           wefti_tree_contact *occupied)
{
    return wefti_unix_root_listen(site->state, site, listeners, occupied);
}

void wefti_unix_site_prove(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                           unsigned char proof[WEFTI_TREE_PROOF_BYTES])
{
    (void)handshake;
    memcpy(proof, site->secret, WEFTI_TREE_PROOF_BYTES);
}

weft_status wefti_unix_site_listen(wefti_tree_site *site, int near, int *listener, wefti_tree_contact *contact)
{
    (void)site;
    (void)near;
    return wefti_unix_listen_anywhere(listener, contact);
}

size_t wefti_unix_site_resolve(const wefti_tree_site *site, const wefti_tree_contact *contact, unsigned round,
                               wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX])
{
    (void)site;
    return wefti_unix_contact_resolve(contact, round, addresses);
}

wefti_tree_trust wefti_unix_site_admit(const wefti_tree_site *site, int descriptor)
{
    (void)site;
    return wefti_os_socket_is_own_user(descriptor, NULL) ? WEFTI_TREE_TRUSTED : WEFTI_TREE_FOREIGN;
}
