/* weft-perf/data.c: what buffers hold before a case, and what must be there after it. A byte or an element says which
 * PE it comes from and where it lay. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weft-perf/pe.h"

#define LOOK_AT_ALL ((size_t)16 << 20) /* of more bytes, each 61st is looked at */
#define STEP 61

static unsigned char byte_of(int pe, size_t i)
{
    return (unsigned char)(1 + pe * 37 + (int)(i * 7 + (i >> 8) * 13 + (i >> 16)) % 251);
}

/* 1 or 2, so that sums and products stay small. */
static double element_of(int pe, size_t i)
{
    return 1 + (double)((i + (size_t)pe) & 1);
}

static weft_status fill_source(perf_pe *pe, int as, unsigned char *host)
{
    if (as == PERF_DTYPE_COUNT) {
        for (size_t i = 0; i < pe->bytes; i++) {
            host[i] = byte_of(pe->pe, i);
        }
    } else {
        size_t bytes = perf_dtype_bytes((perf_dtype)as);
        for (size_t i = 0; i < pe->bytes / bytes; i++) {
            uint64_t bits = perf_encode((perf_dtype)as, element_of(pe->pe, i));
            memcpy(host + i * bytes, &bits, bytes);
        }
    }
    pe->filled = as;
    return perf_pe_copy(pe, pe->source, host, pe->bytes);
}

/* Each member gets one block of each, in order. */
static weft_status fill_table(perf_pe *pe, const perf_case *c)
{
    uint64_t *table = malloc(3 * (size_t)c->pes * sizeof *table);
    uint64_t block = perf_block_bytes(c);
    weft_status status = WEFT_ERR_MEMORY;
    if (table != NULL) {
        for (uint64_t i = 0; i < (uint64_t)c->pes; i++) {
            table[i] = table[(uint64_t)c->pes + i] = i * block;
            table[2 * (uint64_t)c->pes + i] = block;
        }
        status = perf_pe_copy(pe, pe->table, table, 3 * (size_t)c->pes * sizeof *table);
    }
    free(table);
    return status;
}

weft_status perf_data_set(perf_pe *pe, const perf_case *c)
{
    int as = perf_kind_of(c->op) == PERF_COMBINE ? (int)c->dtype : PERF_DTYPE_COUNT;
    size_t bytes = c->bytes > 0 && c->bytes < pe->bytes ? c->bytes : pe->bytes;
    weft_status status = WEFT_OK;
    if (pe->filled != as) {
        unsigned char *host = malloc(pe->bytes);
        status = host != NULL ? fill_source(pe, as, host) : WEFT_ERR_MEMORY;
        free(host);
    }
    if (status == WEFT_OK && c->op == PERF_ALLTOALLV) {
        status = fill_table(pe, c);
    }
    if (status == WEFT_OK) {
        status = perf_pe_fill(pe, pe->dest, perf_kind_of(c->op) == PERF_WORD ? 0 : 0xff, bytes);
    }
    return status != WEFT_OK ? status : perf_pe_fill(pe, pe->flags, 0, PERF_FLAG_BYTES);
}

/* ---- bytes ---- */

/* Whose byte `i` of this PE's destination is, and where it lay in the source; -1: nobody's. */
static int origin_of(const perf_pe *pe, const perf_case *c, size_t i, size_t *place)
{
    size_t block = perf_block_bytes(c);
    *place = i;
    switch (c->op) {
    case PERF_PUT:
    case PERF_PUT_QUIET:
        return pe->pe == perf_peer(pe) || pe->pe == 1 ? 0 : -1;
    case PERF_GET:
        return pe->pe == 0 ? perf_peer(pe) : -1;
    case PERF_PUT_SIGNAL:
        return pe->pe < 2 ? 1 - pe->pe : -1;
    case PERF_BROADCAST:
        return 0;
    case PERF_FCOLLECT:
    case PERF_COLLECT:
        *place = i % block;
        return (int)(i / block);
    case PERF_ALLTOALL:
    case PERF_ALLTOALLV:
        *place = (size_t)pe->pe * block + i % block;
        return (int)(i / block);
    case PERF_PUT_BW:
    case PERF_PUT_BULK_BW:
        for (int from = 0; from < (c->everyone ? pe->pes : 1); from++) {
            if (perf_chunk_pe(pe, c, from, i / perf_chunk_bytes(c)) == pe->pe) {
                return from;
            }
        }
        return -1;
    case PERF_GET_BW:
        return pe->pe == 0 || c->everyone ? perf_chunk_pe(pe, c, pe->pe, i / perf_chunk_bytes(c)) : -1;
    default:
        return -1;
    }
}

static long count_bytes(const perf_pe *pe, const perf_case *c, const unsigned char *host, size_t bytes)
{
    size_t step = bytes > LOOK_AT_ALL ? STEP : 1;
    long wrong = 0;
    for (size_t i = 0; i < bytes; i += step) {
        size_t place;
        int origin = origin_of(pe, c, i, &place);
        wrong += origin >= 0 && host[i] != byte_of(origin, place);
    }
    return wrong;
}

