/* Goal: every routine that kernels have does, for every type, and by a thread, a warp and a block, what it should, and
 * writes nothing else.
 *
 * Method: generate.py makes kernels that call all of them, on random data, sizes, alignments and strides, in slots full
 * of other random bytes. Here is a model: what all slots hold afterwards, byte by byte, and what calls return. Each PE
 * is written to by the one before it; collectives also by a team in reverse order, made before a GPU is chosen. Floats
 * that are added are small whole numbers, so that sums are exact. Data and cases follow from the names and a seed, so
 * that a PE knows what others have. What a wait waits for is sent while it waits, and looked at behind it.
 *
 *     weftrun -n PES PROGRAM [SEED]
 *
 * By g++ for the fake driver, where warps and blocks are coroutines; by nvcc for GPUs (scripts/gpu_nvshmem.sh). A wait
 * in a kernel ends by WEFT_DEADLINE. */
#include "faces/nvshmem/every/set.h"

#include "parts.h"

#include <cmath>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>

#include "faces/nvshmem/every/memory.h"

#define SLOT_BYTES 8192
#define LONG_FACTOR 8 /* slots of the last round are so much longer */
#define ROUNDS 3
#define CMPS 6
#define SLOTS_BYTES ((size_t)EVERY_CALLS_MAX * SLOT_BYTES * LONG_FACTOR)

typedef std::vector<unsigned char> bytes;

static int me;
static int pes;
static long failures;
static uint64_t seed = 1;
static nvshmem_team_t reverse;

/* ---- random numbers: the same wherever they are asked for ---- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

struct stream {
    uint64_t state;
    uint64_t next()
    {
        return mix(state++);
    }
    uint64_t below(uint64_t end)
    {
        return next() % end;
    }
};

/* One round of a set: what it is named for, and the arrays before it. */
struct round_of {
    const every_set *set;
    int number;
    size_t slot;
    bool is_reversed; /* the team of collectives */
    uint64_t key;
};

static stream stream_of(const round_of &round, const char *array, int pe)
{
    uint64_t key = round.key;
    for (const char *c = array; *c != 0; c++) {
        key = mix(key ^ (uint64_t)(unsigned char)*c);
    }
    stream found = {mix(key ^ (uint64_t)(pe + 1))};
    return found;
}

/* ---- numbers ---- */

static double half_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31;
    const double size =
        exponent == 0 ? (bits & 1023) / 16777216.0 : (1024 + (bits & 1023)) / 33554432.0 * (1u << exponent);
    return (bits & 0x8000) != 0 ? -size : size;
}

/* Of whole numbers below 2048. */
static uint16_t half_bits(double value)
{
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0; /* also of nothing */
    double size = value < 0 ? -value : value;
    if (size == 0) {
        return sign;
    }
    int exponent = 15;
    while (size >= 2) {
        size /= 2;
        exponent++;
    }
    return (uint16_t)(sign | exponent << 10 | (int)((size - 1) * 1024));
}

static double read_float(const every_set &set, const unsigned char *from)
{
    uint16_t bits = 0;
    uint32_t word = 0;
    float single = 0;
    double value = 0;
    if (set.number == EVERY_FLOAT && set.element == 8) {
        memcpy(&value, from, sizeof value);
    } else if (set.number == EVERY_FLOAT) {
        memcpy(&single, from, sizeof single);
        value = single;
    } else {
        memcpy(&bits, from, sizeof bits);
        word = (uint32_t)bits << 16;
        memcpy(&single, &word, sizeof single);
        value = set.number == EVERY_HALF ? half_value(bits) : single;
    }
    return value;
}

static void write_float(const every_set &set, unsigned char *to, double value)
{
    const float single = (float)value;
    uint32_t word;
    memcpy(&word, &single, sizeof word);
    const uint16_t bits = set.number == EVERY_HALF ? half_bits(value) : (uint16_t)(word >> 16);
    if (set.number == EVERY_FLOAT && set.element == 8) {
        memcpy(to, &value, sizeof value);
    } else if (set.number == EVERY_FLOAT) {
        memcpy(to, &single, sizeof single);
    } else {
        memcpy(to, &bits, sizeof bits);
    }
}

