#include "testing/fake_driver/fabric.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_SUPPORTED, NOT_STARTED, IN_PROGRESS, COMPLETED };

void fake_host_name(char name[FAKE_HOST_BYTES])
{
    const char *named = getenv("WEFT_NODE_ID");
    memset(name, 0, FAKE_HOST_BYTES);
    if (named != NULL) {
        (void)snprintf(name, FAKE_HOST_BYTES, "%s", named);
    } else if (readlink("/proc/self/ns/net", name, FAKE_HOST_BYTES - 1) < 0) {
        name[0] = '\0';
    }
}

/* The word for this host, in a buffer. */
static void find_word(const char *list, char *word, size_t bytes)
{
    char host[FAKE_HOST_BYTES];
    fake_host_name(host);
    const size_t length = strlen(host);
    (void)snprintf(word, bytes, "%.*s", (int)strcspn(list, ";"), list);
    for (const char *part = strchr(list, ';'); part != NULL; part = strchr(part + 1, ';')) {
        if (strncmp(part + 1, host, length) == 0 && part[1 + length] == ':') {
            const char *found = part + 2 + length;
            (void)snprintf(word, bytes, "%.*s", (int)strcspn(found, ";"), found);
        }
    }
}

void fake_fabric_read(fake_fabric *fabric)
{
    const char *list = getenv("WEFT_FAKE_FABRIC");
    char word[32];
    memset(fabric, 0, sizeof *fabric);
    find_word(list == NULL ? "none" : list, word, sizeof word);
    if (strcmp(word, "none") == 0) {
        return;
    }
    fabric->state = strcmp(word, "not-started") == 0   ? NOT_STARTED
                    : strcmp(word, "in-progress") == 0 ? IN_PROGRESS
                                                       : COMPLETED;
    fabric->status = strcmp(word, "failed") == 0 ? 999 : 0;
    fabric->has_handles = strcmp(word, "no-handles") != 0;
    fabric->clique = (unsigned)strtoul(word, NULL, 10);
    if (strcmp(word, "no-uuid") != 0) {
        memcpy(fabric->cluster, "a fake NVLink72", sizeof fabric->cluster);
    }
}

void fake_uuid(int gpu, unsigned char uuid[16])
{
    char host[FAKE_HOST_BYTES];
    uint32_t sum = 0;
    fake_host_name(host);
    for (size_t i = 0; i < sizeof host; i++) {
        sum = sum * 31 + (unsigned char)host[i];
    }
    for (const char *at = getenv("WEFT_FAKE_MPS"); at != NULL && *at != '\0'; at++) {
        sum = sum * 31 + (unsigned char)*at;
    }
    memset(uuid, 0, 16);
    uuid[0] = (unsigned char)(gpu + 1);
    memcpy(&uuid[8], &sum, sizeof sum);
}

void fake_uuid_text(int gpu, char text[FAKE_UUID_TEXT_BYTES])
{
    unsigned char uuid[16];
    fake_uuid(gpu, uuid);
    int used = snprintf(text, FAKE_UUID_TEXT_BYTES, "GPU-");
    for (int i = 0; i < 16; i++) {
        const int is_behind_dash = i == 4 || i == 6 || i == 8 || i == 10;
        used += snprintf(text + used, FAKE_UUID_TEXT_BYTES - (size_t)used, is_behind_dash ? "-%02x" : "%02x", uuid[i]);
    }
}
