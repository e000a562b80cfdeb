/* A bootstrap plugin that needs nothing but a directory which all processes see: each writes what it says to a file and
 * reads those of the others.
 *
 *     cc -shared -fPIC -o files.so files.c $(pkg-config --cflags weft)
 *     export WEFT_BOOTSTRAP=plugin WEFT_BOOTSTRAP_PLUGIN=$PWD/files.so FILES_DIR=/shared/empty FILES_SIZE=2
 *     FILES_RANK=0 ./program & FILES_RANK=1 ./program
 *
 * The id that the files carry admits to the world: let nobody else read the directory. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weft/bootstrap.h>

typedef struct place {
    const char *directory;
    int rank;
    int size;
    int exchange;
    unsigned long long timeout_ns;
} place;

static int number_of(const char *name)
{
    const char *text = getenv(name);
    return text == NULL ? -1 : atoi(text);
}

static int files_open(const void *argument, uint64_t timeout_ns, void **state, int *pe, int *pes)
{
    static int worlds; /* each has names of its own */
    place *own = malloc(sizeof *own);
    (void)argument;
    if (own == NULL) {
        return 1;
    }
    *own = (place){getenv("FILES_DIR"), number_of("FILES_RANK"), number_of("FILES_SIZE"), ++worlds, timeout_ns};
    if (own->directory == NULL || own->rank < 0 || own->size <= own->rank) {
        free(own);
        return 2;
    }
    *state = own;
    *pe = own->rank;
    *pes = own->size;
    return 0;
}

static void name_file(const place *own, int rank, const char *end, char *name, size_t bytes)
{
    (void)snprintf(name, bytes, "%s/%d.%d%s", own->directory, own->exchange, rank, end);
}

/* Under another name first: who finds the file finds all of it. */
static int write_own(const place *own, const void *mine, size_t bytes)
{
    char part[512];
    char whole[512];
    name_file(own, own->rank, ".part", part, sizeof part);
    name_file(own, own->rank, "", whole, sizeof whole);
    FILE *to = fopen(part, "wb");
    if (to == NULL) {
        return 1;
    }
    const int is_written = fwrite(mine, 1, bytes, to) == bytes;
    return fclose(to) != 0 || !is_written || rename(part, whole) != 0;
}

static int read_other(const place *own, int rank, void *memory, size_t bytes)
{
    const struct timespec pause = {0, 1000000};
    char name[512];
    name_file(own, rank, "", name, sizeof name);
    for (unsigned long long waited_ns = 0; waited_ns < own->timeout_ns; waited_ns += 1000000) {
        FILE *from = fopen(name, "rb");
        if (from != NULL) {
            const int is_read = fread(memory, 1, bytes, from) == bytes;
            (void)fclose(from);
            return !is_read;
        }
        (void)nanosleep(&pause, NULL);
    }
    return 1;
}

static int files_allgather(void *state, const void *mine, void *all, size_t bytes)
{
    const place *own = state;
    int failed = write_own(own, mine, bytes);
    for (int rank = 0; rank < own->size && !failed; rank++) {
        failed = read_other(own, rank, (char *)all + (size_t)rank * bytes, bytes);
    }
    return failed;
}

static void files_close(void *state)
{
    free(state);
}

__attribute__((visibility("default"))) const weft_bootstrap_plugin WEFT_BOOTSTRAP_PLUGIN_SYMBOL = {
    WEFT_BOOTSTRAP_PLUGIN_VERSION, sizeof(weft_bootstrap_plugin), files_open, files_allgather, files_close};