/* ---- elements ---- */

static double combine(weft_op op, double a, double b)
{
    switch (op) {
    case WEFT_OP_AND:
        return (double)((unsigned)a & (unsigned)b);
    case WEFT_OP_OR:
        return (double)((unsigned)a | (unsigned)b);
    case WEFT_OP_XOR:
        return (double)((unsigned)a ^ (unsigned)b);
    case WEFT_OP_MIN:
        return a < b ? a : b;
    case WEFT_OP_MAX:
        return a > b ? a : b;
    case WEFT_OP_SUM:
        return a + b;
    default:
        return a * b;
    }
}

static int is_element_wrong(const perf_case *c, double wanted, uint64_t bits)
{
    size_t bytes = perf_dtype_bytes(c->dtype);
    uint64_t mask = bytes < 8 ? (UINT64_C(1) << 8 * bytes) - 1 : ~UINT64_C(0);
    if (perf_tolerance(c->dtype) == 0.0) {
        return ((perf_encode(c->dtype, wanted) ^ bits) & mask) != 0; /* which wraps around */
    }
    double off = perf_decode(c->dtype, bits) - wanted;
    return !((off < 0 ? -off : off) <= perf_tolerance(c->dtype) * wanted);
}

static long count_elements(const perf_pe *pe, const perf_case *c, const unsigned char *host)
{
    size_t bytes = perf_dtype_bytes(c->dtype);
    size_t count = perf_block_bytes(c) / bytes;
    size_t first = c->op == PERF_REDUCE_SCATTER ? (size_t)pe->pe * count : 0;
    int members = c->op == PERF_INSCAN ? pe->pe + 1 : c->op == PERF_EXSCAN ? pe->pe : c->pes;
    long wrong = 0;
    for (size_t i = 0; i < count && members > 0; i += count * bytes > LOOK_AT_ALL ? STEP : 1) {
        double wanted = element_of(0, first + i);
        uint64_t bits = 0;
        for (int member = 1; member < members; member++) {
            wanted = combine(c->reduction, wanted, element_of(member, first + i));
        }
        memcpy(&bits, host + i * bytes, bytes);
        wrong += is_element_wrong(c, wanted, bits);
    }
    return wrong;
}

/* ---- words ---- */

/* What a word that was 0 is after so many calls. */
static uint64_t word_after(const perf_case *c, uint64_t calls)
{
    switch (c->op) {
    case PERF_P:
    case PERF_SET:
    case PERF_SWAP:
    case PERF_OR:
        return 1;
    case PERF_COMPARE_SWAP: /* a fresh value succeeds, one that was given back is one behind; on streams it is fixed */
        return c->scope == PERF_STREAM || c->scope == PERF_GRAPH ? 1 : (calls + 1) / 2;
    case PERF_ADD:
    case PERF_FETCH_ADD:
    case PERF_INC:
    case PERF_FETCH_INC:
        return calls;
    case PERF_XOR:
        return calls & 1;
    default:
        return 0;
    }
}

static long count_words(const perf_pe *pe, const perf_case *c, const unsigned char *host, uint64_t calls)
{
    uint64_t bits = 0;
    memcpy(&bits, host, perf_dtype_bytes(c->dtype));
    return pe->pe == (pe->pes > 1) && bits != perf_encode(c->dtype, (double)word_after(c, calls));
}

long perf_data_wrong(perf_pe *pe, const perf_case *c, int calls)
{
    perf_kind kind = perf_kind_of(c->op);
    size_t bytes = kind == PERF_RATE ? perf_chunk_bytes(c) * perf_chunk_count(c) : c->bytes;
    long wrong = 0;
    if (kind == PERF_MEET || kind == PERF_ALLOC || strcmp(perf_case_impl(c), "weft") != 0) {
        return -1;
    }
    int is_signal = c->op == PERF_SIGNAL || c->op == PERF_P_PINGPONG;
    unsigned char *host = malloc(bytes + 8);
    if (host == NULL || perf_pe_copy(pe, host, is_signal ? (void *)pe->flags : pe->dest, bytes) != WEFT_OK) {
        wrong = 1;
    } else if (is_signal) {
        uint64_t value;
        memcpy(&value, host, sizeof value);
        wrong = pe->pe < 2 && value != (uint64_t)calls;
    } else if (kind == PERF_WORD) {
        wrong = count_words(pe, c, host, (uint64_t)calls);
    } else if (kind == PERF_COMBINE) {
        wrong = pe->pe < c->pes ? count_elements(pe, c, host) : 0;
    } else if (pe->pe < c->pes || kind != PERF_COLL) {
        wrong = count_bytes(pe, c, host, bytes);
    }
    free(host);
    return wrong;
}
