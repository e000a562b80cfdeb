/* os/posix/available.c: the memory that could be had now: what the machine has left, and what the control groups around
 * this process leave it. Beyond either the kernel ends a process instead of refusing. */
#include "os/posix/available.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "os/os.h"
#include "os/posix/file.h"

#define PATH_BYTES 4096
#define TEXT_BYTES 8192
#define NO_LIMIT (UINT64_C(1) << 62) /* version 1 says so by a larger number */

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

const wefti_os_group_form wefti_os_group_v1 = {
    .limit = "memory.limit_in_bytes",
    .used = "memory.usage_in_bytes",
    .files = {"total_inactive_file ", "total_active_file "},
};
const wefti_os_group_form wefti_os_group_v2 = {
    .limit = "memory.max",
    .used = "memory.current",
    .files = {"inactive_file ", "active_file "},
};

/* What one group leaves: its limit less what it uses, pages of files not counted, since the kernel takes those back. */
static uint64_t one_group_available_bytes(const wefti_os_group_form *form, const char *root, const char *path)
{
    char text[TEXT_BYTES];
    if (!read_group(root, path, form->limit, text) || text[0] < '0' || text[0] > '9') {
        return UINT64_MAX;
    }
    uint64_t limit = strtoull(text, NULL, 10);
    if (limit > NO_LIMIT || !read_group(root, path, form->used, text)) {
        return UINT64_MAX;
    }
    uint64_t used = strtoull(text, NULL, 10);
    if (read_group(root, path, "memory.stat", text)) {
        uint64_t files = labelled_number(text, form->files[0]) + labelled_number(text, form->files[1]);
        used -= files < used ? files : used;
    }
    return used < limit ? limit - used : 0;
}

/* A group has one folder, whatever path leads to it in containers. */
static uint64_t mark_of_group(const char *root, const char *path)
{
    char name[PATH_BYTES];
    struct stat about;
    int bytes = snprintf(name, sizeof name, "%s%s", root, path);
    return bytes > 0 && (size_t)bytes < sizeof name && stat(name, &about) == 0
               ? (uint64_t)about.st_ino ^ (uint64_t)about.st_dev << 48
               : 0;
}

uint64_t wefti_os_group_available_bytes(const wefti_os_group_form *form, const char *root, const char *path,
                                        uint64_t *mark)
{
    char group[PATH_BYTES];
    uint64_t least = UINT64_MAX;
    if (snprintf(group, sizeof group, "%s", path) >= (int)sizeof group) {
        return least;
    }
    for (;;) {
        uint64_t available = one_group_available_bytes(form, root, group);
        if (available < least) {
            least = available;
            *mark = mark_of_group(root, group);
        }
        char *last = strrchr(group, '/');
        if (last == NULL) {
            return least;
        }
        *last = '\0';
    }
}

char *wefti_os_group_path(char *text, const char *label)
{
    for (char *line = text; line != NULL && *line != '\0';) {
        char *next = strchr(line, '\n');
        char *path = line + strspn(line, "0123456789");
        if (strncmp(path, label, strlen(label)) == 0) {
            path += strlen(label);
            path[strcspn(path, "\n")] = '\0';
            return path;
        }
        line = next == NULL ? NULL : next + 1;
    }
    return NULL;
}

/* Lower *left to what the groups of one version leave. */
static void lower_to_groups(wefti_os_memory_left *left, const wefti_os_group_form *form, const char *root,
                            const char *label)
{
    char text[TEXT_BYTES];
    uint64_t mark = 0;
    if (wefti_os_file_read("/proc/self/cgroup", text, sizeof text) <= 0) {
        return;
    }
    const char *path = wefti_os_group_path(text, label);
    uint64_t available = path == NULL ? UINT64_MAX : wefti_os_group_available_bytes(form, root, path, &mark);
    if (available < left->group) {
        left->group = available;
        left->group_mark = mark;
    }
}

wefti_os_memory_left wefti_os_memory_left_query(void)
{
    wefti_os_memory_left left = {.machine = machine_available_bytes(), .group = UINT64_MAX};
    lower_to_groups(&left, &wefti_os_group_v2, "/sys/fs/cgroup", "::");
    lower_to_groups(&left, &wefti_os_group_v1, "/sys/fs/cgroup/memory", ":memory:");
    return left;
}

uint64_t wefti_os_memory_available_bytes(void)
{
    wefti_os_memory_left left = wefti_os_memory_left_query();
    return left.group < left.machine ? left.group : left.machine;
}
