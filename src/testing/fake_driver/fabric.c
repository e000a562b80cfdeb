#include "testing/fake_driver/fabric.h"

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
