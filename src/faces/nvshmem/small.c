/* faces/nvshmem/small.c: reductions of half and bfloat16 on the host, which weft has on GPUs only: widened to
 * float, combined there in ascending order, and rounded once, as on GPUs. A part at a time, in scratch of the
 * team. */
#include "faces/nvshmem/binding.h"
#include "weft/protocol/bf16.h"
#include "weft/protocol/f16.h"

/* Floats of the scratch: half for what goes in, half for what comes out. */
#define PART 8192

static float widen(weft_dtype dtype, uint16_t bits)
{
    return dtype == WEFT_DTYPE_BF16 ? wefti_bf16_widen(bits) : wefti_f16_widen(bits);
}

static uint16_t narrow(weft_dtype dtype, float value)
{
    return dtype == WEFT_DTYPE_BF16 ? wefti_bf16_round(value) : wefti_f16_round(value);
}

/* A part holds an element of each member at least. */
static size_t part_floats(weft_team *team)
{
    const size_t pes = (size_t)weft_team_pes(team);
    return pes > PART ? pes : PART;
}

static weft_status scratch_of(weft_team *team, float **scratch)
{
    for (nvshmem_team_t handle = 0; handle < WEFTI_NV_TEAMS; handle++) {
        wefti_nv_team *const entry = &wefti_nvshmem.teams[handle];
        if (entry->team == team && team != NULL) {
            void *block = entry->scratch;
            if (block == NULL) {
                WEFT_TRY(weft_team_malloc(team, 2 * part_floats(team) * sizeof(float), &block));
                entry->scratch = block;
            }
            *scratch = block;
            return WEFT_OK;
        }
    }
    return WEFT_ERR_ARGUMENT;
}

static weft_status combine(weft_team *team, weft_op op, int is_scatter, float *to, const float *from, size_t count)
{
    switch (op) {
    case WEFT_OP_MIN:
        return is_scatter ? weft_float_min_reduce_scatter(team, to, from, count)
                          : weft_float_min_reduce(team, to, from, count);
    case WEFT_OP_MAX:
        return is_scatter ? weft_float_max_reduce_scatter(team, to, from, count)
                          : weft_float_max_reduce(team, to, from, count);
    case WEFT_OP_SUM:
        return is_scatter ? weft_float_sum_reduce_scatter(team, to, from, count)
                          : weft_float_sum_reduce(team, to, from, count);
    default:
        return is_scatter ? weft_float_prod_reduce_scatter(team, to, from, count)
                          : weft_float_prod_reduce(team, to, from, count);
    }
}

/* Reduce `blocks` blocks of `count` elements: one block a member, or a single one. */
static weft_status reduce(weft_team *team, weft_dtype dtype, weft_op op, uint16_t *dest, const uint16_t *source,
                          size_t count, size_t blocks)
{
    float *in = NULL;
    if (count == 0 && team != NULL) {
        return WEFT_OK;
    }
    WEFT_TRY(scratch_of(team, &in));
    float *const out = in + part_floats(team);
    const size_t most = part_floats(team) / blocks;
    for (size_t first = 0; first < count; first += most) {
        const size_t some = count - first < most ? count - first : most;
        for (size_t i = 0; i < blocks * some; i++) {
            in[i] = widen(dtype, source[i / some * count + first + i % some]);
        }
        WEFT_TRY(combine(team, op, blocks > 1, out, in, some));
        for (size_t i = 0; i < some; i++) {
            dest[first + i] = narrow(dtype, out[i]);
        }
    }
    return WEFT_OK;
}

weft_status wefti_nv_small_reduce(weft_team *team, weft_dtype dtype, weft_op op, void *dest, const void *source,
                                  size_t count)
{
    return reduce(team, dtype, op, dest, source, count, 1);
}

weft_status wefti_nv_small_reduce_scatter(weft_team *team, weft_dtype dtype, weft_op op, void *dest, const void *source,
                                          size_t count)
{
    return reduce(team, dtype, op, dest, source, count, team == NULL ? 1 : (size_t)weft_team_pes(team));
}
