#include "world/hello.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "world/build.h"

#define HELLO_MAGIC 0x6f6c6c6568746677u /* "wfthello" */
#define HEAP_AUTO_BYTES_MAX ((uint64_t)64 << 30)

static uint64_t hash_name(const char *name)
{
    static const unsigned char no_secret[WEFTI_HASH_BYTES] = {0};
    unsigned char hash[WEFTI_HASH_BYTES];
    uint64_t value;
    wefti_hash(no_secret, name, strlen(name), hash);
    memcpy(&value, hash, sizeof value);
    return value;
}

weft_status wefti_hello_init(wefti_hello *hello, const wefti_world_settings *settings, const wefti_bootstrap *bootstrap)
{
    memset(hello, 0, sizeof *hello);
    hello->magic = HELLO_MAGIC;
    hello->version = WEFT_VERSION;
    hello->view_abi = WEFTI_VIEW_ABI;
    hello->build = wefti_build_key();
    hello->pe = (uint32_t)bootstrap->pe;
#define FILL_IN(type, field, value, is_code, name) hello->field = value;
    WEFTI_HELLO_EQUAL_TABLE(FILL_IN)
#undef FILL_IN
    memcpy(hello->program, settings->config.program, sizeof hello->program);
    uint64_t half = wefti_os_memory_bytes() / 2;
    hello->heap_auto_bytes = half > 0 && half < HEAP_AUTO_BYTES_MAX ? half : HEAP_AUTO_BYTES_MAX; /* 0: not known */
    hello->networks = settings->networks;
    hello->cores = wefti_os_cores_query();
    hello->left = wefti_os_memory_left_query();
    WEFT_TRY(wefti_os_identity_query(&hello->identity));
    return wefti_os_random(hello->secret, sizeof hello->secret);
}

void wefti_hello_derive(const unsigned char secret[WEFTI_HELLO_SECRET_BYTES], wefti_hello_purpose purpose, int pe,
                        unsigned char name[WEFTI_HELLO_NAME_BYTES])
{
    const uint32_t what[2] = {(uint32_t)purpose, (uint32_t)pe};
    wefti_hash(secret, what, sizeof what, name);
}

uint64_t wefti_hello_process(const wefti_hello *hello)
{
    static const unsigned char no_secret[WEFTI_HASH_BYTES] = {0};
    unsigned char hash[WEFTI_HASH_BYTES];
    uint64_t number;
    wefti_hash(no_secret, hello->identity.process, sizeof hello->identity.process, hash);
    memcpy(&number, hash, sizeof number);
    return number;
}

uint64_t wefti_hello_key(const unsigned char secret[WEFTI_HELLO_SECRET_BYTES])
{
    unsigned char hash[WEFTI_HASH_BYTES];
    uint64_t key;
    wefti_hash(secret, "world", 5, hash);
    memcpy(&key, hash, sizeof key);
    return key;
}

typedef struct field {
    const char *name;
    size_t offset;
    size_t bytes;
    int is_code; /* its value says nothing to a reader */
} field;

/* What comes first: without it the other fields may lie elsewhere. */
static const field build_field = {"build", offsetof(wefti_hello, magic),
                                  offsetof(wefti_hello, pe) - offsetof(wefti_hello, magic), 1};

/* Programs that differ may have given other sizes for that. */
static const field program_field = {"program", offsetof(wefti_hello, program), WEFT_PROGRAM_BYTES, 0};

static const field equal_fields[] = {
#define FIELD_ROW(type, field, value, is_code, name) {name, offsetof(wefti_hello, field), sizeof(type), is_code},
    WEFTI_HELLO_EQUAL_TABLE(FIELD_ROW)
#undef FIELD_ROW
};

static int same(const wefti_hello *a, const wefti_hello *b, const field *f)
{
    return memcmp((const char *)a + f->offset, (const char *)b + f->offset, f->bytes) == 0;
}

static unsigned long long field_value(const wefti_hello *hello, const field *f)
{
    uint64_t value = 0;
    memcpy(&value, (const char *)hello + f->offset, f->bytes < sizeof value ? f->bytes : sizeof value);
    return value;
}

/* Boyer and Moore: a value that more than half say, if there is one; else that of PE 0. */
static int majority(const wefti_hello *all, int pes, const field *f)
{
    int candidate = 0;
    int lead = 0;
    for (int pe = 0; pe < pes; pe++) {
        if (lead == 0) {
            candidate = pe;
        }
        lead += same(&all[candidate], &all[pe], f) ? 1 : -1;
    }
    int says = 0;
    for (int pe = 0; pe < pes; pe++) {
        says += same(&all[candidate], &all[pe], f);
    }
    return 2 * says > pes ? candidate : 0;
}

