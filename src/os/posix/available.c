/* os/posix/available.c: the memory that could be had now: what the machine has left, and what the control groups around
 * this process leave it. Beyond either the kernel ends a process instead of refusing. */
#include "os/posix/available.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "os/posix/file.h"

#define PATH_BYTES 4096
#define TEXT_BYTES 8192

/* The number behind `label` at the start of a line, 0 when there is none. */
static uint64_t labelled_number(const char *text, const char *label)
{
    size_t bytes = strlen(label);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, label, bytes) == 0) {
            return strtoull(line + bytes, NULL, 10);
        }
    }
    return 0;
}

static uint64_t machine_available_bytes(void)
{
    char text[TEXT_BYTES];
    if (wefti_os_file_read("/proc/meminfo", text, sizeof text) <= 0) {
        return UINT64_MAX;
    }
    uint64_t available = labelled_number(text, "MemAvailable:");
    return available == 0 ? UINT64_MAX : 1024 * (available + labelled_number(text, "SwapFree:"));
}

/* Read a file of a group. Returns 0 when it cannot be read. */
static int read_group(const char *root, const char *path, const char *file, char text[TEXT_BYTES])
{
    char name[PATH_BYTES];
    int bytes = snprintf(name, sizeof name, "%s%s/%s", root, path, file);
    return bytes > 0 && (size_t)bytes < sizeof name && wefti_os_file_read(name, text, TEXT_BYTES) > 0;
}

/* What one group leaves: its limit less what it uses, pages of files not counted, since the kernel takes those back. */
static uint64_t one_group_available_bytes(const char *root, const char *path)
{
    char text[TEXT_BYTES];
    if (!read_group(root, path, "memory.max", text) || text[0] < '0' || text[0] > '9') {
        return UINT64_MAX;
    }
    uint64_t limit = strtoull(text, NULL, 10);
    if (!read_group(root, path, "memory.current", text)) {
        return UINT64_MAX;
    }
    uint64_t used = strtoull(text, NULL, 10);
    if (read_group(root, path, "memory.stat", text)) {
        uint64_t files = labelled_number(text, "inactive_file ") + labelled_number(text, "active_file ");
        used -= files < used ? files : used;
    }
    return used < limit ? limit - used : 0;
}

uint64_t wefti_os_group_available_bytes(const char *root, const char *path)
{
    char group[PATH_BYTES];
    uint64_t least = UINT64_MAX;
    if (snprintf(group, sizeof group, "%s", path) >= (int)sizeof group) {
        return least;
    }
    for (;;) {
        uint64_t available = one_group_available_bytes(root, group);
        least = available < least ? available : least;
        char *last = strrchr(group, '/');
        if (last == NULL) {
            return least;
        }
        *last = '\0';
    }
}

/* The path of this process's group, with neither its line's head nor its end. NULL when there is none. */
static const char *own_group(char text[TEXT_BYTES])
{
    static const char head[] = "0::";
    if (wefti_os_file_read("/proc/self/cgroup", text, TEXT_BYTES) <= 0) {
        return NULL;
    }
    char *line = strstr(text, head);
    if (line == NULL) {
        return NULL;
    }
    line += sizeof head - 1;
    line[strcspn(line, "\n")] = '\0';
    return line;
}

uint64_t wefti_os_memory_available_bytes(void)
{
    char text[TEXT_BYTES];
    uint64_t machine = machine_available_bytes();
    const char *group = own_group(text);
    uint64_t granted = group == NULL ? UINT64_MAX : wefti_os_group_available_bytes("/sys/fs/cgroup", group);
    return granted < machine ? granted : machine;
}
