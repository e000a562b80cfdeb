/* weft-perf/case.c: what is measured. */
#include "tools/weft-perf/case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    perf_kind kind;
    const char *figure;
    const char *impl;
} ops[PERF_OP_COUNT] = {
#define ROW(OP, name, kind, figure, impl) {name, kind, figure, impl},
    PERF_OPS(ROW)
#undef ROW
};

#define NAME(OP, name, ...) name,
const char *const perf_op_names[PERF_OP_COUNT] = {PERF_OPS(NAME)};
const char *const perf_dtype_names[PERF_DTYPE_COUNT] = {PERF_DTYPES(NAME)};
#undef NAME
const char *const perf_scope_names[PERF_SCOPES] = {"host", "stream", "graph", "thread", "warp", "block"};
const char *const perf_reduction_names[PERF_REDUCTIONS] = {"and", "or", "xor", "min", "max", "sum", "prod"};
const char *const perf_pattern_names[2] = {"one", "all"};

static const struct {
    weft_dtype weft;
    int bytes;
    int mantissa;
    int bias;
} dtypes[PERF_DTYPE_COUNT] = {
#define ROW(NAME, name, bytes, mantissa, bias) {WEFT_DTYPE_##NAME, bytes, mantissa, bias},
    PERF_DTYPES(ROW)
#undef ROW
};

perf_kind perf_kind_of(perf_op op)
{
    return ops[op].kind;
}

int perf_is_in_kernel(const perf_case *c)
{
    return c->scope >= PERF_THREAD;
}

int perf_has_bytes(perf_op op)
{
    return ops[op].kind == PERF_MOVE || ops[op].kind == PERF_RATE || ops[op].kind == PERF_COLL ||
           ops[op].kind == PERF_COMBINE || ops[op].kind == PERF_ALLOC || op == PERF_PUT_SIGNAL ||
           op == PERF_RAW_PUT_SIGNAL;
}

int perf_is_typed(perf_op op)
{
    return ops[op].kind == PERF_WORD || ops[op].kind == PERF_COMBINE;
}

void perf_case_name(const perf_case *c, int on_device, char *name, size_t bytes)
{
    const char *figure = c->op == PERF_REDUCE ? perf_reduction_names[c->reduction] : ops[c->op].figure;
    snprintf(name, bytes, "%s%s%s", c->op == PERF_MALLOC && on_device ? "device_" : "", figure,
             c->everyone ? "_all" : "");
}

const char *perf_case_impl(const perf_case *c)
{
    return ops[c->op].impl;
}

weft_dtype perf_weft_dtype(perf_dtype dtype)
{
    return dtypes[dtype].weft;
}

size_t perf_dtype_bytes(perf_dtype dtype)
{
    return (size_t)dtypes[dtype].bytes;
}

/* ---- bytes ---- */

static int has_blocks(perf_op op)
{
    return op == PERF_FCOLLECT || op == PERF_COLLECT || op == PERF_ALLTOALL || op == PERF_ALLTOALLV ||
           op == PERF_REDUCE_SCATTER;
}

size_t perf_block_bytes(const perf_case *c)
{
    return has_blocks(c->op) ? c->bytes / (size_t)c->pes : c->bytes;
}

size_t perf_rounded_bytes(const perf_case *c)
{
    size_t grain = ops[c->op].kind == PERF_COMBINE ? perf_dtype_bytes(c->dtype) : 1;
    grain *= has_blocks(c->op) ? (size_t)c->pes : 1;
    return ops[c->op].kind == PERF_WORD    ? perf_dtype_bytes(c->dtype)
           : ops[c->op].kind == PERF_TRIPS ? (perf_has_bytes(c->op) ? c->bytes : 8)
                                           : c->bytes / grain * grain;
}

double perf_bus_factor(const perf_case *c)
{
    double others = (double)(c->pes - 1) / c->pes;
    return c->op == PERF_REDUCE ? 2 * others : has_blocks(c->op) ? others : 1.0;
}

int perf_default_calls(const perf_case *c)
{
    int is_large = c->bytes > 100000;
    if (ops[c->op].kind == PERF_RATE && c->scope != PERF_HOST) {
        return 1;
    }
    if (perf_is_in_kernel(c)) {
        return ops[c->op].kind == PERF_COLL || ops[c->op].kind == PERF_COMBINE ? (is_large ? 20 : 200)
               : is_large                                                      ? 100
                                                                               : 500;
    }
    if (c->scope != PERF_HOST) {
        return c->bytes > 1000000 ? 20 : 100;
    }
    return ops[c->op].kind == PERF_ALLOC ? 20 : c->bytes > 1000000 ? 10 : c->bytes > 10000 ? 100 : 1000;
}

/* ---- numbers ---- */

uint64_t perf_encode(perf_dtype dtype, double value)
{
    int mantissa = dtypes[dtype].mantissa;
    int exponent;
    if (dtypes[dtype].bias == 0) {
        return (uint64_t)(int64_t)value;
    }
    if (value == 0.0) {
        return 0;
    }
    double fraction = frexp(fabs(value), &exponent); /* 0.5 <= fraction < 1 */
    uint64_t bits = (uint64_t)llround(ldexp(fraction, mantissa + 1)); /* with the leading 1 */
    bits += (uint64_t)(exponent - 2 + dtypes[dtype].bias) << mantissa;
    return bits | (value < 0 ? UINT64_C(1) << (8 * dtypes[dtype].bytes - 1) : 0);
}

double perf_decode(perf_dtype dtype, uint64_t bits)
{
    int wide = 8 * dtypes[dtype].bytes;
    int mantissa = dtypes[dtype].mantissa;
    uint64_t sign = bits >> (wide - 1) & 1;
    uint64_t rest = bits & ~(UINT64_C(1) << (wide - 1));
    int exponent = (int)(rest >> mantissa);
    double fraction = (double)(rest & ((UINT64_C(1) << mantissa) - 1));
    double value = exponent > 0 ? ldexp(ldexp(1.0, mantissa) + fraction, exponent - dtypes[dtype].bias - mantissa)
                                : ldexp(fraction, 1 - dtypes[dtype].bias - mantissa);
    return sign ? -value : value;
}

double perf_tolerance(perf_dtype dtype)
{
    return dtypes[dtype].bias == 0 ? 0.0 : ldexp(1.0, -dtypes[dtype].mantissa - 1);
}