static int all_same(const wefti_hello *all, int pes, const field *f)
{
    int pe = 1;
    while (pe < pes && same(&all[0], &all[pe], f)) {
        pe++;
    }
    return pe >= pes;
}

/* The lowest PE whose field differs from what most say, or -1; *right says what most do. */
static int find_odd(const wefti_hello *all, int pes, const field *f, int *right)
{
    if (all_same(all, pes, f)) {
        return -1;
    }
    *right = majority(all, pes, f);
    for (int pe = 0; pe < pes; pe++) {
        if (!same(&all[*right], &all[pe], f)) {
            return pe;
        }
    }
    return -1;
}

/* "0.1.0, build 1234..." */
#define BUILD_TEXT_BYTES 64
static const char *build_text(const wefti_hello *hello, char text[BUILD_TEXT_BYTES])
{
    (void)snprintf(text, BUILD_TEXT_BYTES, "%u.%u.%u, build %016llx", hello->version >> 16 & 0xff,
                   hello->version >> 8 & 0xff, hello->version & 0xff, (unsigned long long)hello->build);
    return text;
}

static weft_status refuse_build(const wefti_hello *all, int pe, int right)
{
    char wrong_build[BUILD_TEXT_BYTES];
    char right_build[BUILD_TEXT_BYTES];
    return wefti_error(WEFT_ERR_MISMATCH,
                       "weft_world_create: PE %d runs %s, but PE %d %s: these are different builds of weft, which do "
                       "not share memory alike; let all PEs load the same library (`weft-info build` shows a build's "
                       "number, `ldd` which library a program loads)",
                       pe, build_text(&all[pe], wrong_build), right, build_text(&all[right], right_build));
}

#define PROGRAM_TEXT_BYTES (2 * WEFT_PROGRAM_BYTES + 1)
static const char *program_text(const wefti_hello *hello, char text[PROGRAM_TEXT_BYTES])
{
    for (size_t i = 0; i < WEFT_PROGRAM_BYTES; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", hello->program[i]);
    }
    return text;
}

static weft_status refuse_program(const wefti_hello *all, int pe, int right)
{
    char wrong_text[PROGRAM_TEXT_BYTES];
    char right_text[PROGRAM_TEXT_BYTES];
    return wefti_error(
        WEFT_ERR_MISMATCH,
        "weft_world_create: PE %d runs program %s, but PE %d %s; start the same executable, of one build, on "
        "all PEs (`file` shows its BuildID)",
        pe, program_text(&all[pe], wrong_text), right, program_text(&all[right], right_text));
}

static weft_status refuse(const wefti_hello *all, int pe, int right, const field *f)
{
    if (f->is_code) {
        return wefti_error(WEFT_ERR_MISMATCH,
                           "weft_world_create: PE %d differs in its %s from PE %d; make them equal on all PEs", pe,
                           f->name, right);
    }
    return wefti_error(
        WEFT_ERR_MISMATCH,
        "weft_world_create: PE %d differs in its %s: %llu, but PE %d has %llu; make them equal on all PEs", pe, f->name,
        field_value(&all[pe], f), right, field_value(&all[right], f));
}

weft_status wefti_hello_check_builds(const wefti_hello *all, int pes)
{
    int right;
    int pe = find_odd(all, pes, &build_field, &right);
    return pe < 0 ? WEFT_OK : refuse_build(all, pe, right);
}

weft_status wefti_hello_check(const wefti_hello *all, int pes)
{
    for (int pe = 0; pe < pes; pe++) {
        if (all[pe].pe != (uint32_t)pe) {
            return wefti_error(WEFT_ERR_MISMATCH,
                               "weft_world_create: the bootstrap gave PE %d what PE %u said; give every PE its own "
                               "number",
                               pe, all[pe].pe);
        }
    }
    int right_program;
    int odd = find_odd(all, pes, &program_field, &right_program);
    if (odd >= 0) {
        return refuse_program(all, odd, right_program);
    }
    for (size_t i = 0; i < sizeof equal_fields / sizeof *equal_fields; i++) {
        int right;
        int pe = find_odd(all, pes, &equal_fields[i], &right);
        if (pe >= 0) {
            return refuse(all, pe, right, &equal_fields[i]);
        }
    }
    return WEFT_OK;
}
