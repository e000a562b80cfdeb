/* Variables of the C library that the linker puts among the executable's (copy relocations) go on to be one with the
 * library's: streams, the environment, options. Data of libraries and of threads are not symmetric. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faces/static/check.h"

extern char **environ;
extern char _end; /* of the linker's */
int *other_address(void);
static _Thread_local int of_thread;
static int first = 1;

static int is_in_executable(const void *address)
{
    return (const char *)address >= (const char *)&first - (1 << 20) && (const char *)address < &_end;
}

static void use_streams(void)
{
    CHECK(fputs("out\n", stdout) >= 0 && fputs("err\n", stderr) >= 0 && fflush(stdout) == 0);
    FILE *kept = stdout;
    stdout = stderr; /* the library's puts sees it */
    CHECK(puts("turned") >= 0);
    stdout = kept;
}

static void use_environment(void)
{
    int count = 0;
    CHECK(setenv("SHMEM_TEST_NAME", "value", 1) == 0);
    for (char **entry = environ; *entry != NULL; entry++) {
        count += strcmp(*entry, "SHMEM_TEST_NAME=value") == 0;
    }
    CHECK(count == 1);
    char *only[] = {"ONLY=this", NULL};
    char **kept = environ;
    environ = only;
    CHECK(getenv("SHMEM_TEST_NAME") == NULL && strcmp(getenv("ONLY"), "this") == 0);
    environ = kept;
}

static void use_options(void)
{
    char *words[] = {"program", "-a", "-b", "value", "rest", NULL};
    optind = 1;
    CHECK(getopt(5, words, "ab:") == 'a');
    CHECK(getopt(5, words, "ab:") == 'b' && strcmp(optarg, "value") == 0);
    CHECK(getopt(5, words, "ab:") == -1 && optind == 4);
}

int main(int argc, char **argv)
{
    (void)argc;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("before\n");
    for (int round = 0; round < 2; round++) {
        shmem_init();
        if (strcmp(argv[1], "copies") == 0) {
            CHECK(is_in_executable(&stdout) && is_in_executable(&environ) && is_in_executable(&optarg));
        }
        use_streams();
        use_environment();
        use_options();
        CHECK(!shmem_addr_accessible(other_address(), 0) && shmem_ptr(other_address(), 0) == NULL);
        CHECK(!shmem_addr_accessible(&of_thread, 0) && shmem_ptr(&of_thread, 0) == NULL);
        CHECK(shmem_addr_accessible(&first, 0));
        shmem_finalize();
        use_options();
        printf("after\n");
    }
    return 0;
}
