#include "topo/sysfs.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIDS_MAX 1024 /* of a port */
#define PATH_BYTES 4096
#define TEXT_BYTES 128

/* The first line of a file, which is named below the root; 0: there is none. */
static int read_line(const char *root, const char *path, char text[TEXT_BYTES])
{
    char all[PATH_BYTES];
    text[0] = '\0';
    if (snprintf(all, sizeof all, "%s/%s", root, path) >= (int)sizeof all) {
        return 0;
    }
    FILE *from = fopen(all, "re");
    if (from == NULL) {
        return 0;
    }
    const int has_line = fgets(text, TEXT_BYTES, from) != NULL;
    (void)fclose(from);
    text[strcspn(text, "\n")] = '\0';
    return has_line;
}

static int read_number(const char *root, const char *path)
{
    char text[TEXT_BYTES];
    int value = 0;
    return read_line(root, path, text) && sscanf(text, "%9d", &value) == 1 && value > 0 ? value : 0;
}

static wefti_topo_gid_type type_of(const char *root, const char *port, int index)
{
    char path[256];
    char text[TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/link_layer", port);
    if (!read_line(root, path, text) || strcmp(text, "Ethernet") != 0) {
        return WEFTI_TOPO_GID_IB;
    }
    (void)snprintf(path, sizeof path, "%s/gid_attrs/types/%d", port, index); /* "IB/RoCE v1" or "RoCE v2" */
    return read_line(root, path, text) && strcmp(text, "RoCE v2") == 0 ? WEFTI_TOPO_GID_ROCE_V2
                                                                       : WEFTI_TOPO_GID_ROCE_V1;
}

/* Entries that are not in use are zero. */
static weft_status add_gids(wefti_topo *topo, int nic, const char *root, const char *port)
{
    static const unsigned char zero[16];
    for (int index = 0; index < GIDS_MAX; index++) {
        char path[256];
        char text[TEXT_BYTES];
        wefti_topo_gid gid = {.nic = nic, .index = index};
        (void)snprintf(path, sizeof path, "%s/gids/%d", port, index);
        if (!read_line(root, path, text)) {
            return WEFT_OK;
        }
        if (inet_pton(AF_INET6, text, gid.address) == 1 && memcmp(gid.address, zero, sizeof zero) != 0) {
            gid.type = (uint8_t)type_of(root, port, index);
            WEFT_TRY(wefti_topo_add_gid(topo, &gid));
        }
    }
    return WEFT_OK;
}

weft_status wefti_topo_add_sysfs(wefti_topo *topo, int host, const char *root)
{
    for (int i = 0; i < topo->count; i++) {
        wefti_topo_object *nic = &topo->objects[i];
        char path[256];
        char port[128];
        if (nic->kind != WEFTI_TOPO_NIC || nic->host != host) {
            continue;
        }
        (void)snprintf(path, sizeof path, "class/net/%s/speed", nic->name); /* in Mbit/s */
        const int network = read_number(root, path) / 1000;
        (void)snprintf(port, sizeof port, "class/infiniband/%s/ports/%d", nic->name, nic->port);
        (void)snprintf(path, sizeof path, "%s/rate", port); /* as "400 Gb/sec (4X NDR)" */
        const int fabric = read_number(root, path);
        nic->speed_gbits = fabric > 0 ? fabric : network;
        WEFT_TRY(add_gids(topo, i, root, port));
    }
    return WEFT_OK;
}

int wefti_topo_gid_of_interface(const char *root, const char *interface, unsigned char gid[16])
{
    char path[256];
    char text[TEXT_BYTES];
    (void)snprintf(path, sizeof path, "class/net/%s/address", interface);
    if (!read_line(root, path, text) || strlen(text) != 20 * 3 - 1) { /* of Ethernet it has 6 bytes */
        return 0;
    }
    for (int i = 0; i < 16; i++) {
        const int high = wefti_topo_hex_digit(text[3 * (i + 4)]);
        const int low = wefti_topo_hex_digit(text[3 * (i + 4) + 1]);
        if (high < 0 || low < 0) {
            return 0;
        }
        gid[i] = (unsigned char)(high << 4 | low);
    }
    return 1;
}
