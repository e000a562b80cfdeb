/* support/ledger.c: what this process holds. */
#include "support/ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "os/os.h"
#include "weft/protocol/mem.h"

#define LOOKS 100
#define LOOK_NS UINT64_C(10000000)

static long count_entries(const char *path)
{
    long count = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    return count;
}

static void count_maps(ledger *now)
{
    char line[1024];
    FILE *file = fopen("/proc/self/maps", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        now->all_maps++;
        now->maps += strstr(line, "memfd:weft") != NULL;
    }
    fclose(file);
}

static long count_pages(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    return pages;
}

static void *end_at_once(void *argument)
{
    return argument;
}

/* ThreadSanitizer starts a thread of its own along with the program's first. */
static void settle(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, end_at_once, NULL), 0);
    pthread_join(thread, NULL);
}

ledger ledger_read(void)
{
    ledger now = {0};
    if (WEFTI_TSAN) {
        settle();
    }
    now.descriptors = count_entries("/proc/self/fd");
    now.threads = count_entries("/proc/self/task");
    now.pages = count_pages();
    count_maps(&now);
#ifdef WEFT_FAULTS
    now.allocations = (long)wefti_alloc_live();
#endif
    return now;
}

/* Fewer threads are no difference: under an emulator, one that has been joined may still be listed in `before`. */
static int is_same(const ledger *before, const ledger *now)
{
    return now->descriptors == before->descriptors && now->threads <= before->threads && now->maps == before->maps &&
           now->allocations == before->allocations;
}

void ledger_assert_same(const ledger *before)
{
    ledger now = ledger_read();
    for (int look = 0; look < LOOKS && !is_same(before, &now); look++) {
        wefti_os_sleep_ns(LOOK_NS);
        now = ledger_read();
    }
    assert_int_equal(now.descriptors, before->descriptors);
    assert_true(now.threads <= before->threads);
    assert_int_equal(now.maps, before->maps);
    assert_int_equal(now.allocations, before->allocations);
}
