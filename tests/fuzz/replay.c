/* Goal: the inputs that fuzzing has found, and variations of them, do no harm.
 * Method: each file of a folder is given to the fuzz target as it is, and a number of times with bytes changed, cut and
 * repeated and numbers at the ends of their range, drawn from a fixed seed. Usage: replay FOLDER
 * [VARIATIONS-OF-EACH] */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 8192

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return z ^ z >> 31;
}

static const int32_t extremes[] = {INT32_MIN, INT32_MAX, -1, 0};

/* Returns the new size. */
static size_t vary(uint8_t *input, size_t bytes, uint64_t *state)
{
    for (uint64_t changes = 1 + draw(state) % 4; changes > 0 && bytes > 0; changes--) {
        size_t at = draw(state) % bytes;
        int32_t extreme = extremes[draw(state) % 4];
        switch (draw(state) % 5) {
        case 0:
            input[at] = (uint8_t)draw(state);
            break;
        case 1:
            input[at] ^= (uint8_t)(1u << draw(state) % 8);
            break;
        case 2:
            bytes = at;
            break;
        case 3:
            memcpy(input + at, &extreme, bytes - at < sizeof extreme ? bytes - at : sizeof extreme);
            break;
        default:
            if (2 * bytes - at <= BYTES_MAX) { /* the end once more */
                memcpy(input + bytes, input + at, bytes - at);
                bytes += bytes - at;
            }
        }
    }
    return bytes;
}

static int replay(const char *path, int variations, uint64_t *state)
{
    static uint8_t kept[BYTES_MAX];
    FILE *from = fopen(path, "rb");
    if (from == NULL) {
        return 0;
    }
    size_t bytes = fread(kept, 1, sizeof kept, from);
    (void)fclose(from);
    for (int i = 0; i <= variations; i++) {
        uint8_t *input = malloc(BYTES_MAX); /* of its own, so that reading beyond it shows */
        if (input == NULL) {
            return 0;
        }
        memcpy(input, kept, bytes);
        (void)LLVMFuzzerTestOneInput(input, i == 0 ? bytes : vary(input, bytes, state));
        free(input);
    }
    return 1;
}

int main(int argc, char **argv)
{
    int variations = argc > 2 ? atoi(argv[2]) : 0;
    int count = 0;
    uint64_t state = 1;
    DIR *folder = argc > 1 ? opendir(argv[1]) : NULL;
    if (folder == NULL) {
        fprintf(stderr, "usage: replay FOLDER [VARIATIONS-OF-EACH]\n");
        return EXIT_FAILURE;
    }
    (void)setenv("WEFT_LOG", "none", 1);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char path[1024];
        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        if (!replay(path, variations, &state)) {
            fprintf(stderr, "cannot read %s\n", path);
            return EXIT_FAILURE;
        }
        count++;
    }
    (void)closedir(folder);
    printf("%d inputs, %d variations of each\n", count, variations);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