static uint64_t read_integer(const every_set &set, const unsigned char *from)
{
    uint64_t value = 0;
    memcpy(&value, from, set.element);
    const int unused = 64 - 8 * (int)set.element;
    return set.number == EVERY_SIGNED ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

static bool is_float(const every_set &set)
{
    return set.number == EVERY_FLOAT || set.number == EVERY_HALF || set.number == EVERY_BFLOAT16;
}

enum operation { OF_AND, OF_OR, OF_XOR, OF_MAX, OF_MIN, OF_SUM, OF_PROD };

static double combine_floats(operation how, double a, double b)
{
    return how == OF_MAX ? (a > b ? a : b) : how == OF_MIN ? (a < b ? a : b) : how == OF_SUM ? a + b : a * b;
}

static uint64_t combine_integers(const every_set &set, operation how, uint64_t a, uint64_t b)
{
    const bool is_less = set.number == EVERY_SIGNED ? (int64_t)a < (int64_t)b : a < b;
    switch (how) {
    case OF_AND:
        return a & b;
    case OF_OR:
        return a | b;
    case OF_XOR:
        return a ^ b;
    case OF_MAX:
        return is_less ? b : a;
    case OF_MIN:
        return is_less ? a : b;
    case OF_SUM:
        return a + b;
    default:
        return a * b;
    }
}

/* *to = *to with *with. */
static void combine(const every_set &set, operation how, unsigned char *to, const unsigned char *with)
{
    if (is_float(set)) {
        write_float(set, to, combine_floats(how, read_float(set, to), read_float(set, with)));
    } else {
        const uint64_t value = combine_integers(set, how, read_integer(set, to), read_integer(set, with));
        memcpy(to, &value, set.element);
    }
}

static void write_number(const every_set &set, unsigned char *to, int value)
{
    if (is_float(set)) {
        write_float(set, to, value);
    } else {
        const int64_t wide = value;
        memcpy(to, &wide, set.element);
    }
}

/* ---- what arrays hold before ---- */

static size_t array_bytes(const round_of &round)
{
    return ((size_t)round.set->count + 1) * round.slot;
}

static bytes random_bytes(const round_of &round, const char *array, int pe)
{
    bytes all(array_bytes(round));
    stream numbers = stream_of(round, array, pe);
    for (size_t i = 0; i < all.size(); i += 8) {
        const uint64_t word = numbers.next();
        memcpy(&all[i], &word, 8);
    }
    return all;
}

static bool is_reduction(every_what what)
{
    return what >= EVERY_IS_AND_REDUCE && what <= EVERY_IS_PROD_REDUCE_SCATTER;
}

static bool has_numbers(const every_set &set)
{
    return is_float(set) && (set.scope == EVERY_ATOMIC || is_reduction(set.calls[set.count - 1].what));
}

/* What `pe` has in `array`: small whole numbers where they are added. Those of products are at most 2. */
static bytes array_of(const round_of &round, const char *array, int pe)
{
    bytes all = random_bytes(round, array, pe);
    if (has_numbers(*round.set)) {
        for (size_t i = 0; i < all.size(); i += round.set->element) {
            write_number(*round.set, &all[i], (int)(all[i] % 5) - 2);
        }
    }
    return all;
}

/* ---- cases ---- */

static uint32_t count_max(const round_of &round, int many)
{
    const every_set &set = *round.set;
    const uint32_t of_scope = set.scope == EVERY_THREAD ? 24 : set.scope == EVERY_WARP ? 90 : 300;
    const size_t room = (round.slot - 64) / set.element / (size_t)many;
    const size_t wanted = of_scope * (round.slot / SLOT_BYTES);
    return (uint32_t)(wanted < room ? wanted : room);
}

static every_case case_of(const round_of &round, stream &numbers, every_what what)
{
    const uint32_t element = round.set->element;
    const bool is_strided = what == EVERY_IS_IPUT || what == EVERY_IS_IGET;
    const bool is_moved = what >= EVERY_IS_BROADCAST && what <= EVERY_IS_PROD_REDUCE_SCATTER;
    const uint32_t offsets = element == 1 ? 16 : 4;
    every_case one = {};
    one.dest = (uint32_t)numbers.below(offsets) * element;
    one.source = (uint32_t)numbers.below(offsets) * element;
    const uint32_t most = count_max(round, is_strided ? 3 : is_moved ? pes : 1);
    one.count = (uint32_t)numbers.below(is_moved ? most : most + 1) + is_moved;
    if (numbers.below(3) == 0) { /* also what goes by accesses of 16 bytes alone */
        one.dest = one.source = 0;
        one.count -= one.count * element > 16 ? one.count % ((15 + element) / element) : 0;
    }
    one.root = (int)numbers.below((uint64_t)pes);
    one.dest_stride = is_strided ? 1 + (ptrdiff_t)numbers.below(3) : 1;
    one.source_stride = is_strided ? 1 + (ptrdiff_t)numbers.below(3) : 1;
    one.signal = numbers.next();
    one.op = numbers.below(2) != 0 ? NVSHMEM_SIGNAL_SET : NVSHMEM_SIGNAL_ADD;
    return one;
}

static std::vector<uint64_t> signals_of(const round_of &round, int pe)
{
    std::vector<uint64_t> signals((size_t)round.set->count + 2); /* once.cuh has three */
    stream numbers = stream_of(round, "signals", pe);
    for (uint64_t &signal : signals) {
        signal = round.set->scope == EVERY_ONCE || round.set->scope == EVERY_WAIT ? 0 : numbers.next();
    }
    return signals;
}

static bool has_mask(const round_of &round)
{
    return round.number % 4 < 2;
}

/* Which of the variables of call k is sent by itself. */
static void set_apart(const round_of &round, int k, every_what what, every_case &one)
{
    const int any = (k + round.number) % EVERY_WORDS;
    one.apart = what == EVERY_IS_WAIT ? 0 : has_mask(round) && any == EVERY_MASKED ? any + 1 : any;
    one.is_first = what == EVERY_IS_WAIT_ANY || what == EVERY_IS_WAIT_ANY_VECTOR || what == EVERY_IS_WAIT_SOME ||
                   what == EVERY_IS_WAIT_SOME_VECTOR;
}

static std::vector<every_case> cases_of(const round_of &round)
{
    std::vector<every_case> cases;
    stream numbers = stream_of(round, "cases", 0);
    const std::vector<uint64_t> signals = signals_of(round, me);
    for (int k = 0; k < round.set->count; k++) {
        every_case one = case_of(round, numbers, round.set->calls[k].what);
        one.awaited = one.op == NVSHMEM_SIGNAL_SET ? one.signal : signals[(size_t)k] + one.signal;
        set_apart(round, k, round.set->calls[k].what, one);
        cases.push_back(one);
    }
    return cases;
}

/* ---- what arrays hold after: `to` of this PE, and `got`; in place. `from` is as it was. ---- */

struct state {
    bytes to;
    bytes from;
    bytes got;
    bytes seen;
    std::vector<uint64_t> signals;
    std::vector<uint64_t> results; /* of those that are known */
    std::vector<bool> is_known;
};

static void copy_elements(const round_of &round, bytes &to, const bytes &from, const every_case &one, size_t slot)
{
    const size_t element = round.set->element;
    for (size_t i = 0; i < one.count; i++) {
        memcpy(&to[slot + one.dest + i * (size_t)one.dest_stride * element],
               &from[slot + one.source + i * (size_t)one.source_stride * element], element);
    }
}

static void know(state &after, int k, int i, uint64_t value)
{
    after.results[(size_t)(k * EVERY_RESULTS + i)] = value;
    after.is_known[(size_t)(k * EVERY_RESULTS + i)] = true;
}

static void apply_one_sided(const round_of &round, const std::vector<every_case> &cases, state &after)
{
    const bytes from_before = array_of(round, "from", (me + pes - 1) % pes);
    const bytes from_next = array_of(round, "from", (me + 1) % pes);
    for (int k = 0; k < round.set->count; k++) {
        const every_what what = round.set->calls[k].what;
        const every_case &one = cases[(size_t)k];
        const size_t slot = (size_t)k * round.slot;
        if (what == EVERY_IS_GET || what == EVERY_IS_IGET || what == EVERY_IS_G) {
            copy_elements(round, after.got, from_next, one, slot);
        } else {
            copy_elements(round, after.to, from_before, one, slot);
        }
        if (what == EVERY_IS_PUT_SIGNAL) {
            after.signals[(size_t)k] = one.awaited;
            know(after, k, 0, one.awaited);
            memcpy(&after.seen[slot], &after.to[slot], round.slot);
        }
    }
}

/* The number of member i of the team. */
static int member(const round_of &round, int i)
{
    return round.is_reversed ? pes - 1 - i : i;
}

static void apply_collective(const round_of &round, const every_case &one, every_what what, size_t slot,
                             const std::vector<bytes> &from, bytes &to)
{
    const every_set &set = *round.set;
    const size_t block = (size_t)one.count * set.element;
    const int mine = member(round, me);
    const size_t dest = slot + one.dest;
    const size_t source = slot + one.source;
    if (what == EVERY_IS_BROADCAST) {
        memcpy(&to[dest], &from[(size_t)member(round, one.root)][source], block);
        return;
    }
    for (int i = 0; i < pes; i++) {
        const bytes &its = from[(size_t)member(round, i)];
        if (what == EVERY_IS_FCOLLECT || what == EVERY_IS_ALLTOALL) {
            const size_t part = what == EVERY_IS_ALLTOALL ? (size_t)mine * block : 0;
            memcpy(&to[dest + (size_t)i * block], &its[source + part], block);
            continue;
        }
        const int number = what - EVERY_IS_AND_REDUCE;
        const size_t part = number % 2 != 0 ? (size_t)mine * block : 0;
        for (size_t at = 0; at < block; at += set.element) {
            if (i == 0) {
                memcpy(&to[dest + at], &its[source + part + at], set.element);
            } else {
                combine(set, (operation)(number / 2), &to[dest + at], &its[source + part + at]);
            }
        }
    }
}

static void apply_collectives(const round_of &round, const std::vector<every_case> &cases, state &after)
{
    std::vector<bytes> from;
    for (int pe = 0; pe < pes; pe++) {
        from.push_back(array_of(round, "from", pe));
    }
    for (int k = 0; k < round.set->count; k++) {
        apply_collective(round, cases[(size_t)k], round.set->calls[k].what, (size_t)k * round.slot, from, after.to);
        know(after, k, 0, 0);
    }
}

/* One word: what `before` does to mine, and what I have read of the next one's. */
static void apply_atomic(const every_set &set, every_what what, unsigned char *word, const unsigned char *operands,
                         unsigned char *results)
{
    unsigned char one[16] = {0};
    const unsigned char *with = operands;
    operation how = OF_SUM;
    int times = 1;
    memcpy(results, word, set.element);
    if (what == EVERY_IS_ATOMIC_FETCH) {
        return;
    }
    if (what == EVERY_IS_ATOMIC_SET || what == EVERY_IS_ATOMIC_SWAP || what == EVERY_IS_ATOMIC_COMPARE_SWAP) {
        memcpy(word, operands, set.element); /* both tries of a compare_swap are with what was there */
        memcpy(results + sizeof(uint64_t), word, set.element);
        return;
    }
    if (what == EVERY_IS_ATOMIC_INC || what == EVERY_IS_ATOMIC_FETCH_INC) {
        write_number(set, one, 1);
        with = one;
    } else if (what >= EVERY_IS_ATOMIC_AND) {
        how = (operation)((what - EVERY_IS_ATOMIC_AND) / 2);
    }
    if (what == EVERY_IS_ATOMIC_INC || what == EVERY_IS_ATOMIC_ADD) {
        times = EVERY_LANES;
    }
    for (int i = 0; i < times; i++) {
        combine(set, how, word, with);
    }
}

static bool gives(every_what what)
{
    return what == EVERY_IS_ATOMIC_FETCH || what == EVERY_IS_ATOMIC_SWAP || what == EVERY_IS_ATOMIC_COMPARE_SWAP ||
           what == EVERY_IS_ATOMIC_FETCH_INC || what == EVERY_IS_ATOMIC_FETCH_ADD ||
           what == EVERY_IS_ATOMIC_FETCH_AND || what == EVERY_IS_ATOMIC_FETCH_OR || what == EVERY_IS_ATOMIC_FETCH_XOR;
}

/* The operands of `pe`: the second one is what the next PE's word holds. */
static bytes operands_of(const round_of &round, int pe)
{
    bytes from = array_of(round, "from", pe);
    const bytes words = array_of(round, "to", (pe + 1) % pes);
    for (int k = 0; k < round.set->count; k++) {
        const size_t group = (size_t)k * EVERY_GROUP_BYTES;
        memcpy(&from[group + round.set->element], &words[group], round.set->element);
    }
    return from;
}

static void apply_atomics(const round_of &round, state &after)
{
    const int next = (me + 1) % pes;
    const bytes of_before = operands_of(round, (me + pes - 1) % pes);
    const bytes mine = operands_of(round, me);
    bytes there = array_of(round, "to", next);
    for (int k = 0; k < round.set->count; k++) {
        const every_what what = round.set->calls[k].what;
        const size_t group = (size_t)k * EVERY_GROUP_BYTES;
        unsigned char unused[2 * sizeof(uint64_t)];
        uint64_t read[2];
        memcpy(read, &after.results[(size_t)(k * EVERY_RESULTS)], sizeof read); /* above the element they stay */
        apply_atomic(*round.set, what, &after.to[group], &of_before[group], unused);
        apply_atomic(*round.set, what, &there[group], &mine[group], (unsigned char *)read);
        if (gives(what)) {
            know(after, k, 0, read[0]);
            know(after, k, 1,
                 what == EVERY_IS_ATOMIC_COMPARE_SWAP ? read[1] : after.results[(size_t)(k * EVERY_RESULTS + 1)]);
        }
    }
}

/* ---- waits ---- */

static const int cmps[CMPS] = {NVSHMEM_CMP_EQ, NVSHMEM_CMP_NE, NVSHMEM_CMP_GT,
                               NVSHMEM_CMP_GE, NVSHMEM_CMP_LT, NVSHMEM_CMP_LE};

static bool is_vector(every_what what)
{
    return what == EVERY_IS_WAIT_ALL_VECTOR || what == EVERY_IS_WAIT_ANY_VECTOR || what == EVERY_IS_WAIT_SOME_VECTOR ||
           what >= EVERY_IS_TEST_ALL_VECTOR;
}

/* What a variable holds before, and what is sent to it: the comparison is false of the former. */
static int wait_before(const round_of &round)
{
    return cmps[round.number % CMPS] == NVSHMEM_CMP_LT || cmps[round.number % CMPS] == NVSHMEM_CMP_LE ? 100 : 1;
}

static int wait_sent(const round_of &round, every_what what, int i)
{
    return 10 + (is_vector(what) ? i + round.number : 0);
}

static int wait_value(const round_of &round, every_what what, int i)
{
    const int cmp = cmps[round.number % CMPS];
    const bool is_old = cmp == NVSHMEM_CMP_NE || cmp == NVSHMEM_CMP_GT || cmp == NVSHMEM_CMP_LT;
    return is_old ? wait_before(round) : wait_sent(round, what, i);
}

/* Variables that nobody sends to are those of the last group. */
static void write_variables(const round_of &round, bytes &to, bool is_after)
{
    const every_set &set = *round.set;
    for (int k = 0; k <= set.count; k++) {
        for (int i = 0; i < EVERY_WORDS; i++) {
            const bool is_sent = is_after && k < set.count && !(has_mask(round) && i == EVERY_MASKED);
            const int value = is_sent ? wait_sent(round, set.calls[k].what, i) : wait_before(round);
            write_number(set, &to[(size_t)k * EVERY_GROUP_BYTES + (size_t)i * set.element], value);
        }
    }
}

static void write_values(const round_of &round, bytes &from)
{
    const every_set &set = *round.set;
    for (int k = 0; k < set.count; k++) {
        for (int i = 0; i < EVERY_WORDS; i++) {
            const size_t at = (size_t)k * EVERY_GROUP_BYTES + (size_t)i * set.element;
            const size_t behind = (size_t)(EVERY_NEVER + 1) * EVERY_GROUP_BYTES;
            write_number(set, &from[at], wait_sent(round, set.calls[k].what, i));
            write_number(set, &from[behind + at], wait_value(round, set.calls[k].what, i));
        }
    }
}

static void know_test(const round_of &round, int k, every_what what, state &after)
{
    const int there = has_mask(round) ? EVERY_WORDS - 1 : EVERY_WORDS;
    const bool is_any = what == EVERY_IS_TEST_ANY || what == EVERY_IS_TEST_ANY_VECTOR;
    const bool is_some = what == EVERY_IS_TEST_SOME || what == EVERY_IS_TEST_SOME_VECTOR;
    know(after, k, 7, is_any ? UINT64_MAX : 0);
    know(after, k, 0, is_any ? 0 : is_some ? (uint64_t)there : 1);
    for (int i = 0; is_some && i < there; i++) {
        know(after, k, 1 + i, (uint64_t)(has_mask(round) && i >= EVERY_MASKED ? i + 1 : i));
    }
}

/* A wait has waited for what it looked at behind the call; and those for any or some have found the word apart. */
static void know_wait(const round_of &round, int k, every_what what, const every_case &one, state &after)
{
    const uint64_t all = (1u << EVERY_WORDS) - 1 - (has_mask(round) ? 1u << EVERY_MASKED : 0);
    const bool is_all = what == EVERY_IS_WAIT_ALL || what == EVERY_IS_WAIT_ALL_VECTOR;
    const bool is_some = what == EVERY_IS_WAIT_SOME || what == EVERY_IS_WAIT_SOME_VECTOR;
    know(after, k, EVERY_LOOK, is_all ? all : 1u << one.apart);
    if (one.is_first) {
        know(after, k, 0, is_some ? 1 : (uint64_t)one.apart);
        know(after, k, 1, is_some ? (uint64_t)one.apart : 0);
    }
}

static void apply_waits(const round_of &round, const std::vector<every_case> &cases, state &after)
{
    write_variables(round, after.to, true);
    for (int k = 0; k < round.set->count; k++) {
        const every_what what = round.set->calls[k].what;
        if (what >= EVERY_IS_TEST) {
            know_test(round, k, what, after);
        } else {
            know_wait(round, k, what, cases[(size_t)k], after);
        }
    }
    after.signals[0] = 2 * (uint64_t)round.set->count;
}

/* ---- a round ---- */

static void fail(const round_of &round, int k, const std::string &text)
{
    if (failures++ < 20) {
        printf("PE %d: %s, round %d, seed %llu: %s: %s\n", me, round.set->name, round.number, (unsigned long long)seed,
               round.set->calls[k < round.set->count ? k : round.set->count - 1].name, text.c_str());
    }
}

static void compare(const round_of &round, const char *what, const bytes &there, const bytes &wanted)
{
    const size_t step =
        round.set->scope == EVERY_ATOMIC || round.set->scope == EVERY_WAIT ? EVERY_GROUP_BYTES : round.slot;
    for (size_t i = 0; i < wanted.size(); i++) {
        if (there[i] != wanted[i]) {
            fail(round, (int)(i / step),
                 std::string(what) + ", byte " + std::to_string(i % step) + " is " + std::to_string(there[i]) +
                     ", not " + std::to_string(wanted[i]));
            i += step - i % step - 1; /* on to the next call's */
        }
    }
}

static void compare_results(const round_of &round, const std::vector<uint64_t> &there, const state &after)
{
    for (size_t i = 0; i < there.size(); i++) {
        if (after.is_known[i] && there[i] != after.results[i]) {
            fail(round, (int)i / EVERY_RESULTS,
                 "result " + std::to_string(i % EVERY_RESULTS) + " is " + std::to_string(there[i]) + ", not " +
                     std::to_string(after.results[i]));
        }
    }
    for (int k = 0; k < round.set->count; k++) {
        const uint64_t line = there[(size_t)(k * EVERY_RESULTS)];
        if (round.set->calls[k].what == EVERY_IS_OTHER && line != 0) {
            fail(round, k, "line " + std::to_string(line));
        }
    }
}

static state state_before(const round_of &round)
{
    state before;
    before.to = array_of(round, "to", me);
    before.got = random_bytes(round, "got", me);
    before.seen = random_bytes(round, "seen", me);
    before.signals = signals_of(round, me);
    before.results.assign((size_t)(round.set->count * EVERY_RESULTS), 0);
    before.is_known.assign(before.results.size(), false);
    before.from = round.set->scope == EVERY_ATOMIC ? operands_of(round, me) : array_of(round, "from", me);
    if (round.set->scope == EVERY_WAIT) {
        write_variables(round, before.to, false);
        write_values(round, before.from);
    }
    return before;
}

static state state_after(const round_of &round, const std::vector<every_case> &cases, state after)
{
    if (round.set->scope == EVERY_ATOMIC) {
        apply_atomics(round, after);
    } else if (round.set->scope == EVERY_WAIT) {
        apply_waits(round, cases, after);
    } else if (round.set->calls[0].what < EVERY_IS_BROADCAST) {
        apply_one_sided(round, cases, after);
    } else if (round.set->scope != EVERY_ONCE) {
        apply_collectives(round, cases, after);
    }
    return after;
}

/* The arrays of kernels. */
static every_args args;
static every_case *device_cases;
static int *device_status;

static void fill(const state &before, const std::vector<every_case> &cases)
{
    memory_to_device(args.from, before.from.data(), before.from.size());
    memory_to_device(args.to, before.to.data(), before.to.size());
    memory_to_device(args.got, before.got.data(), before.got.size());
    memory_to_device(args.seen, before.seen.data(), before.seen.size());
    memory_to_device(args.signals, before.signals.data(), before.signals.size() * sizeof(uint64_t));
    memory_to_device(args.results, before.results.data(), before.results.size() * sizeof(uint64_t));
    memory_to_device(device_cases, cases.data(), cases.size() * sizeof(every_case));
}

static void check(const round_of &round, const state &after)
{
    bytes to(after.to.size());
    bytes from(after.from.size());
    bytes got(after.got.size());
    bytes seen(after.seen.size());
    std::vector<uint64_t> signals(after.signals.size());
    std::vector<uint64_t> results(after.results.size());
    memory_to_host(to.data(), args.to, to.size());
    memory_to_host(from.data(), args.from, from.size());
    memory_to_host(got.data(), args.got, got.size());
    memory_to_host(seen.data(), args.seen, seen.size());
    memory_to_host(signals.data(), args.signals, signals.size() * sizeof(uint64_t));
    memory_to_host(results.data(), args.results, results.size() * sizeof(uint64_t));
    compare_results(round, results, after);
    if (round.set->scope == EVERY_ONCE) {
        return;
    }
    compare(round, "dest", to, after.to);
    compare(round, "source", from, after.from);
    compare(round, "what came back", got, after.got);
    compare(round, "dest when the signal came", seen, after.seen);
    for (size_t k = 0; k < signals.size(); k++) {
        if (signals[k] != after.signals[k]) {
            fail(round, (int)k, "its signal is not what it should be");
        }
    }
}

static unsigned threads_of(const round_of &round)
{
    const every_scope scope = round.set->scope;
    return scope == EVERY_THREAD                        ? 32
           : scope == EVERY_WARP || scope == EVERY_WAIT ? 64
                                                        : 32u * (2 + (unsigned)round.number % 3);
}

static void run(const every_set *set, int number)
{
    round_of round = {set, number, SLOT_BYTES, number % 2 != 0, mix(seed * 1000 + (uint64_t)number)};
    for (const char *c = set->name; *c != 0; c++) {
        round.key = mix(round.key ^ (uint64_t)(unsigned char)*c);
    }
    round.slot *= number == ROUNDS - 1 && set->scope <= EVERY_BLOCK ? LONG_FACTOR : 1;
    const std::vector<every_case> cases = cases_of(round);
    const state before = state_before(round);
    const state after = state_after(round, cases, before);
    args.slot = round.slot;
    args.team = round.is_reversed ? reverse : NVSHMEM_TEAM_WORLD;
    args.cmp = cmps[number % CMPS];
    args.status = set->scope == EVERY_WAIT && has_mask(round) ? device_status : NULL;
    fill(before, cases);
    nvshmem_barrier_all(); /* nobody writes here before */
    const int failed = set->launch(set->scope == EVERY_ONCE ? 96 : threads_of(round), args);
    if (failed != 0) {
        fail(round, 0, "the launch returned " + std::to_string(failed));
    }
    nvshmem_barrier_all();
    check(round, after);
}

static void make_arrays(void)
{
    const int status[EVERY_WORDS] = {0, 0, 1, 0, 0};
    static_assert(EVERY_MASKED == 2, "the one in status");
    args.pe = me;
    args.pes = pes;
    args.next = (me + 1) % pes;
    args.to = (unsigned char *)nvshmem_malloc(SLOTS_BYTES);
    args.from = (unsigned char *)nvshmem_malloc(SLOTS_BYTES);
    args.got = (unsigned char *)nvshmem_malloc(SLOTS_BYTES);
    args.seen = (unsigned char *)nvshmem_malloc(SLOTS_BYTES);
    args.signals = (uint64_t *)nvshmem_malloc(EVERY_CALLS_MAX * sizeof(uint64_t));
    args.results = (uint64_t *)nvshmem_malloc(EVERY_CALLS_MAX * EVERY_RESULTS * sizeof(uint64_t));
    args.cases = device_cases = (every_case *)nvshmem_malloc(EVERY_CALLS_MAX * sizeof(every_case));
    device_status = (int *)nvshmem_malloc(sizeof status);
    if (device_status == NULL || args.seen == NULL) {
        printf("PE %d: no symmetric memory\n", me);
        exit(1);
    }
    memory_to_device(device_status, status, sizeof status);
}

static nvshmem_team_t team_of(int first, int stride, int members)
{
    nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
    if (nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, first, stride, members, NULL, 0, &team) != 0) {
        printf("PE %d: no team\n", me);
        exit(1);
    }
    return team;
}

/* In the end with handles that differ: the last PE has none of the first team. */
static void make_teams(void)
{
    const nvshmem_team_t gone = team_of(0, 1, pes > 2 ? pes - 1 : pes);
    reverse = team_of(pes - 1, -1, pes);
    nvshmem_team_destroy(gone);
    (void)team_of(0, 1, pes);
}

int main(int argc, char **argv)
{
    int sets = 0;
    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    nvshmem_init();
    me = nvshmem_my_pe();
    pes = nvshmem_n_pes();
    make_teams();
    memory_choose(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE)); /* the team is there before a GPU is */
    make_arrays();
    for (const every_set *const *const *part = every_parts; *part != NULL; part++) {
        for (const every_set *const *set = *part; *set != NULL; set++) {
            for (int number = 0; number < ((*set)->scope == EVERY_WAIT ? CMPS : ROUNDS); number++) {
                run(*set, number);
            }
            sets++;
        }
    }
    nvshmem_barrier_all();
    if (me == 0 || failures != 0) {
        printf("PE %d of %d: %d kernels: %s\n", me, pes, sets, failures == 0 ? "ok" : "FAILED");
    }
    nvshmem_finalize();
    return failures != 0;
}
