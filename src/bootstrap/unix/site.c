/* bootstrap/unix/site.c: the tree's network over abstract unix sockets. */
#include "bootstrap/unix/site.h"

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
